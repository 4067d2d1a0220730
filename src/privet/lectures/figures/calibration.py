"""What the constants really are: every calibration rule of the lectures against the least noise that is private."""

import math
import re
from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import InvalidParameter
from privet.lectures import RULES, Rule
from privet.privacy import check_delta
from privet.report.canvas import INK, canvas, styles
from privet.theory import exact_noise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DANGER = "#b3261e"


def constants_figure(
    *, delta: float = 1e-5, steps: int = 1, epsilons: Sequence[float] | NDArray[np.float64] | None = None
) -> "Figure":
    """Draw the noise of every rule in `privet.theory.RULES` ÷ the least noise that is private, against epsilon.

    Promise: every curve is `Rule.printed_noise` ÷ `exact_noise`, as printed, true or not. Below 1 a rule is not
    private; where it crosses there is a dot, at `Rule.frontier`. Rules that agree everywhere share a curve. For more
    than one step the rules for a single step are left out. Sensitivity cancels, and with it n, G and the relation.

    Parameters
    ----------
    delta : in (0, 1)
    steps : noisy gradients of the run
    epsilons : where to compute, positive, at least two; by default 0.01 to 30

    Examples
    --------
    >>> figure = constants_figure(delta=1e-5, steps=1000)
    >>> figure.axes[0].get_ylabel()
    'noise by the rule ÷ least noise'
    """
    check_delta(delta)
    at = np.geomspace(0.01, 30.0, 121) if epsilons is None else np.sort(np.asarray(epsilons, dtype=np.float64))
    if at.size < 2 or not (at[0] > 0 and math.isfinite(at[-1])):
        raise InvalidParameter(f"""Expected at least two positive finite epsilons, got {at.size}, the least
            {at[0] if at.size else None}: the rules divide by epsilon, and a curve needs two points. Use e.g. [0.1, 1,
            10].""")
    least = np.array([exact_noise(epsilon=float(e), delta=delta, steps=steps, sensitivity=1.0) for e in at])
    drawn = []
    for style, (name, known) in zip(styles(), _distinct().items(), strict=False):
        if steps == 1 or not _single_step(known):
            noise = [known.printed_noise(epsilon=float(e), delta=delta, steps=steps, sensitivity=1.0) for e in at]
            drawn.append((name, style, np.array(noise) / least, known.frontier(delta=delta, steps=steps)))
    subtitle = f"δ = {delta:.3g}, {steps:,} step{'s' if steps > 1 else ''}; dots: where a rule stops being true"
    with canvas("What the constants really are", subtitle, size=(6.8, 6.6)) as (figure, axes):
        axes.set(xscale="log", yscale="log", xlabel="ε (nats)", ylabel="noise by the rule ÷ least noise")
        values = np.concatenate([ratios for _, _, ratios, _ in drawn])
        low, high = min(0.6, float(values.min()) / 1.15), max(2.0, float(values.max()) * 1.15)
        axes.set(xlim=(at[0], at[-1]), ylim=(low, high))
        axes.axhspan(low, 1.0, color=_DANGER, alpha=0.08, linewidth=0)
        axes.axhline(1.0, color=INK, linewidth=1.2)
        axes.annotate(
            "too little noise: not private", (0.02, low), (0, 6), ("axes fraction", "data"), "offset points",
            color=_DANGER,
        )  # fmt: skip
        for name, style, ratios, frontier in drawn:
            axes.plot(at, ratios, label=name, **style)
            if at[0] < frontier < at[-1]:
                axes.plot(frontier, 1.0, marker="o", color=style["color"], linestyle="none", zorder=3)
        _label(axes, [(float(ratios[-1]), name, frontier, style["color"]) for name, style, ratios, frontier in drawn])
        tens = [10.0**k for k in range(2, 1 + math.ceil(math.log10(high)))]
        axes.set_yticks(*_ticks((0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10, 20, 50, *tens), low, high))
        axes.set_xticks(*_ticks((0.001, 0.01, 0.1, 1, 10, 100, 1000), float(at[0]), float(at[-1])))
        axes.minorticks_off()
    return figure


def _label(axes: "Axes", ends: list[tuple[float, str, float, str]]) -> None:
    """Name each curve at its right end, spread evenly so that no two names touch, with a thin line to the curve."""
    ends = sorted(ends)
    places = (np.arange(len(ends)) + 0.5) / len(ends)
    for place, (value, name, frontier, colour) in zip(places, ends, strict=True):
        truth = "always true" if math.isinf(frontier) else f"true to ε ≈ {_near(frontier)}"
        line: dict[str, Any] = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (1.0, value), (1.06, place), ("axes fraction", "data"), "axes fraction", arrowprops=line)
        look: dict[str, Any] = {"color": INK, "va": "center", "fontsize": 10, "linespacing": 1.15}
        axes.annotate(f"{fill(name, 21)}\n{truth}", (1.07, place), xycoords="axes fraction", **look)


def _distinct() -> dict[str, Rule]:
    """The rules by the names to show; those that are the same function under two names have both."""
    found: dict[str, Rule] = {}
    points = ((0.1, 1e-3, 1), (3.0, 1e-7, 20))
    for known in RULES:
        same = [n for n, other in found.items() if all(other.multiplier(*p) == known.multiplier(*p) for p in points)]
        words = re.sub(r"(?<=\d)_(?=\d)", ".", known.name).replace("_", " ")
        found = {f"{n}, {words}" if n in same else n: other for n, other in found.items()}
        if not same:
            found[words] = known
    return found


def _single_step(known: Rule) -> bool:
    """Whether a rule is for one step only: its noise does not grow with their number."""
    return known.multiplier(1.0, 1e-5, 1) == known.multiplier(1.0, 1e-5, 4)


def _near(value: float) -> str:
    """Three significant digits, without an exponent where it can be read."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def _ticks(places: Iterable[float], low: float, high: float) -> tuple[list[float], list[str]]:
    inside = [place for place in places if low <= place <= high]
    return inside, [f"{place:,g}" for place in inside]
