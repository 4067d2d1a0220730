from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet.errors import InvalidParameter
from privet.noise import add_gaussian, add_laplace, exact, rounded_gaussian, samplers
from privet.noise.fast import Integers, Scratch
from privet.randomness import Random, fixed_seed_invalidates_guarantee, system_random

Floats = np.ndarray


def gaussian_mechanism(x: float, count: int, step: float = 2.0**-20) -> Floats:
    units = np.full(count, round(x / step), dtype=np.int64)
    return add_gaussian(units, step=step, noise_stddev=1.0, random=system_random())


def naive_mechanism(x: float, count: int) -> Floats:
    return x + np.random.default_rng(1).standard_normal(count)


def sum_of_four_mechanism(x: float, count: int) -> Floats:
    noise: Floats = np.random.default_rng(1).standard_normal((4, count)).sum(axis=0) / 2
    return x + noise


def frequency_of_fine_bits(values: Floats) -> float:
    """How often a value below 0.5 has bits below 2^-53: possible for 0 + z, impossible for 1 + z."""
    scaled = values * 2.0**53
    return float(((abs(values) < 0.5) & (scaled != np.rint(scaled))).mean())


@pytest.mark.medium
@pytest.mark.parametrize("step", [2.0**-10, 2.0**-20, 2.0**-30, 2.0**-50])
@pytest.mark.parametrize("x", [0.0, 1.0])
def test_every_release_is_on_one_public_lattice(x: float, step: float) -> None:
    """10^6 releases at x = 0 and at x = 1 are exact multiples of one public power of two."""
    lattice = max(step, 2.0**-20)
    values = gaussian_mechanism(x, 10**6, step) / lattice
    assert (values == np.rint(values)).all()
    low, high = (set((values % 2).tolist()), {0.0, 1.0})  # both parities: no sublattice tells x
    assert low == high


def test_the_last_bits_tell_nothing() -> None:
    """The event "bits below 2^-53 while |y| < 0.5" has frequency 0 at x = 0 and at x = 1."""
    assert [frequency_of_fine_bits(gaussian_mechanism(x, 10**6)) for x in (0.0, 1.0)] == [0.0, 0.0]


@pytest.mark.parametrize("mechanism", [naive_mechanism, sum_of_four_mechanism])
def test_float_noise_fails_the_same_test(mechanism: Callable[[float, int], Floats]) -> None:
    """Plain float noise and the sum of four give x away: above 0.1 at x = 0, exactly 0 at x = 1."""
    at_zero, at_one = (frequency_of_fine_bits(mechanism(x, 10**5)) for x in (0.0, 1.0))
    assert at_zero > 0.1
    assert at_one == 0.0


@pytest.mark.parametrize("shift", [0, 1, 7, 20, 30])
def test_a_coarser_lattice_is_one_rounding_of_the_sum_with_its_noise(shift: int) -> None:
    """With 2^k units to a released step the integer is round((q + sZ)/2^k), for negative q too."""
    random = fixed_seed_invalidates_guarantee
    q = np.array([0, 1, -1, 2**40 + 12345, -(2**40) - 54321, 2**52 + 1], dtype=np.int64)
    released = add_gaussian(q, step=2.0**-shift, noise_stddev=2.0**20, random=random(3))
    assert (released == np.rint(released)).all()
    # The same words, the noise in units of 2^-shift: exact to a unit, and the two roundings differ by at most one step.
    fine = rounded_gaussian(random(3), 2.0 ** (20 + shift), q.size)
    exact_sum = [int(a) + int(b) for a, b in zip(q, fine, strict=True)]
    for value, numerator in zip(released.tolist(), exact_sum, strict=True):
        assert abs(int(value) * 2**shift - numerator) <= 2**shift // 2 + 1


def test_the_same_words_and_sum_give_the_same_bits_in_any_shape() -> None:
    """A release is a function of words and sum: shape and memory order do not matter, and the input is kept."""
    q = np.arange(-3000, 3000, dtype=np.int64).reshape(60, 100) * 2**30
    kept = q.copy()
    flat = add_gaussian(q.ravel(), step=2.0**-40, noise_stddev=1.0, random=fixed_seed_invalidates_guarantee(1))
    square = add_gaussian(q, step=2.0**-40, noise_stddev=1.0, random=fixed_seed_invalidates_guarantee(1))
    strided = add_gaussian(
        np.asfortranarray(q), step=2.0**-40, noise_stddev=1.0, random=fixed_seed_invalidates_guarantee(1)
    )
    assert (flat.reshape(60, 100) == square).all()
    assert (square == strided).all()
    assert (q == kept).all()
    assert add_gaussian(np.empty(0, dtype=np.int64), step=1.0, noise_stddev=2.0**10, random=system_random()).shape == (
        0,
    )


@pytest.mark.parametrize("step", [2.0**-10, 2.0**-30])
def test_noise_is_not_swallowed(step: float) -> None:
    """The noise of a release has the claimed deviation within 1 %, whatever the sum.

    False positive rate 1e-6 each; 10^6 draws; a deviation off by 0.52 % is caught with power 0.99. Mutant: float16.
    """
    for x in (0.0, 1000.0):
        units = np.full(10**6, round(x / step), dtype=np.int64)
        released = add_gaussian(units, step=step, noise_stddev=1.0, random=fixed_seed_invalidates_guarantee(5))
        assert released.dtype == np.float64
        assert abs((released - x).std() - 1.0) < 4.9 / math.sqrt(2e6)
    halved = (1000.0 + np.float16(1e-4) * (released - x).astype(np.float16)).astype(np.float16)
    assert float(halved.astype(np.float64).std()) == 0.0


