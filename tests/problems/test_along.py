from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from privet import box, glm
from privet.arrays import Vector
from privet.clipping import Clip
from privet.sums import glm_sum

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(90, 3)), RNG.integers(0, 2, 90).astype(float)
THETA, POINT = np.array([0.5, -1.0, 2.0]), np.array([0.7, -0.3])


def pair(score: Vector) -> Vector:
    return np.asarray(np.column_stack([np.clip(score, -2, 2), np.ones_like(score)]) / np.sqrt(5))


@pytest.mark.parametrize("kind", ["dense", "sparse", "people"])
def test_sums_are_those_of_rows_made_by_hand(kind: str) -> None:
    """A record's new row is the function of its ⟨x, θ⟩, to the 16 bits of rows; labels, people and counts stay."""
    groups = np.arange(90) // 3 if kind == "people" else None
    data: Any = sparse.csr_matrix(X) if kind == "sparse" else X
    problem: Any = glm("logistic", data, Y, row_norm=4.0, groups=groups)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    by_hand: Any = glm("logistic", pair(X / np.maximum(norms / 4, 1) @ THETA), Y, row_norm=1.0, groups=groups)
    along = problem.along(THETA, pair, columns=2)
    assert along.records == problem.records
    assert along.shape == (2,)
    settings: Any = {"rule": Clip(clip=1.0), "max_records": 128}
    found, expected = (p.gradient_sum(POINT, **settings).value for p in (along, by_hand))
    np.testing.assert_allclose(found, expected, atol=90 * 2.0**-12)
    assert problem.shape == (3,)  # what it was made of is as it was
    assert np.array_equal(problem.gradient_sum(THETA, **settings).value, problem.gradient_sum(THETA, **settings).value)


def test_an_empty_record_stays_empty() -> None:
    """Though the function makes a constant of a score of 0: one that has a row of its own is another."""
    gone, rows = np.where(np.arange(90) < 9, np.nan, Y), np.where(np.arange(90)[:, None] < 9, np.nan, X)
    problem: Any = glm("logistic", rows, gone, row_norm=4.0)
    fewer: Any = glm("logistic", X[9:], Y[9:], row_norm=4.0)
    settings: Any = {"rule": Clip(clip=1.0), "max_records": 128}
    found, expected = (p.along(THETA, pair, columns=2).gradient_sum(POINT, **settings) for p in (problem, fewer))
    assert found.units.tolist() == expected.units.tolist()


def test_a_score_beyond_floats_does_not_warn() -> None:
    """A warning would tell that there is such a record: infinity times the 0 of one score, or its row not a number."""
    rows = np.array([[1e119, 1e119], [1e119, -1e119], [0.0, 0.0]])
    problem: Any = glm("logistic", rows, np.ones(3), row_norm=2e119)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        along = problem.along(np.full(2, 1e308), lambda score: pair(score - score), columns=2)
    assert (along.table.inverse_norms == 0).all()


def test_rows_that_are_too_long_are_shortened_and_no_penalty_is_left() -> None:
    """Whatever the function makes, one record's share is within the clip; penalty and domain were for other θ."""
    problem: Any = glm("logistic", X, Y, row_norm=4.0, domain=box(low=-1.0, high=1.0, size=3), ridge=0.5)
    along = problem.along(THETA, lambda score: np.column_stack([score * 1e6, score / 0.0]), columns=2)
    assert (along.table.inverse_norms == 0).all()  # not finite: no row at all
    along = problem.along(THETA, lambda score: np.column_stack([score * 1e6, score]), columns=2)
    squares = np.square(along.table.units.astype(np.int64)).sum(axis=1)
    assert (squares * along.table.step**2 <= 1).all()
    assert along.ridge.alpha == 0
    assert np.isinf(along.domain.radius)
    each = [
        glm_sum(along.loss.derivative, along.table, Y, POINT * 99, rule=Clip(clip=0.5), indices=np.array([i]))
        for i in range(90)
    ]
    assert max(np.linalg.norm(total.value) for total in each) <= 0.5
