"""Every integer that comes out, against an oracle of 60 to 100 digits that knows the random bits to the last one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from privet.noise import fast, rounded_gaussian, rounded_laplace, samplers
from privet.noise.exact import exact_gaussian_pair, exact_laplace
from privet.randomness import Words, fixed_seed_invalidates_guarantee

MORE = 0x9E3779B97F4A7C15  # every word beyond the script: so each real number is known to the last bit
DIGITS = 100

Triple = tuple[int, int, int]


class Scripted:
    """The words of a script, then MORE for ever; `beyond` counts how many of those were asked for."""

    invalidates_guarantee = True

    def __init__(self, words: list[int], more: int = MORE) -> None:
        self.script = np.array(words, dtype=np.uint64)
        self.more = more
        self.beyond = 0

    def words(self, count: int) -> Words:
        now, self.script = self.script[:count], self.script[count:]
        self.beyond += count - now.size
        return np.concatenate([now, np.full(count - now.size, self.more, dtype=np.uint64)])


def endless(word: int) -> mpf:
    """The real number in [0, 1) whose bits are those of `word`, then those of MORE for ever."""
    return (mpf(word) + mpf(MORE) / (2**64 - 1)) / 2**64


def exponential(bits: int, tail: int) -> mpf:
    """−ln U of the sampler, to 100 digits: v = bits/2⁶⁵ and h the leading zeros of the tail."""
    head = tail >> 11
    halvings = 53 - head.bit_length() if head else 53 + 64 - MORE.bit_length()
    return halvings * mp.log(2) - mp.log(1 - endless(bits) / 2)


def ideal_pair(angle: int, radius: int, tail: int) -> tuple[mpf, mpf]:
    """The two ideal normals of three words."""
    length = mp.sqrt(2 * exponential(radius, tail))
    f = 2 * endless(angle) if angle < 2**63 else 2 * endless(angle) - 2
    theta = mp.pi / 4 * (1 + f)
    return (-1) ** (tail & 1) * length * mp.cos(theta), (-1) ** (tail >> 1 & 1) * length * mp.sin(theta)


def nearest(value: mpf) -> int:
    return int(mp.floor(value + 0.5))


def gaussian_oracle(triples: list[Triple], stddev: float) -> tuple[list[int], list[int]]:
    with mp.workdps(DIGITS):
        pairs = [ideal_pair(*triple) for triple in triples]
        return [nearest(stddev * z) for z, _ in pairs], [nearest(stddev * z) for _, z in pairs]


def sampled(triples: list[Triple], stddev: float) -> tuple[list[int], Scripted]:
    random = Scripted([triple[part] for part in range(3) for triple in triples])
    return rounded_gaussian(random, stddev, 2 * len(triples)).tolist(), random


def random_triples(count: int, seed: int) -> list[Triple]:
    words = fixed_seed_invalidates_guarantee(seed).words(3 * count).tolist()
    return list(zip(words[::3], words[1::3], words[2::3], strict=True))


def edge_triples(count: int, stddev: float, seed: int) -> list[Triple]:
    """Triples whose first normal is as close to a cell's edge as a 64-bit angle can make it, on either side."""
    found: list[Triple] = []
    with mp.workdps(DIGITS):
        for _, radius, tail in random_triples(count, seed):
            length = stddev * mp.sqrt(2 * exponential(radius, tail))
            edge = mp.floor(length * 0.6) + 0.5
            f = 4 / mp.pi * mp.acos(edge / length) - 1
            angle = int(mp.floor(f * 2**63))
            found += [((angle + shift) % 2**64, radius, tail) for shift in (-1, 0, 1)]
    return found


def extreme_triples() -> list[Triple]:
    """Far tails, tiny radii, the ends of each range, and tails too short to tell."""
    sizes = [0, 1, 2**36 - 1, 2**36, 2**63, 2**64 - 1]
    angles = [0, 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 0x123456789ABCDEF0]
    tails = [1 << 63, (1 << 63) | 3, 1 << 40, 1 << 11, (1 << 12) | 2, 3, 2047, 0]
    return [(angle, size, tail) for angle in angles for size in sizes for tail in tails]


