from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from privet import box, glm, l2_ball, per_record, simplex
from privet.clipping import Adaptive, Automatic, Clip
from privet.errors import InvalidParameter
from privet.losses import (
    AbsoluteLoss,
    AppendOne,
    CustomFeatures,
    HuberLoss,
    LinearRecords,
    LogisticLoss,
    MultinomialLoss,
    PoissonLoss,
    RandomFourier,
    SmoothedHingeLoss,
    SquaredLoss,
    loss_named,
)
from privet.problems import records

LOSSES: list[Any] = [
    SquaredLoss(),
    SquaredLoss(factor=1, label_bound=1.0),
    LogisticLoss(),
    LogisticLoss(labels="plus_minus_one"),
    loss_named("hinge"),
    SmoothedHingeLoss(width=0.5),
    HuberLoss(threshold=1.0),
    AbsoluteLoss(),
    PoissonLoss(largest_count=5),
    MultinomialLoss(classes=3),
]
BAD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.123, 17.0, -3.0]


def data(n: int = 40, d: int = 3) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, d)) / 2, rng.choice([-1.0, 1.0], n)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_bad_values_touch_their_own_record_only(loss: Any) -> None:
    """NaN, infinities, labels outside the set: nothing raises or warns, others' shares stay.

    See docs/footguns.md, 8, 9.
    """
    X, _ = data(12)
    y = np.ones(12)
    theta = np.full((3, 3) if loss.outputs == 3 else 3, 0.7)
    rule = Clip(clip=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rest = glm(loss, np.delete(X, 4, axis=0), np.delete(y, 4), row_norm=1.0).gradient_sum(theta, rule=rule)
        for bad in BAD:
            for place in ("x", "y"):
                X2, y2 = X.copy(), y.copy()
                if place == "x":
                    X2[4, 1] = bad
                else:
                    y2[4] = bad
                for form in (X2, sparse.csr_array(X2)):
                    p = glm(loss, form, y2, row_norm=1.0)
                    diff = p.gradient_sum(theta, rule=rule).units - rest.units
                    assert sum(int(v) ** 2 for v in diff.ravel()) * Fraction(rest.step) ** 2 <= Fraction(rule.clip) ** 2
                    if not math.isfinite(bad) or (place == "y" and not loss.admissible([bad])[0]):
                        assert not diff.any()
                        assert p.loss_sum(theta, clip=1.0).units == pytest.approx(
                            glm(loss, np.delete(X2, 4, 0), np.delete(y2, 4), row_norm=1.0)
                            .loss_sum(theta, clip=1.0)
                            .units,
                            abs=0,
                        )


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.outputs == 1], ids=repr)
def test_clipped_gradients_obey_the_proven_constant(loss: Any) -> None:
    """With the problem's own Lipschitz constant as clip nothing is clipped: the plain gradient, to the grid."""
    X, y = data(60)
    y = (y + 1) / 2 if loss.admissible([0, 1]).all() else y
    p = glm(loss, X, y, row_norm=2.0, domain=l2_ball(radius=1.5))
    if p.lipschitz is None:
        pytest.skip("no constant is proven for this loss")
    theta = l2_ball(radius=1.5).project(np.array([9.0, -4.0, 2.0]))
    bounded = p.gradient_sum(theta, rule=Clip(clip=p.lipschitz), max_records=60).value / 60
    assert np.abs(bounded - p.plain_gradient(theta)).max() < 1e-8 * p.lipschitz


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_linear_and_per_record_problems_agree(loss: Any) -> None:
    """The fast exact path and one gradient a record agree to the grid: gradient, difference, slope, loss."""
    X, y = data(50)
    y = np.abs(y)
    shape = (3, 3) if loss.outputs == 3 else (3,)
    fast = glm(loss, X, y, row_norm=2.0)
    rows = fast.table.units * fast.table.step
    slow = per_record(LinearRecords(loss=loss), rows, y, shape=shape)
    rng = np.random.default_rng(2)
    theta, other = rng.normal(size=shape), rng.normal(size=shape)
    rule = Clip(clip=0.8)
    pairs = [
        (fast.gradient_sum(theta, rule=rule), slow.gradient_sum(theta, rule=rule)),
        (fast.difference_sum(theta, other, rule=rule), slow.difference_sum(theta, other, rule=rule)),
        (fast.slope_sum(theta, other, clip=0.8), slow.slope_sum(theta, other, clip=0.8)),
        (fast.loss_sum(theta, clip=0.8), slow.loss_sum(theta, clip=0.8)),
    ]
    for one, two in pairs:
        assert np.abs(one.value - two.value).max() < 50 * 1e-6
    assert np.abs(fast.plain_gradient(theta) - slow.plain_gradient(theta)).max() < 1e-12


