"""User-supplied code that couples records is refused when it is handed over (docs/footguns.md, 28 and 76)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from privet import Budget, dp_gd, glm, per_record
from privet._independence import user_supplied
from privet.clipping import Automatic, Clip
from privet.errors import InvalidParameter
from privet.losses import CustomFeatures, CustomLoss, LinearRecords, LogisticLoss, WeightedLoss
from privet.plan import Plan, Release, gradient_plan
from privet.solvers import exponential_mechanism

X = np.linspace(-1, 1, 60).reshape(20, 3)
Y = np.arange(20) % 2.0
BUDGET = Budget(epsilon=1, delta=1e-6)
TRIED = "user-supplied code: that it treats each record by itself was tried"


class Honest:
    """Half a squared distance, whose matrix product rounds a row differently with the number of rows beside it."""

    def values(self, theta: Any, X: Any, y: Any) -> Any:
        return (X @ theta - y) ** 2 / 2

    def gradients(self, theta: Any, X: Any, y: Any) -> Any:
        return (X @ theta - y)[:, None] * X


class Coupled(Honest):
    """The same of rows that something was done to, all together."""

    def __init__(self, how: Any) -> None:
        self.how = how

    def gradients(self, theta: Any, X: Any, y: Any) -> Any:
        return super().gradients(theta, self.how(X), y)


class Remembering(Honest):
    """A running mean, as batch normalisation has."""

    mean = 0.0

    def gradients(self, theta: Any, X: Any, y: Any) -> Any:
        self.mean = 0.9 * self.mean + 0.1 * X.mean()
        return super().gradients(theta, X - self.mean, y)


COUPLINGS: dict[str, Any] = {
    "batch mean": lambda X: X - X.mean(axis=0),
    "batch mean without NaN": lambda X: X - np.nanmean(X, axis=0),
    "largest": lambda X: X / np.abs(X).max(),
    "largest, if it is large": lambda X: X / max(1000.0, float(np.nanmax(np.abs(X)))),
    "batch norm": lambda X: X / (1e-9 + X.std(axis=0)),
    "ranks": lambda X: np.argsort(np.argsort(X, axis=0), axis=0).astype(float),
    "how many": lambda X: X / len(X),
    "copies": lambda X: X / np.array([np.sum((row == X).all(axis=1)) for row in X])[:, None],
    "the one before": lambda X: X + np.roll(X, 1, axis=0),
    "place": lambda X: X * np.arange(1, len(X) + 1)[:, None],
    "any missing": lambda X: X * (0.0 if np.isnan(X).any() else 1.0),
}


@pytest.mark.parametrize("how", COUPLINGS)
def test_a_loss_that_couples_records_is_refused(how: str) -> None:
    """Whatever one record does to the gradients of others is found on made-up ones, before a record is read.

    On what was: the batch mean moved the sum by 98 at clip 1.
    """
    with pytest.raises(InvalidParameter, match="treat each record by itself"):
        per_record(Coupled(COUPLINGS[how]), X, Y, shape=3)
    with pytest.raises(InvalidParameter, match="the feature map to treat each record by itself"):
        glm("logistic", X, Y, row_norm=1.0, features=CustomFeatures(function=COUPLINGS[how], norm=1.0))


def test_what_is_remembered_and_what_the_values_do_is_found_too() -> None:
    """A running mean; values that couple where gradients do not, as a choice among points would read them."""
    with pytest.raises(InvalidParameter, match="by itself"):
        per_record(Remembering(), X, Y, shape=3)
    loss = Coupled(lambda X: X)
    loss.values = lambda theta, X, y: (X @ theta) / np.max(y + 2)  # type: ignore[method-assign]
    with pytest.raises(InvalidParameter, match="by itself"):
        per_record(loss, X, Y, shape=3)


def custom(**parts: Any) -> CustomLoss:
    """Half the squared loss, by hand."""
    plain: Any = {"value": lambda z, y: (z - y) ** 2 / 2, "derivative": lambda z, y: z - y}
    return CustomLoss(**plain | {"curvature": lambda z, y: np.ones_like(z)} | parts)


@pytest.mark.parametrize("part", ["value", "derivative", "curvature", "label_set"])
def test_a_custom_loss_that_couples_records_is_refused(part: str) -> None:
    """Each of its functions, inside a weighted loss too; dividing by the largest moved the sum by 99 at clip 1."""
    for most in (lambda z, *y: np.abs(z) / np.abs(z).max() + 1, lambda z, *y: z.mean()):
        loss = custom(**{part: (lambda y: y >= y.mean()) if part == "label_set" else most})
        with pytest.raises(InvalidParameter, match="the loss to treat each record by itself"):
            glm(loss, X, Y, row_norm=1.0)
    with pytest.raises(InvalidParameter, match="the loss to treat each record by itself"):
        glm(loss, X, Y, row_norm=1.0, groups=np.arange(20))
    assert user_supplied(WeightedLoss(loss=loss))


@dataclass(frozen=True)
class Rule:
    """A clipping rule of one's own."""

    how: Any
    clip: float = 1.0

    def factor(self, norms: Any) -> Any:
        return self.how(norms)

    def describe(self) -> str:
        return "each gradient is clipped to norm 1"


