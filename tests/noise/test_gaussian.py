from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from privet.accounting.theorems.gaussian_profile import delta_bounds
from privet.errors import InvalidParameter
from privet.noise import fast, rounded_gaussian, rounded_laplace, samplers
from privet.randomness import Words, fixed_seed_invalidates_guarantee, system_random

STDDEV = 2.0**20
DRAWS = 1 << 22
CELLS = 64
LEVEL = 1e-7  # of each of the statistics below

Floats = fast.Floats


def p_values(normal: Floats) -> dict[str, float]:
    """Two-sided p-values of what standard normals, drawn by this sampler, could get wrong."""
    z = normal.ravel()
    blocks = z.reshape(
        -1, 2, fast.BLOCK // 2
    )  # a pair has its cosine in the first half of a block, its sine in the other
    squares = (z * z - 1.0) / math.sqrt(2.0)
    paired = (blocks * blocks - 1.0) / math.sqrt(2.0)
    means = {
        "mean": (z, 1.0),
        "variance": (squares, 1.0),
        "fourth moment": (z**4 - 3.0, math.sqrt(96.0)),
        "neighbours": (z[1:] * z[:-1], 1.0),
        "neighbours' sizes": (squares[1:] * squares[:-1], 1.0),
        "pairs": (blocks[:, 0] * blocks[:, 1], 1.0),
        "pairs' sizes": (paired[:, 0] * paired[:, 1], 1.0),
        "from block to block": (blocks[1:] * blocks[:-1], 1.0),
    }
    found = {
        name: math.erfc(abs(terms.mean()) * math.sqrt(terms.size) / spread / math.sqrt(2.0))
        for name, (terms, spread) in means.items()
    }
    cells = np.minimum((special.ndtr(z) * CELLS).astype(int), CELLS - 1)
    found["cells"] = float(stats.chisquare(np.bincount(cells, minlength=CELLS)).pvalue)
    return found


def caught(normal: Floats) -> set[str]:
    return {name for name, p in p_values(normal).items() if p < LEVEL}


@pytest.fixture(scope="module")
def normal() -> Floats:
    return rounded_gaussian(fixed_seed_invalidates_guarantee(2024), STDDEV, DRAWS) / STDDEV


@pytest.mark.medium
def test_noise_is_standard_normal_and_independent(normal: Floats) -> None:
    """False positive rate 9e-7 for all nine statistics; 2^22 draws.

    Caught with power 0.99 (5.33 + 2.33 standard errors): a variance off by 0.53 %, a mean off by 0.0037 deviations,
    a correlation of 0.0037 with the next coordinate, inside a pair, or with the block before.
    """
    assert caught(normal) == set()


MUTANTS: dict[str, tuple[Callable[[Floats], Floats], str]] = {
    "noise halved": (lambda z: z / 2, "variance"),
    "variance 1 % too small": (lambda z: z * math.sqrt(0.99), "variance"),
    "variance 1 % too large": (lambda z: z * math.sqrt(1.01), "variance"),
    "neighbours correlated by 0.01": (
        lambda z: math.sqrt(0.9999) * z + 0.01 * np.concatenate([z[:1], z[:-1]]),
        "neighbours",
    ),
    "one size for two neighbours": (
        lambda z: np.copysign(np.repeat(abs(z[::2]), 2), z),
        "neighbours' sizes",
    ),
    "a block repeated": (
        lambda z: np.repeat(z.reshape(-1, fast.BLOCK)[::2], 2, axis=0).ravel(),
        "from block to block",
    ),
    "no tail beyond 3.5": (lambda z: np.clip(z, -3.5, 3.5), "fourth moment"),
    "uniform of the same variance": (lambda z: (special.ndtr(z) - 0.5) * math.sqrt(12.0), "cells"),
}


@pytest.mark.medium
@pytest.mark.parametrize(("mutant", "statistic"), MUTANTS.values(), ids=MUTANTS)
def test_the_statistics_catch_a_mutant(normal: Floats, mutant: Callable[[Floats], Floats], statistic: str) -> None:
    """Each named defect is caught by the statistic meant for it."""
    assert statistic in caught(mutant(normal))