def test_the_penalty_stays_outside_the_clip() -> None:
    """Ridge adds alpha × θ to the plain gradient and nothing to the private sum."""
    X, y = data()
    with_ridge, without = (glm("squared", X, y, row_norm=2.0, ridge=r) for r in (3.0, 0.0))
    theta = np.array([1.0, -2.0, 0.5])
    assert with_ridge.plain_gradient(theta) - without.plain_gradient(theta) == pytest.approx(3.0 * theta)
    sums = [p.gradient_sum(theta, rule=Clip(clip=0.1)).units for p in (with_ridge, without)]
    assert (sums[0] == sums[1]).all()


def test_an_appended_one_counts_in_the_norm() -> None:
    """With an intercept the row norm is √(row_norm² + 1), and rows are bounded after the map (docs/footguns.md, 31)."""
    p = glm("logistic", [[3.0, 4.0], [0.6, 0.8]], [0, 1], row_norm=1.0, features=AppendOne())
    assert p.row_norm == pytest.approx(math.sqrt(2))
    assert p.lipschitz == pytest.approx(math.sqrt(2))
    assert (np.linalg.norm(p.table.units * p.table.step, axis=1) <= math.sqrt(2)).all()
    assert p.shape == (3,)


def test_a_weight_folded_into_the_row_cannot_raise_a_share() -> None:
    """A record weighted by 100 still contributes at most the clip (docs/footguns.md, 30)."""
    p = glm("squared", np.array([[0.5, 0.5]]) * 100, [1e6], row_norm=1.0)
    total = p.gradient_sum(np.zeros(2), rule=Clip(clip=0.25))
    assert sum(int(v) ** 2 for v in total.units) * Fraction(total.step) ** 2 <= Fraction(1, 16)


@pytest.mark.parametrize(
    "features", [RandomFourier(inputs=3, frequencies=20, scale=1.0, seed=1), CustomFeatures(function=np.tanh, norm=2.0)]
)
def test_a_feature_map_treats_each_record_alone(features: Any) -> None:
    """A mapped row is the same bits whatever stands before or after it; bad rows are emptied in silence."""
    X, y = data(700)
    X[3], X[4, 0] = np.nan, np.inf
    whole = glm("squared", X, y, row_norm=2.0, features=features).table.units
    for some in (slice(1, None), slice(0, 1), slice(0, 65), slice(250, 600)):
        assert (glm("squared", X[some], y[some], row_norm=2.0, features=features).table.units == whole[some]).all()
    assert not whole[3].any()


class Kinked:
    """A gradient that jumps on the last bit of a matrix product."""

    def __init__(self) -> None:
        self.inner = LinearRecords(loss=AbsoluteLoss())

    def values(self, theta: Any, X: Any, y: Any) -> Any:
        return self.inner.values(theta, X, y)

    def gradients(self, theta: Any, X: Any, y: Any) -> Any:
        return self.inner.gradients(theta, X, y)


def test_the_number_of_records_cannot_change_a_records_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Per-record gradients that jump at the last bit of ⟨x, θ⟩ stay put when a record joins (docs/footguns.md, 4, 5).

    Found by this test: blocks of the realised size let one record more move a sum by 6 clips.
    """
    monkeypatch.setattr(records, "check_alone", lambda *_: "")  # made-up records say nothing here, and take long
    rng = np.random.default_rng(0)
    for _ in range(40):
        d, n = int(rng.integers(3, 40)), int(rng.integers(2, 90))
        theta = rng.normal(size=d)
        X = rng.normal(size=(1, d)).repeat(n + 1, 0)
        for label in {*(X[:n] @ theta), *(X @ theta)}:
            y = np.full(n + 1, label)
            sums = [
                per_record(Kinked(), X[:m], y[:m], shape=d).gradient_sum(theta, rule=Clip(clip=1.0)) for m in (n + 1, n)
            ]
            moved = sums[0].units - sums[1].units
            assert sum(int(v) ** 2 for v in moved) * Fraction(sums[0].step) ** 2 <= 1


@pytest.mark.parametrize("rule", [Clip(clip=0.5), Automatic(clip=0.5), Adaptive(clip=0.5, count_noise=1.0)])
def test_per_record_sums_add_up_over_records(rule: Any) -> None:
    """The whole sum is the sum of the records' own, count included, for any batch and shape."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    p = per_record(LinearRecords(loss=SquaredLoss()), X, y, shape=2)
    theta = np.array([0.3, -0.2])
    chosen = np.sort(rng.choice(300, 70, replace=False))
    whole = p.gradient_sum(theta, rule=rule, indices=chosen)
    alone = [p.gradient_sum(theta, rule=rule, indices=np.array([i])) for i in chosen]
    assert (whole.units == sum(part.units for part in alone)).all()
    assert whole.within == sum(part.within for part in alone)
    assert not p.gradient_sum(theta, rule=rule, indices=np.empty(0, dtype=int)).units.any()


class Summed:
    def values(self, theta: Any, X: Any, y: Any) -> Any:
        return np.array([np.sum(X)])

    def gradients(self, theta: Any, X: Any, y: Any) -> Any:
        return np.sum(X, axis=0, keepdims=True)