STDDEVS = [2.0**10, 1.37 * 2.0**20, 2.0**30 / 3, 1.9 * 2.0**40, 2.0**50]


@pytest.mark.medium
@pytest.mark.parametrize("stddev", STDDEVS)
def test_each_gaussian_integer_is_the_ideal_one(stddev: float) -> None:
    """Random words, words next to a cell's edge, and extreme words: 1,000 pairs, all equal to the oracle."""
    triples = random_triples(300, 1) + edge_triples(120, stddev, 2) + extreme_triples()
    first, second = gaussian_oracle(triples, stddev)
    found, _ = sampled(triples, stddev)
    assert found == first + second


def test_the_oracle_sees_a_sampler_that_trusts_its_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: without the search near edges some integers are wrong, and the comparison above shows it."""
    stddev = 1.9 * 2.0**40
    triples = edge_triples(120, stddev, 2)
    first, second = gaussian_oracle(triples, stddev)
    monkeypatch.setattr(samplers, "GAUSSIAN_ERROR", 0.0)
    assert sampled(triples, stddev)[0] != first + second


def test_more_bits_are_drawn_exactly_where_they_are_needed() -> None:
    """At 2^20 ordinary words need none beyond the script; words next to an edge need two for each pair."""
    stddev = 2.0**20
    assert sampled(random_triples(20_000, 3), stddev)[1].beyond == 0
    triples = edge_triples(100, stddev, 4)
    assert sampled(triples, stddev)[1].beyond == 2 * len(triples)


def test_an_odd_number_of_coordinates_leaves_the_last_sine_out() -> None:
    """Sizes 1 and 7 give the first coordinates of the pairs; shapes are filled in order."""
    triples = random_triples(4, 5)
    first, second = gaussian_oracle(triples, 2.0**45)
    words = [triple[part] for part in range(3) for triple in triples]
    assert rounded_gaussian(Scripted(words), 2.0**45, 7).tolist() == (first + second)[:7]
    assert rounded_gaussian(Scripted(words), 2.0**45, (2, 2, 2)).ravel().tolist() == first + second
    assert rounded_gaussian(Scripted([*triples[0]]), 2.0**45, 1).tolist() == first[:1]
    assert rounded_gaussian(Scripted([]), 2.0**45, 0).shape == (0,)


@pytest.mark.medium
@pytest.mark.parametrize("scale", STDDEVS)
def test_each_laplace_integer_is_the_ideal_one(scale: float) -> None:
    """Random words, words next to a cell's edge, and extreme words, all equal to the oracle."""
    pairs = [(size, tail) for _, size, tail in random_triples(300, 6) + extreme_triples()]
    with mp.workdps(DIGITS):
        for _, size, tail in random_triples(120, 7):
            edge = mp.floor(scale * exponential(size, tail)) + 0.5
            v = 1 - mp.exp(53 * mp.log(2) - mp.log(2) * (tail >> 11).bit_length() - edge / scale)
            if 0 < v < 0.5:
                pairs += [(int(mp.floor(v * 2**65)) + shift, tail) for shift in (-1, 0, 1)]
        expected = [nearest((-1) ** (tail & 1) * scale * exponential(size, tail)) for size, tail in pairs]
    random = Scripted([size for size, _ in pairs] + [tail for _, tail in pairs])
    assert rounded_laplace(random, scale, len(pairs)).tolist() == expected


