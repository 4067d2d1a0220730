"""How the constant is settled after the choice of slopes: from public facts alone."""

import math
from typing import TYPE_CHECKING

from privet.losses import Loss, WeightedLoss
from privet.solvers.settling import Settling

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel

_SHARE = (0.2, 0.35, 0.08)  # of the budget
_SPREAD = 0.2  # of residuals about a constant, in halves of a target's range that was looked for
# At an effective sample size of `_AT`, and with which power of it that grows.
_CLIP = {"regression": (0.15, 1 / 2), "counts": (1.5, 1 / 3)}
_AT = 30.0
_DENSE = 1.2  # density of targets at their median, a half range


def settled_share(effective: float) -> float:
    """How much of the budget is spent on it: less, where there is more to be told from noise."""
    most, power, least = _SHARE
    return min(max(most * (40 / max(effective, 1.0)) ** power, least), most)


def settling_for(model: "PrivateLinearModel", loss: Loss, effective: float) -> Settling:
    """What is cut off biases the constant, what is not is noise: the more can be told from noise, the less is cut."""
    inner = loss.loss if isinstance(loss, WeightedLoss) else loss
    if model._task == "quantile":
        level = model._level  # type: ignore[attr-defined]  # which quantile regressors have
        return Settling(
            clip=inner.lipschitz() or 1.0, curvature=_DENSE * math.sqrt(4 * level * (1 - level)), longest=0.2
        )
    least, power = _CLIP[model._task]
    clip = least * max(effective / _AT, 0.5) ** power
    if model._task == "counts":
        return Settling(clip=clip, curvature=0.9)
    clip = min(clip, inner.lipschitz() or math.inf)
    return Settling(clip=clip, curvature=math.erf(clip / (_SPREAD * math.sqrt(2))), longest=0.3)
