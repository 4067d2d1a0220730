"""Noise against batch size, for a number of gradients that one can afford: how large a batch is large enough."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from privet.errors import InvalidParameter
from privet.plan import Choices
from privet.report.canvas import canvas, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROUND = (1, 1.5, 2, 3, 5, 7)


def batches_figure(
    found: Mapping[str, Choices],
    *,
    title: str = "How large a batch",
    subtitle: str = "the dot is the one to begin with",
) -> "Figure":
    """Draw the noise on the average of all gradients against the batch size, a curve for each plan; a dot is `chosen`.

    Parameters
    ----------
    found : by name, what `plan_training` found for one number of gradients, e.g. for several epsilons

    Examples
    --------
    >>> from privet.plan import plan_training
    >>> asked = {"records": 1000, "delta": 1e-6, "compute": 10_000}
    >>> figure = batches_figure({f"ε = {epsilon}": plan_training(epsilon=epsilon, **asked) for epsilon in (1, 4)})
    >>> [line.get_label() for line in figure.axes[0].lines if not line.get_label().startswith("_")]
    ['ε = 1', 'ε = 4']
    """
    if not found:
        raise InvalidParameter("""Expected at least one result of plan_training, got none: there is nothing to draw.
            Pass e.g. {"ε = 3": plan_training(...)}.""")
    steps = {row.batch_size: row.steps for choices in found.values() for row in choices.rows}
    with canvas(title, subtitle) as (figure, axes):
        for (name, choices), style in zip(found.items(), styles(), strict=False):
            axes.plot([r.batch_size for r in choices.rows], [r.mean_noise for r in choices.rows], label=name, **style)
            axes.plot(choices.chosen.batch_size, choices.chosen.mean_noise, "o", color=style["color"], markersize=8)
        at = sorted(steps)
        axes.set(xscale="log", yscale="log", xlabel="batch size, and the steps that it leaves")
        axes.set_ylabel("noise on the average of all gradients, in clips")
        axes.set_xticks(at, [f"{size:,}\n{steps[size]:,}" for size in at], fontsize=9)
        noises = [row.mean_noise for choices in found.values() for row in choices.rows]
        first, last = (math.floor(math.log10(noise)) for noise in (min(noises), max(noises)))
        ticks = {f"{times:g}e{power}": times * 10.0**power for power in range(first, last + 1) for times in _ROUND}
        seen = {name: noise for name, noise in ticks.items() if min(noises) <= noise <= max(noises)}
        axes.set_yticks(list(seen.values()), list(seen))
        axes.minorticks_off()
        axes.legend(loc="upper right", title="a dot: to begin with")
    return figure