def test_laplace_is_released_the_same_way() -> None:
    """Lattice, mean and mean size of a Laplace release.

    False positive rate 1e-6; 10^6 draws; a scale off by 0.73 % is caught with power 0.99.
    """
    units = np.full(10**6, 5 << 30, dtype=np.int64)
    released = add_laplace(units, step=2.0**-30, noise_scale=0.25, random=fixed_seed_invalidates_guarantee(5))
    lattice = released * 2.0**22
    assert (lattice == np.rint(lattice)).all()
    assert abs(abs(released - 5.0).mean() / 0.25 - 1.0) < 4.9e-3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint64, bool, object])
def test_only_whole_sums_of_64_bits_are_taken(dtype: type) -> None:
    """Half precision, and every other type, is refused before any noise is drawn; no value is quoted."""
    wrong: list[Any] = [np.full(3, 1).astype(dtype), [1234567, 2]]
    for units in wrong:
        with pytest.raises(InvalidParameter, match="int64") as caught:
            add_gaussian(units, step=1.0, noise_stddev=2.0**12, random=system_random())
        assert "1234567" not in str(caught.value)


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf, 1023.0, 2.0**61, "1024", None])
def test_noise_that_promises_nothing_is_refused(noise: float) -> None:
    """Zero, negative, NaN, infinite, below 2^10 steps or above 2^60: refused, with what to do."""
    units = np.zeros(3, dtype=np.int64)
    with pytest.raises(InvalidParameter, match=r"Set it from the plan|Choose a step"):
        add_gaussian(units, step=1.0, noise_stddev=noise, random=system_random())
    with pytest.raises(InvalidParameter, match=r"Set it from the plan|Choose a step"):
        add_laplace(units, step=1.0, noise_scale=noise, random=system_random())


@pytest.mark.parametrize("step", [0.0, -1.0, 3.0, 0.1, math.nan, math.inf, 2.0**-950, 2.0**950])
def test_steps_that_are_no_power_of_two_are_refused(step: float) -> None:
    """A lattice is exact in floats only if its step is a power of two of ordinary size."""
    with pytest.raises(InvalidParameter, match="step"):
        add_gaussian(np.zeros(3, dtype=np.int64), step=step, noise_stddev=step * 2.0**12, random=system_random())


def test_sums_at_the_ends_of_int64_do_not_wrap_or_raise() -> None:
    """Sums beyond 2^62 are clamped, which never moves two neighbours apart; no exception depends on the sum."""
    ends = np.array([2**63 - 1, -(2**63), 2**62, -(2**62)], dtype=np.int64)
    for noise in (2.0**10, 2.0**50, 2.0**60):
        released = add_gaussian(ends, step=1.0, noise_stddev=noise, random=system_random())
        assert np.isfinite(released).all()
        assert (abs(released - np.sign(released) * 2.0**62) <= 40 * noise).all()
        assert noise > 2.0**58 or (np.sign(released) == [1, -1, 1, -1]).all()


@pytest.mark.medium
def test_time_tells_nothing_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank correlation of a call's time with |noise| below 0.05 over 10^4 calls of one coordinate.

    False positive rate 6e-7 (5 standard errors); a correlation of 0.074 is caught with power 0.99.
    Mutant: a sampler that counts its way to the noise.
    """
    random = system_random()
    units = np.zeros(1, dtype=np.int64)

    def ours() -> float:
        return float(add_gaussian(units, step=2.0**-20, noise_stddev=1.0, random=random)[0])

    def counting() -> float:
        steps = 0
        while int(random.words(1)[0]) >> 62:
            steps += 1
        return float(steps)

    def correlation(draw: Callable[[], float], calls: int) -> float:
        times, sizes = [], []
        for _ in range(calls):
            start = time.perf_counter_ns()
            value = draw()
            times.append(time.perf_counter_ns() - start)
            sizes.append(abs(value))
        return float(stats.spearmanr(times, sizes).statistic)

    assert abs(correlation(ours, 10_000)) < 0.05
    assert correlation(counting, 1000) > 0.3

    # And without a clock: nearly no coordinate takes the slow road, in a block of any noise.
    slow: list[int] = []
    usual = exact.exact_gaussian_pair

    def spy(
        random: Random, words: tuple[int, int, int], stddev: float, offsets: tuple[float, float]
    ) -> tuple[int, int]:
        slow.append(1)
        return usual(random, words, stddev, offsets)

    monkeypatch.setattr(samplers, "exact_gaussian_pair", spy)
    out: Integers = np.empty(2**15, dtype=np.int64)
    scratch = Scratch(out.size)
    for seed in range(32):
        samplers.fill_gaussian(fixed_seed_invalidates_guarantee(seed), 2.0**20, None, out, scratch)
    assert len(slow) <= 3  # 2^20 coordinates, expected 2^-4; more than 3 has probability 6e-7
