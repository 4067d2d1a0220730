"""Accuracy against epsilon: what privacy costs a model, as a figure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privet.errors import InvalidParameter
from privet.report.canvas import FAINT, INK, canvas, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def accuracy_figure(
    scores: Mapping[float, Sequence[float]],
    *,
    plain: float,
    floor: float,
    title: str = "Accuracy against ε",
    subtitle: str = "",
) -> "Figure":
    """Draw scores against epsilon with the plain model's above and the constant guess's below.

    Scores should come from rows that are public or kept apart: accuracy on private training rows is itself private.

    Parameters
    ----------
    scores : for each epsilon, the scores of one or more runs; the line is their mean, the band their range
    plain : score of the model without privacy
    floor : score of always guessing the commonest class, or the mean

    Examples
    --------
    >>> figure = accuracy_figure({0.1: [0.7, 0.72], 1.0: [0.9]}, plain=0.95, floor=0.5)
    >>> figure.axes[0].get_xlabel()
    'ε (nats)'
    """
    if not scores or not all(len(runs) for runs in scores.values()):
        raise InvalidParameter("""Expected at least one epsilon with at least one score, got none: there is nothing to
            draw. Pass e.g. {1.0: [0.9, 0.91]}.""")
    at = sorted(scores)
    means = [float(np.mean(scores[e])) for e in at]
    with canvas(title, subtitle) as (figure, axes):
        style = next(iter(styles()))
        low, high = ([end(scores[e]) for e in at] for end in (min, max))
        axes.fill_between(at, low, high, color=style["color"], alpha=0.2, linewidth=0)
        axes.plot(at, means, marker="o", label="private", **style)
        for level, name, colour in ((plain, "without privacy", INK), (floor, "constant guess", FAINT)):
            axes.axhline(level, color=colour, linestyle=(0, (4, 3)), linewidth=1.4)
            axes.annotate(
                f"{name} {level:.3g}", (at[0], level), (2, 4), textcoords="offset points", color=colour, fontsize=10
            )
        axes.set(xlabel="ε (nats)", ylabel="score on rows kept apart", xscale="log")
        axes.set_xticks(at, [f"{e:g}" for e in at], minor=False)
        axes.minorticks_off()
        axes.legend(loc="center right")
    return figure
