from __future__ import annotations

import pytest

from privet.errors import InvalidParameter
from privet.losses import SquaredLoss, loss_named
from privet.losses.lookup import LOSSES


@pytest.mark.parametrize("name", LOSSES)
def test_every_name_gives_its_loss(name: str) -> None:
    """A name gives a convex loss, and the same one each time."""
    assert loss_named(name) == LOSSES[name]
    assert loss_named(name).convex


def test_squared_is_the_one_of_the_lectures() -> None:
    """The name alone means (z − y)²; the half has a name of its own."""
    assert loss_named("squared") == SquaredLoss(factor=2.0)
    assert loss_named("half_squared") == SquaredLoss(factor=1.0)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("logit", "Did you mean 'logistic'?"),
        ("Hinge", "Did you mean 'hinge'?"),
        ("square", "Did you mean 'squared'?"),
        ("multinomal", "Did you mean 'multinomial'?"),
        ("xyz", "Use one of 'absolute', "),
        (None, "Use one of 'absolute', "),
        (["logistic"], "Expected the name of a loss"),
    ],
)
def test_unknown_names_are_answered_by_the_nearest(name: str, advice: str) -> None:
    """A misspelt name suggests the right one; a name unlike all lists them."""
    with pytest.raises(InvalidParameter) as caught:
        loss_named(name)
    assert advice in str(caught.value)


@pytest.mark.parametrize("name", ["multinomial", "quantile"])
def test_losses_that_need_a_parameter_say_so(name: str) -> None:
    """A name whose meaning depends on a parameter is refused with the call to write instead."""
    with pytest.raises(InvalidParameter, match="Pass the loss itself"):
        loss_named(name)
