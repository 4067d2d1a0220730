"""Unlike steps of one family as one step: the product of what each is alone, within the bound that is stated."""

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from privet.accounting.pairs.crowd import Crowd
from privet.accounting.pairs.elementary import BoundedRangePair, LaplacePair
from privet.accounting.pairs.fixed_size import CutFixedSize, FixedSizePair
from privet.accounting.pairs.line_products import rises_on_line
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT
from privet.accounting.pairs.sampled import SampledLaplacePair
from privet.accounting.pairs.truncated_mixture import CutPair

Real = Any  # an mpmath number
TILT, SPACING = 2.5, 3.0


def laplace(d: float, t: Real) -> Real:
    """E_P[e^{tL}]: atoms 1/2 at d and e^{-d}/2 at -d, and between them the density e^{-(d-y)/2}/4."""
    between = mp.quad(lambda y: mp.exp(-(d - y) / 2 + t * y) / 4, mp.linspace(-d, d, 5))
    return mp.exp(t * d) / 2 + mp.exp(-d - t * d) / 2 + between


def bounded_range(e: float, t: Real) -> Real:
    """E_P[e^{tL}]: P-density ∝ e^{y/2} on [-e, e]."""
    points = mp.linspace(-e, e, 5)
    return mp.quad(lambda y: mp.exp(y / 2 + t * y), points) / mp.quad(lambda y: mp.exp(y / 2), points)


def sampled_laplace(q: float, d: float, kind: str, t: Real) -> Real:
    """∫ w^{1+t} or ∫ w^{-t} over the unsampled loss under Q, w = 1 - q + q·e^y."""
    power = 1 + t if kind == "remove" else -t

    def w(y: Real) -> Real:
        return (1 - mp.mpf(q) + q * mp.exp(y)) ** power

    between = mp.quad(lambda y: mp.exp(-(d + y) / 2) / 4 * w(y), mp.linspace(-d, d, 5))
    return w(mp.mpf(-d)) / 2 + w(mp.mpf(d)) * mp.exp(-d) / 2 + between


def fixed_size(q: float, s: float, t: Real, cut: float = 18.0) -> Real:
    """The atom, the upper side up to `cut` and the lower side, one by one."""
    start = mp.mpf(s) / 2

    def w(x: Real) -> Real:
        return 1 - mp.mpf(q) + q * mp.exp(s * x - mp.mpf(s) ** 2 / 2)

    def integral(f: Callable[[Real], Real], end: float) -> Real:
        points = [*mp.arange(start, end, 2), mp.mpf(end)]
        return mp.quad(lambda x: mp.npdf(x) * f(x), points, method="gauss-legendre", maxdegree=6)

    atom = 1 - integral(lambda x: 1 + w(x), 18.0)
    return atom + integral(lambda x: w(x) ** (1 + t), cut) + integral(lambda x: w(x) ** -t, 18.0)


CROWDS: list[tuple[list[Any], Callable[[Any, Real], Real]]] = [
    ([LaplacePair(d) for d in (0.3, 0.5, 2.0)], lambda pair, t: laplace(pair.distance, t)),
    ([LaplacePair(d) for d in (0.01, 0.02)], lambda pair, t: laplace(pair.distance, t)),
    ([BoundedRangePair(e) for e in (0.3, 1.5)], lambda pair, t: bounded_range(pair.epsilon, t)),
    (
        [SampledLaplacePair(q, d, "remove") for q, d in ((0.01, 0.5), (0.5, 2.0), (1e-4, 6.0))],
        lambda pair, t: sampled_laplace(pair.rate, pair.distance, "remove", t),
    ),
    (
        [SampledLaplacePair(q, d, "add") for q, d in ((0.01, 0.5), (0.3, 1.0))],
        lambda pair, t: sampled_laplace(pair.rate, pair.distance, "add", t),
    ),
    (
        [FixedSizePair(q, s) for q, s in ((0.01, 1.0), (0.2, 1.5), (1e-5, 1.9))],
        lambda pair, t: fixed_size(pair.rate, pair.shift, t),
    ),
]


@pytest.mark.medium
@pytest.mark.parametrize(("pairs", "moment"), CROWDS, ids=[repr(pairs[0]) for pairs, _ in CROWDS])
def test_crowds_have_the_product_of_the_moments(pairs: list[Any], moment: Callable[[Any, Real], Real]) -> None:
    """On a line and at single orders, the moments of a crowd are those that 20 digits give, within the bound."""
    crowd = Crowd([(pair, k + 1) for k, pair in enumerate(pairs)])
    on_line, line_error = crowd.on_line(TILT, SPACING, 30)
    alone, error = crowd.log_moment(TILT + 1j * SPACING * np.arange(30))
    assert np.max(line_error) < 1e-6
    assert np.max(error) < 1e-6
    with mp.workdps(20):
        for k in (0, 7, 29):
            t = mp.mpc(TILT, SPACING * k)
            truth = mp.fprod(moment(pair, t) ** (i + 1) for i, pair in enumerate(pairs))
            for value, wrong in ((on_line[k], math.expm1(line_error[k])), (alone[k], error[k])):
                assert abs(mp.exp(mp.mpmathify(value)) / truth - 1) <= wrong


