"""The commands of `privet`: read the flags, ask the Python twin, answer."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

import privet
from privet import accounting, report
from privet.accounting.event_json import to_json
from privet.accounting.events import Event, Repeated
from privet.cli.answers import Answers, answer, draw, guarantee_record
from privet.cli.lectures import lectures
from privet.cli.options import accountant_option, json_option, one_run, plot_option, run_of, step_of, step_options
from privet.cli.training import fit, plan, predict, schema, show
from privet.privacy import Guarantee, Neighbours, check_epsilon, down, up, words

_LEAST = 1e-300

_delta = click.option("--delta", type=float, required=True, help="Probability left out of the promise, e.g. 1e-6.")


@click.group(cls=Answers, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(privet.__version__, prog_name="privet")
def main() -> None:
    """Train private models of tables, and compute the epsilon of private runs, an upper bound that is proved.

    For an epsilon, describe one DP-SGD run by flags, or anything by --events FILE.
    """


@main.command(epilog="Python: privet.accounting.epsilon(run, delta=..., neighbours=...)")
@one_run
@_delta
@accountant_option
@json_option
@plot_option
def epsilon(
    run: Event, neighbours: Neighbours, delta: float, accountant: str, as_json: bool, plot: Path | None
) -> None:
    """Epsilon of a run at a given delta. --plot draws epsilon against steps."""
    promise = accounting.guarantee(run, delta=delta, neighbours=neighbours, accountant=accountant)
    step, steps = (run.event, run.count) if isinstance(run, Repeated) else (run, 100)
    draw(
        lambda: report.steps_figure(step, steps=steps, delta=delta, neighbours=neighbours, accountants=[accountant]),
        plot,
    )
    answer(promise.details, guarantee_record(promise, run), as_json=as_json)


@main.command(epilog="Python: privet.accounting.delta(run, epsilon=..., neighbours=...)")
@one_run
@click.option("--epsilon", type=float, required=True, help="The epsilon to promise.")
@accountant_option
@json_option
@plot_option
def delta(
    run: Event, neighbours: Neighbours, epsilon: float, accountant: str, as_json: bool, plot: Path | None
) -> None:
    """Delta of a run at a given epsilon. --plot draws the profile with this point."""
    lower, upper = accounting.bounds(run, epsilon=epsilon, neighbours=neighbours, accountant=accountant)
    # what the statement rests on, asked at a delta that a guarantee can have
    basis = accounting.guarantee(run, delta=min(max(upper, _LEAST), 0.5), neighbours=neighbours, accountant=accountant)
    if upper >= 1:
        text = f"The release promises nothing at epsilon = {up(epsilon)}: delta is 1 for {_told(basis)}. Add noise."
    else:
        truth = f"in [{down(lower)}, {up(upper)}]" if lower > 0 else f"at {up(upper)} at most"
        text = (
            f"The release is ({up(epsilon)}, {up(upper)})-differentially private for {_told(basis)}, which puts the "
            f"true delta {truth}.{_assuming(basis)}"
        )
    record = guarantee_record(basis, run) | {"epsilon": epsilon, "delta": upper, "lower": lower}
    draw(lambda: report.profile_figure(run, neighbours=neighbours, mark=(epsilon, upper), accountant=accountant), plot)
    answer(text, record, as_json=as_json)


@main.command(epilog="Python: privet.accounting.calibrate(lambda noise: ..., epsilon=..., delta=..., neighbours=...)")
@step_options
@click.option("--epsilon", type=float, required=True, help="The most that the run may cost.")
@_delta
@json_option
@plot_option
def noise(
    sampling_rate: float | None,
    batch: int | None,
    records: int | None,
    sampling: str | None,
    steps: int | None,
    neighbours: Neighbours,
    epsilon: float,
    delta: float,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Least noise multiplier for a target. --plot draws the profile with the target."""
    step = step_of(sampling_rate=sampling_rate, batch=batch, records=records, sampling=sampling)

    def family(multiplier: float) -> Event:
        return run_of(step(multiplier), steps)

    multiplier = accounting.calibrate(family, epsilon=epsilon, delta=delta, neighbours=neighbours)
    run = family(multiplier)
    promise = accounting.guarantee(run, delta=delta, neighbours=neighbours)
    text = f"A noise multiplier of {up(multiplier, 7)} (noise standard deviation ÷ clip) is enough. {promise.details}"
    draw(lambda: report.profile_figure(run, neighbours=neighbours, mark=(epsilon, delta)), plot)
    answer(text, {"noise_multiplier": multiplier} | guarantee_record(promise, run), as_json=as_json)


