"""The flags that describe a run, and the event they stand for."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TextIO, get_args

import click

from privet._pages import page
from privet.accounting.event_json import from_json
from privet.accounting.events import Allocated, Event, Gaussian
from privet.errors import InvalidParameter
from privet.privacy import Neighbours

ACCOUNTANTS = ("auto", "closed", "contour", "fourier", "renyi", "zcdp", "gdp", "basic", "advanced", "optimal")


class _Words(click.Choice):  # type: ignore[type-arg]  # generic only since click 8.2
    """One of some words; hyphens and underscores are the same."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        for choice in self.choices:
            if str(value).replace("-", "_").lower() == choice.replace("-", "_"):
                value = choice
        return str(super().convert(value, param, ctx))


def _ratio(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read a number, or a ratio of two such as 256/60000."""
    if value is None:
        return None
    over, _, under = value.partition("/")
    try:
        return float(over) / float(under) if under else float(over)
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(f"{value!r} is neither a number nor a ratio such as 256/60000.", ctx, param) from None


_STEP = (
    click.option(
        "--sampling-rate",
        callback=_ratio,
        metavar="NUMBER|A/B",
        help="Probability that a record joins a batch; Poisson sampling.",
    ),
    click.option("--batch", type=int, help="Batch size; with --records and --sampling."),
    click.option("--records", type=int, help="Number of records, which must be public; with --batch."),
    click.option(
        "--sampling",
        type=_Words(["poisson", "without-replacement", "allocated", "none"]),
        help="How batches are really drawn. A shuffled pass is none of these: say none.",
    ),
    click.option("--steps", type=int, help="Number of steps, each with fresh noise and a fresh batch."),
)
_NOISE = click.option("--noise-multiplier", type=float, help="Standard deviation of the noise ÷ clip.")
_EVENTS = click.option(
    "--events",
    type=click.File("r", encoding="utf-8"),
    metavar="FILE",
    help=f"Read what ran from JSON instead (- for standard input); see {page('docs/events.md')}",
)
_NEIGHBOURS = click.option(
    "--neighbours",
    type=_Words(get_args(Neighbours)),
    required=True,
    help="Which two data sets must look alike; never implied, as epsilon depends on it.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON; null stands for infinite.")
plot_option = click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw a figure: .png, .svg or .pdf."
)
accountant_option = click.option(
    "--accountant", type=_Words(ACCOUNTANTS), default="auto", show_default=True, help="Whose bound to use."
)


def one_run(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the flags that describe a run, and hand it the event they stand for as `run`."""

    @wraps(command)
    def with_run(
        noise_multiplier: float | None,
        sampling_rate: float | None,
        batch: int | None,
        records: int | None,
        sampling: str | None,
        steps: int | None,
        events: TextIO | None,
        **others: Any,
    ) -> None:
        flags = (noise_multiplier, sampling_rate, batch, records, sampling, steps)
        if events is None:
            if noise_multiplier is None:
                raise InvalidParameter("""Expected --noise-multiplier and --steps, or --events FILE, got neither: there
                    is no run. For DP-SGD say for example --noise-multiplier 1.1 --sampling-rate 256/60000 --steps
                    14062.""")
            step = step_of(sampling_rate=sampling_rate, batch=batch, records=records, sampling=sampling)
            run = run_of(step(noise_multiplier), steps)
        elif any(flag is not None for flag in flags):
            raise InvalidParameter("""Expected either --events or the flags of one run, got both: they would describe
                two runs. Put everything into the events file, or leave it out.""")
        else:
            run = from_json(events.read())
        command(run=run, **others)

    for option in reversed((_NOISE, *_STEP, _EVENTS, _NEIGHBOURS)):
        with_run = option(with_run)
    return with_run


def step_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the flags of a run but for its noise."""
    for option in reversed((*_STEP, _NEIGHBOURS)):
        command = option(command)
    return command


def step_of(
    *, sampling_rate: float | None, batch: int | None, records: int | None, sampling: str | None
) -> Callable[[float], Event]:
    """Return the step that the flags describe, as a function of its noise multiplier."""
    sized = batch is not None or records is not None
    if sized and (batch is None or records is None):
        raise InvalidParameter("Expected --batch and --records together, got one: the rate is their ratio. Give both.")
    if sized and sampling_rate is not None:
        raise InvalidParameter("""Expected --sampling-rate or --batch with --records, got both. Keep the one that is
            true.""")
    if sized and sampling is None:
        raise InvalidParameter("""Expected --sampling with --batch and --records, got none: batches drawn by chance and
            shuffled ones have different epsilons. Say poisson if each record joins by its own coin, without-replacement
            if every batch is a fresh random subset, allocated if each record draws one batch of an epoch by itself,
            none if batches come from a shuffled pass.""")
    if sampling in ("without-replacement", "allocated") and not sized:
        raise InvalidParameter(f"""Expected --batch and --records with --sampling {sampling}, got neither: both sizes
            matter. Give both.""")
    if sampling == "poisson" and not sized and sampling_rate is None:
        raise InvalidParameter("Expected a rate with --sampling poisson, got none. Add --sampling-rate, e.g. 0.01.")
    if sampling == "none" and sampling_rate is not None:
        raise InvalidParameter("Expected no --sampling-rate with --sampling none, got one. Leave one of them out.")
    if sampling == "without-replacement" and batch is not None and records is not None:
        size, total = batch, records
        return lambda noise: Gaussian(noise_multiplier=noise).without_replacement(batch=size, records=total)
    if sampling == "allocated" and batch is not None and records is not None:
        _rate(batch, records)
        batches = records // batch  # fewer cost more
        return lambda noise: Gaussian(noise_multiplier=noise).allocated(steps=batches)
    if sampling == "none" or (sampling_rate is None and not sized):
        return lambda noise: Gaussian(noise_multiplier=noise)
    rate = sampling_rate if sampling_rate is not None else _rate(batch, records)
    return lambda noise: Gaussian(noise_multiplier=noise).poisson(rate=rate)


def _rate(batch: int | None, records: int | None) -> float:
    if not (batch and records and 0 < batch <= records):
        raise InvalidParameter(f"""Expected --batch from 1 to --records, got {batch} of {records}: their ratio is the
            probability that a record joins a batch. Correct one of them.""")
    return batch / records


def run_of(step: Event, steps: int | None) -> Event:
    """Return `step` taken `steps` times, or as many epochs as hold them; a single one is left as it is."""
    if steps is None:
        raise InvalidParameter("""Expected --steps, got none: every further step costs, so none is assumed. For E epochs
            of batches at rate q that is about E/q; say --steps 1 for a single release.""")
    if isinstance(step, Allocated):
        steps = -(-steps // step.steps)
    return step if steps == 1 else step * steps