def test_what_is_no_longer_followed_stays_within_its_bound() -> None:
    """Three hundred Laplace steps: where most are left out, the stated error covers what they would have changed."""
    pairs = [LaplacePair(d) for d in np.linspace(0.5, 2.0, 300)]
    crowd = Crowd([(pair, 1) for pair in pairs])
    found, error = crowd.on_line(1.0, 0.7, 200)
    truth = np.sum([pair.log_moment(1.0 + 0.7j * np.arange(200))[0] for pair in pairs], axis=0)
    silent = error > 1
    assert silent.sum() > 100
    assert np.all(truth.real[silent] <= (found.real + error)[silent])
    kept = ~silent
    assert np.all(np.abs(np.expm1(truth[kept] - found[kept])) <= np.expm1(error[kept]) + 1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_the_decay_of_a_crowd_holds_at_every_higher_frequency(seed: int) -> None:
    """log M(tilt)/|M| of fixed-size and sampled Laplace crowds is at least what is promised, at all v above."""
    rng = np.random.default_rng(seed)
    tilt, frequency = float(rng.uniform(0.2, 6.0)), np.geomspace(1.0, 500.0, 5)
    for pairs in (
        [FixedSizePair(float(q), float(s)) for q, s in rng.uniform((0.001, 0.6), (0.1, 1.0), size=(5, 2))],
        [SampledLaplacePair(float(q), 1.0, "remove") for q in rng.uniform(0.01, 0.6, 5)],
        [SampledLaplacePair(float(q), 0.7, "add") for q in rng.uniform(0.01, 0.6, 5)],
    ):
        crowd = Crowd([(pair, 40) for pair in pairs])
        promised = crowd.decay(tilt, frequency)
        here = crowd.log_moment(np.array([complex(tilt)]))[0][0].real
        assert np.all(promised >= 0)
        assert promised[-1] > 1
        for least, start in zip(promised, frequency, strict=True):
            v = start * np.concatenate([[1.0], 1 + 10 ** rng.uniform(-3, 0.5, size=12)])
            value, error = crowd.log_moment(tilt + 1j * v)
            assert np.all(value.real - np.log1p(error) <= here - least + 1e-9)


@pytest.mark.medium
@pytest.mark.parametrize(("rate", "shift", "cut"), [(1e-5, 2.0, 6.0), (0.01, 1.0, 4.0)])
def test_a_cut_fixed_size_pair_has_its_own_moments(rate: float, shift: float, cut: float) -> None:
    """Without the outcomes beyond the cut, moments are what 20 digits give, alone and on a line."""
    pair = CutFixedSize(FixedSizePair(rate, shift), CutPair(MixturePair(rate, shift, "remove"), cut))
    on_line, line_error = pair.log_moments(TILT, SPACING, np.arange(30))
    alone, error = pair.log_moment(TILT + 1j * SPACING * np.arange(30))
    with mp.workdps(20):
        for k in (0, 7, 29):
            truth = fixed_size(rate, shift, mp.mpc(TILT, SPACING * k), cut)
            for value, wrong in ((on_line[k], line_error[k]), (alone[k], error[k])):
                assert wrong < 1e-10
                assert abs(mp.exp(mp.mpmathify(value)) / truth - 1) <= wrong


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 50, 150, 400])
def test_products_are_the_sums_that_they_stand_for(count: int, squared: bool) -> None:
    """Σ weight·(e^{first + k·turn} - 1) by products agrees with the plain sum within its bound.

    By squaring, within 80 units of k·|turn| more, which the callers count.
    """
    rng = np.random.default_rng(count)
    first, weight = rng.normal(size=(3, 20)) * 0.1, rng.uniform(size=(3, 20))
    turn = 1j * rng.normal(size=(3, 20)) - rng.uniform(size=(3, 20)) * 1e-3
    found, spread = rises_on_line(first, turn, weight, count, squared=squared)
    more = (np.abs(turn) * weight).sum(axis=1) * 80 * UNIT * squared
    with mp.workdps(30):
        for k in {0, count // 2, count - 1}:
            for row in range(3):
                terms = zip(first[row], turn[row], weight[row], strict=True)
                truth = mp.fsum(w * mp.expm1(mp.mpf(a) + k * mp.mpmathify(complex(b))) for a, b, w in terms)
                assert abs(mp.mpmathify(complex(found[row, k])) - truth) <= spread[row, k] + k * more[row] + 1e-30


@pytest.mark.parametrize("shift", [0.1, 0.5, 1.0])
def test_guesses_of_fixed_size_moments_are_near(shift: float) -> None:
    """log M by plain sums, with which searches start, is the certified one to some millionths."""
    crowd = Crowd([(FixedSizePair(0.01, shift), 100), (FixedSizePair(0.002, 1.3 * shift), 50)])
    orders = np.array([0.1, 1.0, 3.0, 9.0])
    assert crowd.rough_log_moment(orders) == pytest.approx(crowd.log_moment(orders.astype(complex))[0].real, rel=2e-6)


def test_guesses_do_not_overflow() -> None:
    """Orders far beyond what is needed, and little noise, have a finite guess."""
    crowd = Crowd([(FixedSizePair(0.01, 4.0), 100), (FixedSizePair(0.002, 5.0), 50)])
    assert np.isfinite(crowd.rough_log_moment(np.array([0.1, 30.0]))).all()
