"""One figure a lecture: what no method can beat, what its methods do on the hardest tables known, what is proven.

Runs are on the tables of the lower bounds (`privet.lectures.hard_tables`), so that all three are about the same thing:
lower bound <= mean risk of the runs <= proven bound, on a grid in n, d and epsilon. Needs the extra `privet[plot]`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from privet.accounting.theorems.gaussian_profile import largest_mu
from privet.errors import InvalidParameter
from privet.lectures.figures.stored_runs import BRACKET_SEEDS, stored_brackets
from privet.lectures.hard_tables import HardTable, hard_labels, hard_medians
from privet.privacy import Budget
from privet.problems import glm
from privet.randomness import Random, fixed_seed_invalidates_guarantee
from privet.report.canvas import INK, canvas, styles
from privet.sampling import Poisson
from privet.solvers import (
    Result,
    dp_gd,
    dp_sgd,
    noisy_gradient_descent,
    objective_perturbation,
    output_perturbation,
)
from privet.theory import ApproximateDP, lipschitz_lower_bound, logistic_lower_bound, rank_lower_bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BracketLecture = Literal["wu", "brown-glm", "brown-clipping", "razaviyayn", "nikolov"]
"""Whose methods `bracket_figure` shows; the names are those of the lectures' pages."""

DELTA, STEPS = 1e-5, 400
BASE: dict[str, float] = {"n": 1000, "d": 10, "epsilon": 1.0}
GRID: dict[str, tuple[float, ...]] = {
    "n": (100, 300, 1000, 3000),
    "d": (2, 5, 10, 30),
    "epsilon": (0.1, 0.3, 1.0, 3.0),
}
_WORDS = {"n": "n, records", "d": "d, parameters", "epsilon": "ε (nats)"}
_TITLES: dict[str, str] = {
    "wu": "Wu: noisy descent and DP-SGD",
    "brown-glm": "Brown: linear models, no projection",
    "brown-clipping": "Brown: DP-GD with a clip",
    "razaviyayn": "Razaviyayn: the steps, the answer or the objective",
    "nikolov": "Nikolov: logistic regression on the cube",
}


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """One method at one setting: what is excluded, measured and proven, and the standard error of what is measured.

    `lower` holds for all (epsilon, delta)-private methods, `gaussian` for those whose privacy is that of a Gaussian, on
    the very tables of the runs.
    """

    lower: float
    gaussian: float
    measured: float
    error: float
    proven: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Bracket":
        """The bracket of these numbers, in the order of its fields."""
        return cls(**dict(zip(cls.__dataclass_fields__, numbers, strict=True)))


_Run = Callable[[HardTable, Budget, int, Random], Result]


def _descent(table: HardTable, budget: Budget, most: int, random: Random, **more: Any) -> Result:
    return noisy_gradient_descent(table.problem, budget=budget, max_steps=most, random=random, **more)


def _free(table: HardTable, budget: Budget, most: int, random: Random) -> Result:
    rank = table.X.shape[1]
    return _descent(table, budget, most, random, method="rank", rank=rank, radius=1.0)


def _batches(table: HardTable, budget: Budget, most: int, random: Random) -> Result:
    settings: Any = {"sampling": Poisson(sampling_rate=0.2), "clip": _slope(table), "step_size": None}
    return dp_sgd(table.problem, budget=budget, steps=min(200, most), random=random, **settings)


def _clipped(table: HardTable, budget: Budget, most: int, random: Random) -> Result:
    steps = min(200, most)
    return dp_gd(table.problem, budget=budget, steps=steps, clip=_slope(table), step_size=None, random=random)


def _output(table: HardTable, budget: Budget, most: int, random: Random) -> Result:
    return output_perturbation(table.problem, budget=budget, random=random)


def _objective(table: HardTable, budget: Budget, most: int, random: Random) -> Result:
    free = glm("logistic", table.X, (table.y > 0).astype(int), row_norm=table.problem.row_norm)
    return objective_perturbation(free, budget=budget, radius=1.0, random=random)


def _slope(table: HardTable) -> float:
    return float(table.problem.lipschitz or 1.0)


METHODS: dict[str, dict[str, _Run]] = {
    "wu": {"noisy descent": _descent, "DP-SGD, Poisson": _batches},
    "brown-glm": {"noisy descent, no projection": _free},
    "brown-clipping": {"DP-GD, last iterate": _clipped},
    "razaviyayn": {
        "last iterate, c/√t": partial(_descent, release="last", method="last"),
        "DP-SGD, Poisson": _batches,
        "output perturbation": _output,
        "objective perturbation": _objective,
    },
    "nikolov": {"noisy descent": _descent},
}
"""The methods of each lecture that run in any dimension."""


