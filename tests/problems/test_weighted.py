"""Records with weights: what one of them can do to any sum, by brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from privet.clipping import Automatic, Bounding, Clip, LatticeSum
from privet.geometry import whole_space
from privet.losses import LogisticLoss, Loss, MultinomialLoss, Ridge, SquaredLoss, WeightedLoss
from privet.problems import LinearProblem
from privet.sums import bounded_table, gram_sum

WEIGHTS = [0.0, 1e-300, 0.3, 1.0, 1.5, 1e300, -1.0, math.nan, math.inf]
ENTRY = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 1e300, math.nan]), st.floats(-2, 2))
RECORD = st.tuples(
    st.lists(ENTRY, min_size=2, max_size=2), st.sampled_from([0.0, 1.0, 1e300, math.nan]), st.sampled_from(WEIGHTS)
)
EMPTY = ([0.0, 0.0], 0.0, 0.0)
LOSSES: list[Loss] = [SquaredLoss(factor=1.0), LogisticLoss(labels="zero_one"), MultinomialLoss(classes=2)]


def weighted(
    records: list[Any], loss: Loss = LOSSES[0], *, thin: bool = False, keep_all: bool = False
) -> LinearProblem:
    """The problem as estimators pose it; with `keep_all`, with weights that nobody checked."""
    X = np.array([x for x, _, _ in records], dtype=np.float64).reshape(-1, 2)
    pairs = np.array([[y, v] for _, y, v in records], dtype=np.float64).reshape(-1, 2)
    heavy = WeightedLoss(loss=loss)
    keep = np.ones(len(X), dtype=bool) if keep_all else heavy.admissible(pairs)
    table = bounded_table(sparse.csr_matrix(X) if thin else X, row_norm=1.0, keep=keep)
    labels = pairs if keep_all else np.where(keep[:, None], pairs, 0.0)
    return LinearProblem(heavy, table, labels, domain=whole_space(), ridge=Ridge(alpha=0.0))


def distance(one: LatticeSum, other: LatticeSum) -> Fraction:
    """Squared l2 distance in units of the clip, exactly."""
    assert one.step == other.step
    moved = sum(int(v) ** 2 for v in np.ravel(np.asarray(one.units) - np.asarray(other.units)))
    return moved * Fraction(one.step) ** 2 / Fraction(one.clip) ** 2


def check(records: list[Any], other: Any, summed: Callable[[list[Any]], LatticeSum]) -> None:
    """At most one clip for a record added, removed or emptied, two for one exchanged, its weight included."""
    whole = summed(records)
    for i in range(len(records)):
        before, after = records[:i], records[i + 1 :]
        assert distance(whole, summed([*before, *after])) <= 1  # add_remove
        assert distance(whole, summed([*before, EMPTY, *after])) <= 1  # zero_out
        assert distance(whole, summed([*before, other, *after])) <= 4  # replace_one
        heavier = (*records[i][:2], other[2])
        assert distance(whole, summed([*before, heavier, *after])) <= 4  # the same record, another weight


@settings(max_examples=40)
@given(
    st.lists(RECORD, min_size=1, max_size=3),
    RECORD,
    st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    st.sampled_from([Clip(clip=0.5), Clip(clip=1e-30), Automatic(clip=0.9, stability=0.05)]),
    st.sampled_from(LOSSES),
    st.booleans(),
)
def test_one_record_moves_a_weighted_gradient_sum_by_at_most_the_clip(
    records: list[Any], other: Any, theta: list[float], rule: Bounding, loss: Loss, unchecked: bool
) -> None:
    """Whatever its weight, even one that no estimator lets through: the clip comes after it (docs/footguns.md, 30)."""
    point = np.array(theta[:2]) if loss.outputs == 1 else np.array(theta).reshape(2, 2)
    check(records, other, lambda rows: weighted(rows, loss, keep_all=unchecked).gradient_sum(point, rule=rule))


@settings(max_examples=40)
@given(st.lists(RECORD, min_size=1, max_size=3), RECORD, st.booleans())
def test_one_record_moves_a_weighted_moment_by_at_most_its_squared_norm(
    records: list[Any], other: Any, unchecked: bool
) -> None:
    """Σ v x xᵀ has the sensitivity of Σ x xᵀ, as a weight is cut to [0, 1]; in exact arithmetic."""
    check(records, other, lambda rows: weighted(rows, keep_all=unchecked).moment_sum())


def test_a_moment_whose_weights_are_not_cut_is_caught() -> None:
    """The mutant: rows times √v with a weight of 1.5 moves the sum by more than the clip, and `check` says so."""

    def mutant(records: list[Any]) -> LatticeSum:
        rows = np.array([np.sqrt(v) * np.array(x) for x, _, v in records]).reshape(-1, 2)
        found = gram_sum(bounded_table(rows, row_norm=2.0))
        return LatticeSum(units=found.units, step=found.step, clip=1.0)

    with pytest.raises(AssertionError):
        check([([1.0, 0.0], 1.0, 1.5)], EMPTY, mutant)


@pytest.mark.parametrize("thin", [False, True])
def test_the_weighted_moment_is_what_it_says(thin: bool) -> None:
    """Σ v x xᵀ, to the rounding of rows and weights; with weights of 1 it is the plain one."""
    rng = np.random.default_rng(0)
    X, v = rng.uniform(-0.7, 0.7, size=(300, 2)), rng.uniform(0, 1, 300)
    records = [(list(x), 1.0, w) for x, w in zip(X, v, strict=True)]
    np.testing.assert_allclose(weighted(records, thin=thin).moment_sum().value, (X.T * v) @ X, atol=300 * 2.0**-13)
    ones = weighted([(x, y, 1.0) for x, y, _ in records], thin=thin)
    np.testing.assert_allclose(ones.moment_sum().value, gram_sum(ones.table).value, rtol=1e-12)
