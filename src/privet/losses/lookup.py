"""Losses by name, for the short way of writing a problem: ``glm("logistic", …)``."""

import difflib

from privet.errors import InvalidParameter
from privet.losses.hinge import HingeLoss, SmoothedHingeLoss
from privet.losses.huber import HuberLoss
from privet.losses.logistic import LogisticLoss
from privet.losses.loss import Loss
from privet.losses.poisson import PoissonLoss
from privet.losses.quantile import AbsoluteLoss
from privet.losses.squared import SquaredLoss

LOSSES: dict[str, Loss] = {
    "absolute": AbsoluteLoss(),
    "half_squared": SquaredLoss(factor=1.0),
    "hinge": HingeLoss(),
    "huber": HuberLoss(),
    "logistic": LogisticLoss(labels="zero_one"),
    "logistic_plus_minus_one": LogisticLoss(labels="plus_minus_one"),
    "poisson": PoissonLoss(),
    "smoothed_hinge": SmoothedHingeLoss(),
    "squared": SquaredLoss(factor=2.0),
}
"""The losses that need no parameter, or have a usual one, by name."""

_NEED_PARAMETER = {"multinomial": "MultinomialLoss(classes=3)", "quantile": "QuantileLoss(level=0.9)"}


def loss_named(name: str) -> Loss:
    """Return the loss of that name with its default parameters; an unknown name is answered by the nearest one.

    Examples
    --------
    >>> loss_named("logistic")
    LogisticLoss(labels='zero_one')
    >>> loss_named("logstic")
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected the name of a loss, got 'logstic': there is none of that name. Did you \
mean 'logistic'?
    """
    text = str(name)
    if text in LOSSES:
        return LOSSES[text]
    if text in _NEED_PARAMETER:
        raise InvalidParameter(f"""Expected a loss that needs no parameter, got {name!r}: its meaning depends on one.
            Pass the loss itself, e.g. {_NEED_PARAMETER[text]}.""")
    near = difflib.get_close_matches(text, [*LOSSES, *_NEED_PARAMETER], n=1)
    advice = f"Did you mean {near[0]!r}?" if near else "Use one of " + ", ".join(map(repr, LOSSES)) + "."
    raise InvalidParameter(f"Expected the name of a loss, got {name!r}: there is none of that name. {advice}")
