"""Four figures of a run's privacy cost: the profile, epsilon against steps, the trade-off curve, all accountants."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privet import accounting
from privet._checks import whole
from privet.accounting.events import Event
from privet.accounting.tradeoff import best_attack
from privet.errors import InvalidParameter
from privet.privacy import Neighbours, check_delta, check_neighbours, up, words
from privet.report.canvas import COLOURS, FAINT, INK, canvas, styles
from privet.report.meaning import reach, run_profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def profile_figure(
    runs: Event | Mapping[str, Event],
    *,
    neighbours: Neighbours,
    epsilons: Sequence[float] | NDArray[np.float64] | None = None,
    mark: tuple[float, float] | None = None,
    accountant: str = "auto",
) -> "Figure":
    """Draw delta against epsilon, one curve a run, delta on a logarithmic scale.

    Promise: every curve is `privet.accounting.profile`, an upper bound. A delta of 0 is off the scale and left out.

    Parameters
    ----------
    runs : one event, or events by the names to put in the legend
    neighbours, accountant : as in :func:`privet.accounting.profile`
    epsilons : where to compute; by default 0 up to where delta is about 1e-12
    mark : a pair (epsilon, delta) to point out

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> profile_figure(Gaussian(noise_multiplier=2.0), neighbours="add_remove").axes[0].get_ylabel()
    'δ (probability)'
    """
    check_neighbours(neighbours)
    named = _named(runs)
    with canvas("Privacy profile", f"δ for every ε, upper bound; {words(neighbours).change}") as (figure, axes):
        smallest, ends = 1.0, []
        for style, (name, run) in zip(styles(), named.items(), strict=False):
            at = epsilons
            if at is None:
                at = np.linspace(0.0, reach(run, neighbours=neighbours, accountant=accountant), 61)
            deltas = accounting.profile(run, at, neighbours=neighbours, accountant=accountant)
            axes.plot(at, np.where(deltas > 0, deltas, np.nan), label=name, **style)
            smallest = min(smallest, float(np.min(deltas, where=deltas > 0, initial=1.0)))
            ends += [float(np.min(at)), float(np.max(at)) * 1.02]
        axes.set(xlabel="ε (nats)", ylabel="δ (probability)", yscale="log", ylim=(smallest / 3, 2.0))
        axes.set_xlim(min(ends), max(ends))
        if mark is not None:
            axes.plot(*mark, marker="o", color=INK, linestyle="none", zorder=3)
            axes.annotate(
                f"ε = {up(mark[0], 4)}, δ = {up(mark[1], 3)}", mark, (8, 6), textcoords="offset points", color=INK
            )
        _legend(axes, named)
    return figure


def steps_figure(
    steps_of: Event | Mapping[str, Event],
    *,
    steps: int | Sequence[int],
    delta: float,
    neighbours: Neighbours,
    accountants: Sequence[str] = ("auto",),
) -> "Figure":
    """Draw epsilon against the number of steps, one curve a kind of step and accountant.

    Promise: every point is `privet.accounting.epsilon(step * count, delta=...)`, an upper bound.

    Parameters
    ----------
    steps_of : one step, or steps by the names to put in the legend
    steps : the last step (about thirty points from 1 up to it are computed), or the very numbers of steps
    delta, neighbours : as in :func:`privet.accounting.epsilon`
    accountants : names; several, to see how much a looser one overstates

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> figure = steps_figure(Gaussian(noise_multiplier=50.0), steps=100, delta=1e-6, neighbours="add_remove")
    >>> figure.axes[0].get_xlabel()
    'steps'
    """
    check_delta(delta)
    check_neighbours(neighbours)
    named = _named(steps_of)
    if isinstance(steps, Iterable):
        counts = [int(step) for step in steps]
    else:
        counts = _counts(whole("steps", steps, because="a run has whole steps", use="Use e.g. 1000."))
    curves = {
        ", ".join(word for word in (name, accountant if len(accountants) > 1 else "") if word): (event, accountant)
        for name, event in named.items()
        for accountant in accountants
    }
    with canvas("Privacy spent", f"ε at δ = {delta:.3g}, upper bound; {words(neighbours).change}") as (figure, axes):
        for style, (name, (event, accountant)) in zip(styles(), curves.items(), strict=False):
            spent = [
                accounting.epsilon(event * count, delta=delta, neighbours=neighbours, accountant=accountant)
                for count in counts
            ]
            axes.plot(counts, spent, label=name, **style)
        axes.set(xlabel="steps", ylabel="ε (nats)", xlim=(0, max(counts)))
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}"))
        _legend(axes, curves)
    return figure


def tradeoff_figure(runs: Event | Mapping[str, Event], *, neighbours: Neighbours, accountant: str = "auto") -> "Figure":
    """Draw the least false negative rate against the false positive rate of the best attack.

    Promise: no attack lies below a curve. The diagonal is perfect privacy: an attack no better than a coin.

    Parameters
    ----------
    runs : one event, or events by the names to put in the legend
    neighbours, accountant : as in :func:`privet.accounting.profile`

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> figure = tradeoff_figure(Gaussian(noise_multiplier=1.0), neighbours="add_remove")
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['perfect privacy', 'this run']
    """
    check_neighbours(neighbours)
    named = _named(runs) if isinstance(runs, Mapping) else {"this run": runs}
    rates = np.unique(np.concatenate((np.geomspace(1e-5, 0.05, 60), np.linspace(0.05, 1.0, 96))))
    with canvas("What the best attack must get wrong", words(neighbours).change, size=(6.0, 6.2)) as (figure, axes):
        axes.plot([0, 1], [1, 0], color=FAINT, linewidth=1.2, label="perfect privacy")
        for style, (name, run) in zip(styles(), named.items(), strict=False):
            profile = run_profile(run, neighbours=neighbours, accountant=accountant)
            misses = 1.0 - best_attack(profile, rates, grid=64, refinements=0)
            axes.plot(rates, misses, label=name, **style)
            if len(named) == 1:
                axes.fill_between(rates, misses, color=style["color"], alpha=0.1, linewidth=0)
                if np.interp(0.4, rates, misses) > 0.06:  # else there is no room for the words
                    axes.text(0.02, 0.015, "no attack gets here", color=style["color"])
        axes.set(xlabel="false positive rate", ylabel="false negative rate, at least", aspect="equal")
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.legend(loc="upper right")
    return figure


def comparison_figure(run: Event, *, delta: float, neighbours: Neighbours) -> "Figure":
    """Draw every accountant's epsilon as a bar with its value, the tightest first.

    Promise: the numbers are those of `privet.accounting.compare`; an accountant that has no bound says so.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> figure = comparison_figure(Gaussian(noise_multiplier=5.0), delta=1e-6, neighbours="add_remove")
    >>> figure.axes[0].get_xlabel()
    'ε (nats)'
    """
    check_neighbours(neighbours)
    rows = accounting.compare(run, delta=delta, neighbours=neighbours).rows
    rows = tuple(sorted(rows, key=lambda row: math.inf if row.epsilon is None else row.epsilon))
    values = [math.nan if row.epsilon is None or math.isinf(row.epsilon) else row.epsilon for row in rows]
    known = [value for value in values if not math.isnan(value)]
    best, longest = (min(known), max(known)) if known else (0.0, 1.0)
    # the bars share a scale that starts at 0, so hopeless accountants are cut off rather than squeezing the rest
    near = [value for value in known if value <= 6 * best]
    end = (longest if len(near) == len(known) else 1.6 * max(near)) or 1.0
    size = (7.4, 1.5 + 0.42 * len(rows))
    subtitle = f"ε at δ = {delta:.3g}, upper bounds; {words(neighbours).change}"
    with canvas("Every accountant's epsilon for the same run", subtitle, size=size) as (figure, axes):
        drawn = [0.0 if math.isnan(value) else min(value, end) for value in values]
        colours = [COLOURS[0] if value == best else "#9dbfd6" if value <= end else "#dde5ea" for value in values]
        axes.barh(range(len(rows)), drawn, color=colours, height=0.68)
        for place, (row, value, length) in enumerate(zip(rows, values, drawn, strict=True)):
            if row.epsilon is None or math.isnan(value):
                said, colour = ("no bound" if row.epsilon is None else "∞"), FAINT
            else:
                said, colour = up(value, 5) + (" (bar cut)" if value > end else ""), INK
            axes.annotate(said, (length, place), (5, 0), textcoords="offset points", va="center", color=colour)
        axes.set_yticks(range(len(rows)), [row.accountant for row in rows])
        axes.invert_yaxis()
        axes.set(xlabel="ε (nats)", xlim=(0, end * (1.3 if longest > end else 1.15)))
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    return figure


def _named(runs: Event | Mapping[str, Event]) -> Mapping[str, Event]:
    named = runs if isinstance(runs, Mapping) else {"": runs}
    if not named:
        raise InvalidParameter("Expected at least one run to draw, got none. Pass an event, or events by name.")
    return named


def _legend(axes: "Axes", named: Mapping[str, object]) -> None:
    if len(named) > 1:
        axes.legend()


def _counts(last: int) -> list[int]:
    """About thirty whole numbers from 1 to `last`: denser at first, where epsilon rises fastest."""
    return sorted({max(1, round(last * fraction**2)) for fraction in np.linspace(0.0, 1.0, 31)})