@pytest.mark.medium
def test_the_statistics_catch_a_mutant_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant in the code: one radius for two pairs, as a repeated word would give."""
    usual = fast.exponential

    def repeated(bits: Words, tail: Words, scratch: fast.Scratch) -> tuple[Floats, np.ndarray]:
        return usual(np.repeat(bits[::2], 2), np.repeat(tail[::2], 2), scratch)

    monkeypatch.setattr(samplers, "exponential", repeated)
    noise = rounded_gaussian(fixed_seed_invalidates_guarantee(2024), STDDEV, DRAWS) / STDDEV
    assert "neighbours' sizes" in caught(noise)


@pytest.mark.medium
def test_laplace_noise_has_its_law_and_is_independent() -> None:
    """False positive rate 7e-7; 2^22 draws, made normal by inversion; power 0.99 as for the Gaussian.

    Mutant: a scale 1 % too small.
    """
    x = rounded_laplace(fixed_seed_invalidates_guarantee(9), STDDEV, DRAWS) / STDDEV

    def as_normal(x: Floats) -> Floats:
        return np.asarray(np.copysign(special.ndtri(0.5 * np.exp(-abs(x))), x))

    assert caught(as_normal(x)) == set()
    assert {"variance", "cells"} <= caught(as_normal(0.99 * x))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(("stddev", "move"), [(2**10, 2**10), (2**10, 300), (2**12, 2**11)])
def test_rounded_noise_costs_what_the_accountant_says(stddev: int, move: int, epsilon: float) -> None:
    """δ(ε) of the exact cell probabilities is at most the continuous Gaussian's, and close to it.

    Mutant: noise halved costs more than the accountant's bound.
    """

    def delta(scale: float) -> float:
        cells = np.arange(-40 * stddev, 40 * stddev + 1)

        def law(centre: int) -> Floats:
            distance = abs(cells - centre)  # by symmetry the far side: no cancellation
            return np.asarray(special.ndtr((0.5 - distance) / scale) - special.ndtr((-0.5 - distance) / scale))

        return float(np.maximum(law(move) - math.exp(epsilon) * law(0), 0.0).sum())

    upper = delta_bounds(move / stddev, epsilon)[1]
    assert (1 - 1e-4) * upper <= delta(stddev) <= upper * (1 + 1e-10)
    assert delta(stddev / 2) > 1.2 * upper


@pytest.mark.parametrize("stddev", [0.0, -1.0, 1023.999, math.nan, math.inf, 2.0**50 * 1.01, "1024", None])
def test_noise_levels_that_promise_nothing_are_refused(stddev: float) -> None:
    """Zero, negative, NaN, or too coarse a lattice: refused, with what to do."""
    for draw in (rounded_gaussian, rounded_laplace):
        with pytest.raises(InvalidParameter, match="Choose the step"):
            draw(system_random(), stddev, 3)


@pytest.mark.parametrize("size", [-1, 1.5, (2, -1), "3", None, True])
def test_sizes_that_are_no_sizes_are_refused(size: int) -> None:
    """A size is a whole number or a tuple of them."""
    with pytest.raises(InvalidParameter, match="size"):
        rounded_gaussian(system_random(), 2.0**20, size)


def test_least_and_largest_level_are_drawn() -> None:
    """2^10 and 2^50 both work, and every integer fits."""
    for level in (2.0**10, 2.0**50):
        for draw in (rounded_gaussian, rounded_laplace):
            noise = draw(system_random(), level, 101)
            assert noise.dtype == np.int64
            assert 0.5 < np.sqrt((noise / level).var()) < 3.0


def test_error_bounds_are_those_of_the_proof() -> None:
    """The constants that docs/proofs/noise.md derives: changing one means changing the other."""
    assert (samplers.GAUSSIAN_ERROR, samplers.LAPLACE_ERROR) == (2.0**-45, 2.0**-43)
