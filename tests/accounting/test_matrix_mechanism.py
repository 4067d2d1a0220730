"""The matrix mechanism as one Gaussian release, against all patterns of participation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from privet.accounting import Gaussian, Pure, matrix_mechanism
from privet.accounting.pairs.pair import Reals
from privet.errors import InvalidParameter


def brute_force(matrix: Reals, times: int, apart: int) -> float:
    """The furthest that one record moves C·x, over all sets of steps and all signs."""
    steps, most = matrix.shape[1], 0.0
    for size in range(1, times + 1):
        for chosen in itertools.combinations(range(steps), size):
            if all(b - a >= apart for a, b in itertools.pairwise(chosen)):
                for signs in itertools.product((-1, 1), repeat=size):
                    most = max(most, float(np.linalg.norm(matrix[:, chosen] @ np.array(signs))))
    return most


def moved(matrix: Reals, times: int = 1, apart: int = 1) -> float:
    run = matrix_mechanism(matrix, noise_multiplier=1.0, participations=times, separation=apart)
    assert isinstance(run, Gaussian)
    return 1 / run.noise_multiplier


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("times", "apart"), [(1, 1), (2, 1), (2, 3), (3, 2), (6, 1)])
def test_the_sensitivity_covers_every_pattern(seed: int, times: int, apart: int) -> None:
    """No set of steps and signs moves C·x further; one step, and non-negative C with all steps, attain the bound."""
    rng = np.random.default_rng(seed)
    matrix = np.tril(rng.normal(size=(6, 6)))
    truth = brute_force(matrix, times, apart)
    assert truth <= moved(matrix, times, apart) * (1 + 1e-15)
    if times == 1:
        assert moved(matrix) == pytest.approx(truth, rel=1e-14)
    if times == 6:
        assert moved(np.abs(matrix), 6) == pytest.approx(brute_force(np.abs(matrix), 6, 1), rel=1e-12)


def test_banded_strategies_are_exact() -> None:
    """Columns `separation` apart share no row: the bound is the heaviest choice of columns, and attained."""
    band = np.tril(np.triu(np.ones((9, 9)), -1)) * np.linspace(1, 2, 9)
    assert moved(band, 3, 2) == pytest.approx(brute_force(band, 3, 2), rel=1e-14)
    identity = np.eye(5)
    assert moved(identity, 3) == pytest.approx(math.sqrt(3), rel=1e-14)


def test_extremes_neither_overflow_nor_vanish() -> None:
    """Entries of 1e200 and 1e-200 scale the noise; a matrix of zeros releases nothing."""
    for scale in (1e200, 1e-200):
        assert moved(scale * np.eye(3)) == pytest.approx(scale, rel=1e-14)
        assert moved(scale * np.eye(3)) >= scale
    assert matrix_mechanism(np.zeros((2, 2)), noise_multiplier=1.0) == Pure(epsilon=0.0)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [[math.nan]], [["a"]], [[]], [[True]]])
def test_what_is_no_matrix_is_refused(bad: object) -> None:
    """Vectors, NaN, texts, nothing and truth values are no strategy."""
    with pytest.raises(InvalidParameter, match="strategy"):
        matrix_mechanism(bad, noise_multiplier=1.0)