def test_a_loss_that_sums_over_records_is_refused() -> None:
    """A batch gradient has no per-record bound: refused by its shape, whatever the batch (docs/footguns.md, 21)."""
    p = per_record(Summed(), np.ones((2, 2)), shape=2)
    with pytest.raises(InvalidParameter, match="one row a record"):
        p.gradient_sum(np.zeros(2), rule=Clip(clip=1.0))
    with pytest.raises(InvalidParameter, match="one row a record"):
        p.loss_sum(np.zeros(2), clip=1.0)


def test_more_records_than_the_lattice_holds_are_refused() -> None:
    """The whole sum is counted, not only each block of it (docs/footguns.md, 6)."""
    p = per_record(LinearRecords(loss=SquaredLoss()), np.ones((600, 1)), np.ones(600), shape=1)
    with pytest.raises(InvalidParameter, match="at most 599 records"):
        p.gradient_sum(np.zeros(1), rule=Clip(clip=1.0), max_records=599)


@pytest.mark.parametrize(
    ("X", "y", "shape"),
    [
        (np.ones((3, 2)), np.ones(2), 2),
        (sparse.csr_array(np.ones((3, 2))), None, 2),
        (1.0, None, 1),
        (np.ones((3, 2)), None, 0),
        (np.ones((3, 2)), None, 2.0),
        (np.ones((3, 2)), None, (2, -1)),
        (np.ones((3, 2)), 1.0, 2),
    ],
)
def test_records_that_do_not_fit_are_refused(X: Any, y: Any, shape: Any) -> None:
    """Unequal lengths, sparse tables, scalars and shapes that are none: clear errors before anything runs."""
    with pytest.raises((InvalidParameter, TypeError)):
        per_record(LinearRecords(loss=SquaredLoss()), X, y, shape=shape)


@pytest.mark.parametrize(
    ("domain", "classes"),
    [(simplex(), None), (box(low=[0, 0], high=[1, 1]), None), (l2_ball(radius=1, centre=[0, 0]), 3)],
)
def test_a_domain_of_another_dimension_is_refused(domain: Any, classes: int | None) -> None:
    """The set must have the dimension of the coefficients, all classes counted."""
    X, y = data()
    loss = SquaredLoss() if classes is None else MultinomialLoss(classes=classes)
    if repr(domain).startswith("simplex"):
        assert glm(loss, X, y, row_norm=1.0, domain=domain).shape == (3,)
        return
    with pytest.raises(InvalidParameter, match="domain of dimension"):
        glm(loss, X, y, row_norm=1.0, domain=domain)


def test_unknown_losses_and_negative_penalties_are_refused() -> None:
    """What is no loss and no penalty is refused by name or value."""
    for arguments in ({"loss": "nonsense"}, {"loss": "squared", "ridge": -1.0}, {"loss": "squared", "ridge": math.nan}):
        with pytest.raises(InvalidParameter):
            glm(X=[[1.0]], y=[1.0], row_norm=1.0, **arguments)


def test_problems_do_not_print_records_or_their_number() -> None:
    """The repr of a problem shows public facts only (docs/footguns.md, 43)."""
    shown = repr(glm("squared", np.full((4321, 1), 0.777), np.zeros(4321), row_norm=1.0))
    assert "4321" not in shown
    assert "0.777" not in shown
    assert "4321" not in repr(per_record(LinearRecords(loss=SquaredLoss()), np.ones((4321, 1)), shape=1))


@pytest.mark.parametrize("odd", ["Jane Doe", None, 10**400, {}, [1, 2], 1j, np.datetime64("2020-01-01")], ids=repr)
def test_an_odd_cell_empties_its_record_and_moves_no_other(odd: Any) -> None:
    """An odd feature or label in a list of records is a missing one to `glm` and `per_record`: their sums are equal."""
    theta, rule = np.array([0.3, -0.2]), Clip(clip=1.0)
    clean: list[list[Any]] = [[0.5, 0.1], [math.nan, 0.2], [0.3, 0.4], [0.1, 0.1]]
    strange: list[list[Any]] = [clean[0], [odd, 0.2], *clean[2:]]
    targets, labels = ([1, 0, math.nan, 1], [1, 0, odd, 1])
    makers: list[Any] = [
        lambda X, y: glm("squared", X, y, row_norm=1.0),
        lambda X, y: glm("squared", X, y, row_norm=1.0, features=AppendOne(), groups=[1, 2, 2, 3]),
        lambda X, y: per_record(LinearRecords(loss=SquaredLoss()), X, y, shape=2),
    ]
    for make in makers:
        sums = [
            problem.gradient_sum(np.resize(theta, problem.shape), rule=rule)
            for problem in (make(clean, targets), make(strange, labels))
        ]
        assert np.array_equal(sums[0].units, sums[1].units)
