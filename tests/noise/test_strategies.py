"""Strategies: what C and its inverse are, what they cost, and what running sums gain."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.linalg import toeplitz

from privet.accounting import Gaussian, toeplitz_sensitivity
from privet.errors import InvalidParameter
from privet.noise import (
    Banded,
    InverseBanded,
    banded_inverse_square_root,
    banded_square_root,
    correlated_mechanism,
    optimised_bands,
    running_error,
)

STRATEGIES: list[Any] = [
    banded_square_root(5),
    banded_square_root(7, momentum=0.9),
    banded_inverse_square_root(6),
    banded_inverse_square_root(9, momentum=0.9, decay=0.999),
    Banded(coefficients=(1, -0.25, 0.5)),
    InverseBanded(coefficients=(1, 0.25, -0.5)),
    Banded(coefficients=(1,)),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_the_two_columns_are_inverse(strategy: Any) -> None:
    """Sum and noise coefficients are the first columns of C and of its inverse; either has the bands."""
    c, w = strategy.sum_coefficients(30), strategy.noise_coefficients(30)
    product = np.tril(toeplitz(c)) @ np.tril(toeplitz(w))
    assert np.abs(product - np.eye(30)).max() < 1e-12
    few = w if isinstance(strategy, InverseBanded) else c
    assert np.flatnonzero(few).max() == strategy.bands - 1


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_bounds_are_above_the_coefficients_in_exact_arithmetic(strategy: Any) -> None:
    """No |c_t| is above its bound, in fractions; where noise is only subtracted, the bound is tight."""
    given = [Fraction(c) for c in strategy.coefficients]
    steps, exact = 40, []
    for t in range(steps):
        if isinstance(strategy, Banded):
            exact.append(given[t] if t < len(given) else Fraction(0))
        else:
            rest = (given[j] * exact[t - j] for j in range(1, min(t, len(given) - 1) + 1))
            exact.append(Fraction(int(t == 0)) - sum(rest, Fraction(0)))
    bounds = [Fraction(float(b)) for b in strategy.bounds(steps)]
    assert all(abs(c) <= b for c, b in zip(exact, bounds, strict=False))
    assert all(c == 0 for c in exact[len(bounds) :])
    if all(c <= 0 for c in given[1:]):
        assert all(b <= abs(c) * (1 + Fraction(1, 10**10)) for c, b in zip(exact, bounds, strict=False))


def test_the_square_roots_are_square_roots() -> None:
    """With all bands C·C are the running sums, of descent with momentum and decay too, up to 24 bits."""
    size = 12
    for momentum, decay in ((0.0, 1.0), (0.9, 1.0), (0.5, 0.9)):
        total = np.convolve(decay ** np.arange(size), momentum ** np.arange(size))[:size]
        for strategy in (
            banded_square_root(size, momentum=momentum, decay=decay),
            banded_inverse_square_root(size, momentum=momentum, decay=decay),
        ):
            root = strategy.sum_coefficients(size)
            assert np.convolve(root, root)[:size] == pytest.approx(total, abs=1e-5)


def test_noise_coefficients_of_bisr_are_never_positive_after_the_first() -> None:
    """So its bounds are its coefficients, and its price is exact (docs/proofs/correlated.md, section 2)."""
    for momentum in (0.0, 0.5, 0.9, 0.99):
        strategy = banded_inverse_square_root(300, momentum=momentum)
        assert max(strategy.coefficients[1:]) <= 0
        column = strategy.bounds(2_000)
        assert (np.diff(column) <= 0).all()


def test_the_worst_error_of_one_pass_is_the_known_one() -> None:
    """One participation, all bands: Σ binom(2k, k)²/16ᵏ, Landau's constants, (log T + γ + 4 log 2)/π + o(1).

    The square root is that of Fichtenberger, Henzinger and Upadhyay 2022 (arXiv 2202.11205).
    """
    for steps in (256, 1024):
        found = running_error(banded_square_root(steps), steps=steps)
        known = (math.log(steps) + np.euler_gamma + 4 * math.log(2)) / math.pi
        assert found.worst == pytest.approx(known, rel=1e-3)
        assert running_error(banded_inverse_square_root(steps), steps=steps).worst == pytest.approx(known, rel=1e-3)


def test_independent_noise_has_the_textbook_error() -> None:
    """C = 1: √passes, times √T at the end and √((T + 1)/2) on average."""
    found = running_error(Banded(coefficients=(1,)), steps=500, participations=5, separation=100)
    assert found.worst == pytest.approx(math.sqrt(5 * 500), rel=1e-12)
    assert found.mean == pytest.approx(math.sqrt(5 * 501 / 2), rel=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_error_is_that_of_dense_matrices(momentum: float) -> None:
    """Root mean square and largest row of A·C⁻¹, times the sensitivity, computed with dense matrices."""
    strategy, steps = banded_inverse_square_root(4, momentum=momentum), 30
    a = np.tril(toeplitz(np.convolve(np.ones(steps), momentum ** np.arange(steps))[:steps]))
    rows = np.linalg.norm(a @ np.linalg.inv(np.tril(toeplitz(strategy.sum_coefficients(steps)))), axis=1)
    found = running_error(strategy, steps=steps, participations=3, separation=10, momentum=momentum)
    scale = toeplitz_sensitivity(strategy.bounds(steps), steps=steps, participations=3, separation=10)
    assert found.worst == pytest.approx(scale * rows.max(), rel=1e-10)
    assert found.mean == pytest.approx(scale * math.sqrt(np.mean(rows**2)), rel=1e-10)


@pytest.mark.parametrize("of", ["mean", "worst"])
def test_optimised_bands_are_a_local_optimum(of: str) -> None:
    """No coefficient moved by 0.01 lowers the error, and the square root, where the search began, is worse."""
    asked = {"steps": 120, "participations": 1, "separation": 120}
    best = optimised_bands(6, steps=120, of=of)
    error = getattr(running_error(best, **asked), of)
    assert error < getattr(running_error(banded_square_root(6), **asked), of)
    for place in range(1, 6):
        for move in (-0.01, 0.01):
            moved = list(best.coefficients)
            moved[place] += move
            assert getattr(running_error(Banded(coefficients=tuple(moved)), **asked), of) > error * (1 - 1e-9)


def test_independent_noise_is_never_dearer() -> None:
    """A strategy begins with 1, so whoever draws z without correlating it releases less than was paid for."""
    for strategy in STRATEGIES:
        asked: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 12, "participations": 3, "separation": 4}
        plain = correlated_mechanism(Banded(coefficients=(1,)), **asked)
        found = correlated_mechanism(strategy, **asked)
        assert isinstance(plain, Gaussian)
        assert isinstance(found, Gaussian)
        assert found.noise_multiplier <= plain.noise_multiplier * (1 + 1e-14)


@pytest.mark.parametrize("bad", [(), (0.5, 1.0), (1.0, math.nan), (1.0, "a"), (1.0, True), (1.0, 100.0), (2.0,)])
def test_coefficients_that_fit_no_run_are_refused(bad: Any) -> None:
    """Nothing, a first one that is not 1, NaN, texts, truth values, and sums beyond 64."""
    for kind in (Banded, InverseBanded):
        with pytest.raises(InvalidParameter, match="coefficients"):
            kind(coefficients=bad)


def test_an_inverse_that_outgrows_floats_is_refused() -> None:
    """Noise coefficients that add up beyond 1 may have an exploding inverse."""
    with pytest.raises(InvalidParameter, match="outgrow"):
        InverseBanded(coefficients=(1, -60.0)).bounds(1_000)