def test_a_rule_that_couples_records_is_refused() -> None:
    """By the largest norm, by the mean: refused when the release is written down."""
    for how in (lambda norms: 1 / norms.max(), lambda norms: norms / (norms + norms.mean())):
        with pytest.raises(InvalidParameter, match="the clipping rule to treat each record by itself"):
            gradient_plan(bounding=Rule(how), noise_multiplier=1.0, steps=1, records=9, neighbours="zero_out")


def test_code_that_raises_on_a_value_is_refused() -> None:
    """An error that depends on a record would tell about it; the refusal quotes no value."""

    def strict(X: Any) -> Any:
        if np.isnan(X).any():
            raise KeyError("Jane Doe")
        return X

    with pytest.raises(InvalidParameter, match="KeyError for a made-up one") as refused:
        per_record(Coupled(strict), X, Y, shape=3)
    assert "Jane" not in str(refused.value)


def test_honest_code_passes_and_the_guarantee_says_what_was_not_proven() -> None:
    """Losses, maps, rules and problems of one's own run; their guarantees name what was only tried."""
    labels, images = (np.arange(20) % 3).astype(np.int64), np.arange(20 * 12).reshape(20, 2, 6) % 5
    assert per_record(Honest(), X, Y, shape=3).assumptions
    assert per_record(LinearRecords(loss=custom()), X.astype(np.float32), labels, shape=3).assumptions

    class Pixels:
        def values(self, theta: Any, X: Any, y: Any) -> Any:
            return (X * theta).sum(axis=(1, 2)) ** 2

        def gradients(self, theta: Any, X: Any, y: Any) -> Any:
            return 2 * (X * theta).sum(axis=(1, 2))[:, None, None] * X

    problem = per_record(Pixels(), images, shape=(2, 6))
    result = dp_gd(problem, budget=BUDGET, steps=2, clip=1.0, step_size=0.1, neighbours="zero_out")
    assert f"the loss is {TRIED}" in result.guarantee.details
    for rows in (X, sparse.csr_matrix(X)):
        mapped = glm(custom(), rows, Y, row_norm=1.0, features=CustomFeatures(function=lambda x: x * 0.5, norm=1.0))
        assert [said.split(" is ")[0] for said in mapped.assumptions] == ["the loss", "the feature map"]
    one = per_record(Honest(), X[:, :1], Y, shape=1)
    drawn = exponential_mechanism(one, epsilon=1.0, candidates=[[0.0], [1.0]], lipschitz=1.0)
    assert TRIED in drawn.guarantee.details
    rule = Rule(lambda norms: 1 / (norms + 0.5))
    plan = gradient_plan(bounding=rule, noise_multiplier=9.0, steps=1, records=20, neighbours="zero_out")
    assert f"the clipping rule is {TRIED}" in plan.guarantee(delta=1e-6).details


def test_code_of_this_library_is_not_tried() -> None:
    """Its own losses, rules and maps leave no such clause, and cost no trial."""
    assert not user_supplied(LinearRecords(loss=WeightedLoss(loss=LogisticLoss())))
    assert glm("logistic", X, Y, row_norm=1.0).assumptions == ()
    release = Release(name="g", of="g", bound=Automatic(), noise_multiplier=9.0)
    assert release.unproven == ()
    assert "user-supplied" not in Plan(releases=(release,), neighbours="zero_out").guarantee(delta=1e-6).details
    assert not user_supplied(Clip(clip=1.0))