@cache
def bracket(
    lecture: BracketLecture, method: str, *, n: int, d: int, epsilon: float, seeds: int = 4, max_steps: int = STEPS
) -> Bracket:
    """Run a method on the tables of its lower bound, seeds fixed, R = 1; medians with G = 1, or labels on the cube.

    >>> found = bracket("wu", "noisy descent", n=200, d=4, epsilon=1.0, seeds=2, max_steps=60)
    >>> found.lower < found.gaussian < found.measured < found.proven
    True
    """
    budget, mu = Budget(epsilon=epsilon, delta=DELTA), largest_mu(epsilon, DELTA)
    labels = lecture in ("razaviyayn", "nikolov")
    make = hard_labels if labels else partial(hard_medians, free=lecture == "brown-glm")
    risks, proven = [], np.inf
    for seed in range(seeds):
        table = make(n, d, mu=mu, seed=seed)
        result = METHODS[lecture][method](table, budget, max_steps, fixed_seed_invalidates_guarantee(seed))
        inside = result.coef if lecture == "brown-glm" else table.problem.domain.project(result.coef)
        risks.append(table.excess(inside))
        proven = np.inf if result.bound is None else result.bound
    private = ApproximateDP(epsilon=epsilon, delta=DELTA)
    if labels:
        least = logistic_lower_bound(n=n, d=d, radius=1.0, privacy=private)
    elif lecture == "brown-glm":
        least = rank_lower_bound(n=n, rank=d, seminorm=1.0, lipschitz=1.0, privacy=private)
    else:
        least = lipschitz_lower_bound(n=n, d=d, radius=1.0, lipschitz=1.0, privacy=private)
    return Bracket(
        lower=least.value,
        gaussian=table.lower,
        measured=float(np.mean(risks)),
        error=float(np.std(risks)) / np.sqrt(seeds),
        proven=float(proven),
    )


def bracket_figure(
    lecture: BracketLecture,
    *,
    seeds: int | None = None,
    max_steps: int = STEPS,
    grid: dict[str, tuple[float, ...]] | None = None,
) -> "Figure":
    """Draw lower bound, runs on its tables and proven bound of a lecture's methods, against n, d and epsilon.

    Promise: all values are those of `bracket`; what does not vary is n = 1,000, d = 10, epsilon = 1, and delta = 1e-5,
    R = 1 throughout, one record replaced. Descent takes `max_steps` at most, batches 200 steps: the bounds are for
    these. Marks are means over `seeds` runs, made now; by default over four that are stored, which take a minute.

    >>> small = {"n": (100,), "d": (2,), "epsilon": (1.0,)}
    >>> len(bracket_figure("nikolov", seeds=1, max_steps=20, grid=small).axes)
    3
    """
    if lecture not in get_args(BracketLecture):
        raise InvalidParameter(f"""Expected one of {", ".join(get_args(BracketLecture))}, got {lecture!r}: there is no
            such lecture. Use one of them.""")
    kept, places = grid is None and seeds is None and max_steps == STEPS, GRID if grid is None else grid
    subtitle = "n = 1,000, d = 10, ε = 1 unless varied, δ = 1e-5; marks are runs on the hardest tables known"
    with canvas(_TITLES[lecture], subtitle, size=(9.6, 5.4)) as (figure, first):
        figure.suptitle(first.get_title(loc="left").strip(), x=0.02, ha="left", fontsize=13, fontweight="bold")
        figure.supylabel("excess risk")
        first.remove()
        panels = figure.subplots(1, 3, sharey=True)
        panels[0].set_title(subtitle, loc="left", fontsize=9.5, color="#555555").set_in_layout(False)
        for axes, (against, values) in zip(panels, places.items(), strict=True):
            for style, method in zip(styles(), METHODS[lecture], strict=False):
                if kept:
                    found = [Bracket.of(numbers) for numbers in stored_brackets(lecture, method, against)]
                else:
                    runs = BRACKET_SEEDS if seeds is None else seeds
                    found = brackets_along(lecture, method, against, values, runs, max_steps)
                axes.plot(values, [f.proven for f in found], label=f"{method}: proven", **style)
                axes.plot(values, [f.measured for f in found], "o", color=style["color"], label=f"{method}: runs")
            axes.plot(values, [f.gaussian for f in found], color=INK, linewidth=1.6, label="no Gaussian method below")
            axes.plot(
                values,
                [f.lower for f in found],
                color=INK,
                linewidth=1.6,
                linestyle=":",
                label="no (ε, δ) method below",
            )
            axes.set(xscale="log", yscale="log", xlabel=_WORDS[against])
            axes.set_xticks(values, [f"{x:g}" for x in values])
            axes.minorticks_off()
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower left", ncols=3, fontsize=9)
    return figure


def brackets_along(
    lecture: BracketLecture,
    method: str,
    against: str,
    values: tuple[float, ...] | None = None,
    seeds: int = BRACKET_SEEDS,
    max_steps: int = STEPS,
) -> list[Bracket]:
    """`bracket` of a method along one axis, at the places of the figure by default; runs now.

    >>> brackets_along("wu", "noisy descent", "n", ())
    []
    """
    found = []
    for x in GRID[against] if values is None else values:
        at = BASE | {against: x}
        size: Any = {"n": int(at["n"]), "d": int(at["d"]), "epsilon": float(at["epsilon"])}
        found.append(bracket(lecture, method, **size, seeds=seeds, max_steps=max_steps))
    return found
