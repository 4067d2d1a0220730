"""How good can it get: proven excess risk against n, d or epsilon for every method, with runs laid over it."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privet.errors import InvalidParameter
from privet.lectures.figures.stored_runs import RISK_SEEDS, stored_risks
from privet.lectures.toy_problems import average_loss, logistic_in_ball, unit_plan
from privet.privacy import Budget
from privet.problems import RecordProblem, glm
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.report.canvas import FAINT, canvas, styles
from privet.solvers import noisy_gradient_descent, objective_perturbation, output_perturbation
from privet.theory import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Against = Literal["n", "d", "epsilon"]
"""What a figure of risk has on its axis."""

Proven = Method | Literal["objective_perturbation"]

RUN_METHODS = ("average", "last_linear", "output_perturbation", "objective_perturbation")
_METHODS: dict[str, Proven] = {
    "average of iterates": "average",
    "last iterate, c/√t": "last",
    "output perturbation": "output_perturbation",
    "exponential mechanism": "exponential",
    "rank 5, no projection": "rank",
    "objective perturbation": "objective_perturbation",
}
_RANK = 5
_BASE: dict[str, float] = {"n": 1000, "d": 10, "epsilon": 1.0}
_RANGE: dict[str, tuple[float, float]] = {"n": (50, 1e5), "d": (1, 1000), "epsilon": (0.03, 10.0)}
_RUNS: dict[str, tuple[float, ...]] = {
    "n": (60, 200, 600, 1500),
    "d": (5, 10, 30, 100),
    "epsilon": (0.05, 0.15, 0.5, 1.5),
}
_MOST = 3_000  # steps of a run in the figures
_WORDS = {"n": "n, records", "d": "d, parameters", "epsilon": "ε (nats)"}


def proven_risk(method: Proven, *, n: int, d: int, epsilon: float, delta: float = 1e-5) -> float:
    """Return what is proven for logistic regression of radius and gradient bound 1; never above what 0 gives.

    By `plan_for`; for objective perturbation by its solver, whose bound depends on no data: it is run on a table of 0.
    Releasing the public start costs nothing and is at most 1 above the least risk, so no method need be worse.

    >>> [round(proven_risk(method, n=2000, d=10, epsilon=1.0), 4) for method in ("average", "exponential")]
    [0.0167, 0.02]
    """
    if method == "objective_perturbation":
        return min(1.0, _objective_bound(n, d, epsilon, delta))
    rank = min(d, _RANK) if method == "rank" else None
    found = unit_plan(method, n=n, d=d, budget=Budget(epsilon=epsilon, delta=delta), rank=rank)
    return min(found.trivial, found.excess_risk)


def simulated_risk(method: str, *, n: int, d: int, epsilon: float, seeds: int = 3, max_steps: int = 10_000) -> float:
    """Return the mean excess risk of runs on a logistic regression in the unit ball, seeds fixed, delta = 1e-5.

    Parameters
    ----------
    method : "average", "last_linear", "output_perturbation" or "objective_perturbation", whose result is projected
    max_steps : of descent; the noise is for the steps that are taken

    Examples
    --------
    >>> simulated_risk("output_perturbation", n=200, d=2, epsilon=1.0, seeds=1) < 0.5
    True
    """
    problem, best = _problem(n, d)
    least, budget = average_loss(problem, best), Budget(epsilon=epsilon, delta=1e-5)
    bounded = glm("logistic", problem.X, problem.y, row_norm=1.0, domain=problem.domain)
    free = glm("logistic", problem.X, problem.y, row_norm=1.0)
    descent = partial(noisy_gradient_descent, bounded, budget=budget, max_steps=max_steps)
    solvers: dict[str, Callable[..., Any]] = {
        "average": descent,
        "last_linear": partial(descent, release="last", method="last_linear"),
        "output_perturbation": partial(output_perturbation, bounded, budget=budget),
        "objective_perturbation": partial(objective_perturbation, free, budget=budget, radius=1.0),
    }
    if method not in solvers:
        raise InvalidParameter(f"""Expected one of {", ".join(solvers)}, got {method!r}: nothing is run under that name.
            Use one of them.""")
    runs = [solvers[method](random=fixed_seed_invalidates_guarantee(seed)) for seed in range(seeds)]
    return float(np.mean([average_loss(problem, problem.domain.project(run.coef)) for run in runs])) - least


def risk_figure(against: Against, *, seeds: int | None = None, runs: tuple[float, ...] | None = None) -> "Figure":
    """Draw proven excess risk against n, d or epsilon, one curve a method, and runs as marks of the same colour.

    Promise: curves are `proven_risk`, marks `simulated_risk`; what does not vary is n = 1,000, d = 10, epsilon = 1,
    and delta = 1e-5, radius 1, gradients at most 1 throughout, one record replaced. Descent takes 3,000 steps at most.

    Parameters
    ----------
    against : "n", "d" or "epsilon"
    seeds : runs a mark is the mean of, made now; by default those of twelve that are stored, which take minutes
    runs : where to run, none if empty; four places by default

    Examples
    --------
    >>> risk_figure("epsilon", runs=()).axes[0].get_xlabel()
    'ε (nats)'
    """
    if against not in get_args(Against):
        raise InvalidParameter(f"""Expected one of {", ".join(get_args(Against))}, got {against!r}: the bounds depend on
            nothing else that is worth drawing. Use one of them.""")
    low, high = _RANGE[against]
    at = sorted({_rounded(against, float(x)) for x in np.geomspace(low, high, 80)})
    fixed = ", ".join(f"{'ε' if k == 'epsilon' else k} = {v:,g}" for k, v in _BASE.items() if k != against)
    title = f"How good can it get: against {'ε' if against == 'epsilon' else against}"
    with canvas(title, f"{fixed}, δ = 1e-5; lines proven, marks runs", size=(5.6, 6.6)) as (figure, axes):
        looks = dict(zip(_METHODS, styles(), strict=False))
        axes.axhline(1.0, color=FAINT, linewidth=1.2)
        for name, method in _METHODS.items():
            where = at[:: 6 if method == "objective_perturbation" else 1]  # that one is slower
            axes.plot(where, [proven_risk(method, **_setting(against, x)) for x in where], label=name, **looks[name])
        marks = (
            ("average, runs", looks["average of iterates"]["color"], "o"),
            ("last, linear decay, runs", "#000000", "v"),
            ("output perturb., runs", looks["output perturbation"]["color"], "s"),
            ("objective perturb., runs", looks["objective perturbation"]["color"], "D"),
        )
        places = _RUNS[against] if runs is None else runs
        for run_by, (name, colour, marker) in zip(RUN_METHODS, marks, strict=True):
            if seeds is None and runs is None:
                values = stored_risks(against, run_by)
            else:
                values = risks_along(against, run_by, places, RISK_SEEDS if seeds is None else seeds)
            axes.plot(places, values, marker, color=colour, markersize=7, markeredgecolor="white", label=name)
        axes.set(xscale="log", yscale="log", xlabel=_WORDS[against], ylabel="excess risk ÷ (R G)", xlim=(low, high))
        axes.set_ylim(1e-4, 2.0)
        figure.legend(loc="outside lower left", ncols=2, fontsize=10, columnspacing=1.0)
    return figure


def risks_along(
    against: Against, method: str, places: tuple[float, ...] | None = None, seeds: int = RISK_SEEDS
) -> list[float]:
    """`simulated_risk` of a method at some places of an axis, those of the figure by default; runs now.

    >>> risks_along("n", "average", ())
    []
    """
    places = _RUNS[against] if places is None else places
    return [simulated_risk(method, seeds=seeds, max_steps=_MOST, **_setting(against, x)) for x in places]


def _setting(against: Against, x: float) -> dict[str, Any]:
    found = _BASE | {against: x}
    return {"n": int(found["n"]), "d": int(found["d"]), "epsilon": float(found["epsilon"])}


def _rounded(against: Against, x: float) -> float:
    return x if against == "epsilon" else round(x)


@cache
def _problem(n: int, d: int) -> tuple[RecordProblem, NDArray[np.float64]]:
    return logistic_in_ball(n, d, seed=5)


@cache
def _objective_bound(n: int, d: int, epsilon: float, delta: float) -> float:
    empty = glm("logistic", np.zeros((n, d)), np.zeros(n, dtype=np.int64), row_norm=1.0)
    random = fixed_seed_invalidates_guarantee(0)
    found = objective_perturbation(empty, budget=Budget(epsilon=epsilon, delta=delta), radius=1.0, random=random)
    return np.inf if found.bound is None else found.bound