@main.command(epilog="Python: privet.accounting.compare(run, delta=..., neighbours=...)")
@one_run
@_delta
@json_option
@plot_option
def compare(run: Event, neighbours: Neighbours, delta: float, as_json: bool, plot: Path | None) -> None:
    """Every accountant's epsilon for the same run. --plot draws them as bars."""
    comparison = accounting.compare(run, delta=delta, neighbours=neighbours)
    rows = [asdict(row) for row in comparison.rows]
    draw(lambda: report.comparison_figure(run, delta=delta, neighbours=neighbours), plot)
    record = {"neighbours": neighbours, "event": json.loads(to_json(run)), "delta": delta, "rows": rows}
    answer(f"{run!r}\n{comparison}", record, as_json=as_json)


@main.command(epilog="Python: privet.accounting.profile(run, epsilons, neighbours=...)")
@one_run
@click.option("--epsilon", "epsilons", type=float, multiple=True, help="Where to compute delta; repeat for more.")
@accountant_option
@json_option
@plot_option
def profile(
    run: Event, neighbours: Neighbours, epsilons: tuple[float, ...], accountant: str, as_json: bool, plot: Path | None
) -> None:
    """Delta at many epsilons, the whole promise of a run. --plot draws the curve."""
    end = None if epsilons else report.reach(run, neighbours=neighbours, accountant=accountant)
    at = np.array([check_epsilon(value) for value in epsilons]) if end is None else _round_grid(end)
    deltas = accounting.profile(run, at, neighbours=neighbours, accountant=accountant)
    basis = accounting.guarantee(run, delta=1e-6, neighbours=neighbours, accountant=accountant)
    text = [f"The release is (epsilon, delta)-differentially private for {_told(basis)}, at each of:", ""]
    text.append(f"{'epsilon':>12}  delta")
    text += [f"{up(float(x)):>12}  {up(float(y), 7)}" for x, y in zip(at, deltas, strict=True)]
    text += ["", _assuming(basis).strip()] if basis.assumptions else []
    record = guarantee_record(basis, run) | {"epsilon": at.tolist(), "delta": deltas.tolist()}
    del record["lower"]
    curve = np.linspace(at.min(), at.max(), 61) if at.size > 1 else None
    draw(lambda: report.profile_figure(run, neighbours=neighbours, epsilons=curve, accountant=accountant), plot)
    answer("\n".join(text), record, as_json=as_json)


@main.command(epilog="Python: privet.report.meaning(run, delta=..., neighbours=..., prior=...)")
@one_run
@_delta
@click.option("--prior", type=float, default=0.5, show_default=True, help="The attacker's belief beforehand.")
@click.option(
    "--false-positive-rate",
    "rates",
    type=float,
    multiple=True,
    default=(0.001, 0.01, 0.05, 0.1),
    show_default=True,
    help="How often an attack may cry wolf; repeat for more.",
)
@accountant_option
@json_option
@plot_option
def meaning(
    run: Event,
    neighbours: Neighbours,
    delta: float,
    prior: float,
    rates: tuple[float, ...],
    accountant: str,
    as_json: bool,
    plot: Path | None,
) -> None:
    """What a run leaves to the best attack, in words. --plot draws the trade-off curve."""
    told = report.meaning(
        run, delta=delta, neighbours=neighbours, prior=prior, false_positive_rates=rates, accountant=accountant
    )
    record = guarantee_record(told.guarantee, run) | {
        "attacks": [asdict(attack) for attack in told.attacks],
        "prior": told.prior,
        "guess": told.guess,
        "posterior": told.posterior,
    }
    draw(lambda: report.tradeoff_figure(run, neighbours=neighbours, accountant=accountant), plot)
    answer(str(told), record, as_json=as_json)


def _told(basis: Guarantee) -> str:
    told = f"{words(basis.neighbours, basis.unit).change} ({basis.neighbours}); {basis.sampling}; computed by the "
    return f"{told}{basis.accountant} accountant ({basis.theorem})"


def _assuming(basis: Guarantee) -> str:
    return f" It assumes: {'; '.join(basis.assumptions)}." if basis.assumptions else ""


def _round_grid(end: float) -> NDArray[np.float64]:
    """Eleven or so epsilons from 0 to at least `end`, in round steps of 1, 2 or 5 times a power of ten."""
    scale = 10.0 ** math.floor(math.log10(end / 10))
    step = next(scale * unit for unit in (1, 2, 5, 10) if scale * unit >= end / 10)
    return np.array([round(step * place, 12) for place in range(math.ceil(end / step) + 1)])


for _command in (fit, lectures, plan, predict, schema, show):
    main.add_command(_command)