@pytest.mark.medium
@pytest.mark.parametrize("offset", [0.0, 0.5, 0.25, 1 - 2.0**-40])
def test_offsets_are_added_before_rounding(offset: float) -> None:
    """round(offset + stddev · Z), not offset + round: fast and exact road agree with the oracle."""
    triples = random_triples(300, 8) + edge_triples(40, 2.0**20, 9) + extreme_triples()
    with mp.workdps(DIGITS):
        pairs = [ideal_pair(*triple) for triple in triples]
        expected = [nearest(offset + 2**20 * z) for z, _ in pairs] + [nearest(offset + 2**20 * z) for _, z in pairs]
        small = [nearest(offset + 2**20 * (-1) ** (tail & 1) * exponential(size, tail)) for _, size, tail in triples]
    out = np.empty(2 * len(triples), dtype=np.int64)
    random = Scripted([triple[part] for part in range(3) for triple in triples])
    samplers.fill_gaussian(random, 2.0**20, np.full(out.size, offset), out, fast.Scratch(out.size))
    assert out.tolist() == expected
    out = out[: len(triples)]
    random = Scripted([triple[part] for part in (1, 2) for triple in triples])
    samplers.fill_laplace(random, 2.0**20, np.full(out.size, offset), out, fast.Scratch(out.size))
    assert out.tolist() == small
    for triple, first, second in list(zip(triples, expected, expected[len(triples) :], strict=False))[:50]:
        assert exact_gaussian_pair(Scripted([]), triple, 2.0**20, (offset, offset)) == (first, second)
    for (_, size, tail), value in list(zip(triples, small, strict=True))[:50]:
        assert exact_laplace(Scripted([]), (size, tail), 2.0**20, offset) == value


@pytest.mark.medium
def test_float_errors_stay_below_the_proven_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the fast road is trusted its value is within ERROR of the ideal one; seen at most a quarter of it."""
    kept: list[np.ndarray] = []

    def spy(values: fast.Floats, out: fast.Integers, error: float, whole: fast.Floats) -> None:
        kept.append(values.copy())
        out[:] = 0

    stddev = 1.9 * 2.0**20
    usual = random_triples(1500, 10) + [t for t in extreme_triples() if t[1] >= 2**36 and t[2] >> 11]
    monkeypatch.setattr(samplers, "round_into", spy)
    sampled(usual, stddev)
    with mp.workdps(DIGITS):
        ideal = list(zip(*(ideal_pair(*triple) for triple in usual), strict=True))
        worst = max(
            abs(float(mpf(float(value)) / stddev - z))
            for values, row in zip(kept, ideal, strict=True)
            for value, z in zip(values, row, strict=True)
        )
    assert worst <= samplers.GAUSSIAN_ERROR / 4
    kept.clear()
    monkeypatch.setattr(samplers, "round_into", spy)
    pairs = [(size, tail) for _, size, tail in usual]
    rounded_laplace(Scripted([p[0] for p in pairs] + [p[1] for p in pairs]), stddev, len(pairs))
    with mp.workdps(DIGITS):
        sizes = [exponential(*pair) for pair in pairs]
        worst = max(abs(abs(float(mpf(float(y)) / stddev)) - float(x)) for y, x in zip(kept[0], sizes, strict=True))
    assert worst <= samplers.LAPLACE_ERROR / 4


def test_the_logarithm_is_as_accurate_as_the_proof_assumes() -> None:
    """np.log1p on [−½, 0] errs by less than 4 units in the last place here; the proof allows for 8."""
    v = np.concatenate([fixed_seed_invalidates_guarantee(1).words(5000) * 2.0**-65, 2.0 ** -np.arange(1.0, 66.0)])
    with mp.workdps(40):
        for x, y in zip((-v).tolist(), np.log1p(-v).tolist(), strict=True):
            assert abs(mpf(y) - mp.log1p(mpf(x))) <= 4 * mpf(math.ulp(y))


def test_a_source_of_zeros_is_named_broken() -> None:
    """An endless run of zeros is an error, not an endless loop or endless noise."""
    with pytest.raises(RuntimeError, match="broken"):
        rounded_gaussian(Scripted([], more=0), 2.0**20, 1)
    with pytest.raises(RuntimeError, match="broken"):
        rounded_laplace(Scripted([], more=0), 2.0**20, 1)
