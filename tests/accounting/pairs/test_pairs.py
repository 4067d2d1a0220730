"""One step's privacy loss: tails and moments against mpmath, and domination of what really runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

from privet.accounting import (
    Approximate,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
)
from privet.accounting.pairs.dominating import directions
from privet.accounting.pairs.elementary import (
    BoundedRangePair,
    ConcentratedBound,
    DiscretePair,
    GaussianPair,
    LaplacePair,
)
from privet.accounting.pairs.fixed_size import FixedSizePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Pair
from privet.accounting.pairs.sampled import SampledLaplacePair
from privet.errors import NoProvenBound
from privet.privacy import Neighbours

Real = Any  # an mpmath number
NEIGHBOURS: tuple[Neighbours, ...] = ("add_remove", "zero_out", "replace_one")


@dataclass(frozen=True)
class Oracle:
    """The law of L under P as it is defined: a density over x with a monotone loss(x), and atoms (loss, mass)."""

    points: Sequence[float] = ()  # where to split the integral; the first and last end it
    density: Callable[[Real], Real] = mp.mpf
    loss: Callable[[Real], Real] = mp.mpf
    atoms: Sequence[tuple[Real, Real]] = ()
    infinite: float = 0.0
    rising: bool = True
    known: dict[Real, tuple[Real, Real]] = field(default_factory=dict)

    def expect(self, f: Callable[[Real], Real], *, over: float | None = None) -> Real:
        """E_P[f(L); over < L < ∞] to 25 digits or better."""
        total = mp.fsum(mass * f(loss) for loss, mass in self.atoms if over is None or loss > over)
        points = [mp.mpf(x) for x in self.points]
        if over is not None and points:
            points = self._beyond(points, mp.mpf(over))
        if len(points) > 1:
            # mp.quad aims at an absolute error: what it sees is scaled to about 1
            top = max(abs(density * f(loss)) for density, loss in map(self._at, points))

            def scaled(x: Real) -> Real:
                density, loss = self._at(x)
                return density * f(loss) / top

            total += top * mp.quad(scaled, points, method="gauss-legendre")
        return total

    def _at(self, x: Real) -> tuple[Real, Real]:
        """Density and loss, which every integrand needs at the same nodes."""
        if x not in self.known:
            self.known[x] = self.density(x), self.loss(x)
        return self.known[x]

    def moment(self, order: Real) -> Real:
        return self.expect(lambda x: mp.exp(order * x))

    def _beyond(self, points: list[Real], over: Real) -> list[Real]:
        sign = 1 if self.rising else -1
        low, high = points[0], points[-1]
        if sign * (self.loss(low) - over) > 0 and sign * (self.loss(high) - over) > 0:
            return points if self.loss(low) > over else []
        if self.loss(low) <= over and self.loss(high) <= over:
            return []
        if self.loss(low) > over and self.loss(high) > over:
            return points
        for _ in range(110):  # bisection: slow, obvious
            middle = (low + high) / 2
            low, high = (middle, high) if (self.loss(middle) < over) == self.rising else (low, middle)
        kept = [x for x in points if (x > high if self.rising else x < low)]
        return [high, *kept] if self.rising else [*kept, low]


def normal(x: Real, mean: Real = 0) -> Real:
    return mp.exp(-((x - mean) ** 2) / 2) / mp.sqrt(2 * mp.pi)


def line(start: float, end: float) -> list[float]:
    return list(np.linspace(start, end, math.ceil((end - start) / 1.5) + 1))


def whole(start: float, end: float) -> list[float]:
    """`line`, and on to where a Gaussian is nothing even next to its own deep tail."""
    return [start - 10, start - 5, *line(start, end), end + 5, end + 10]


def gaussian(mu: float) -> Oracle:
    return Oracle(
        whole(-13, 13 + 4 * mu), lambda x: normal(x, mp.mpf(mu)), lambda x: mp.mpf(mu) * x - mp.mpf(mu) ** 2 / 2
    )


def laplace(d: float) -> Oracle:
    # P = Lap(0, 1), Q = Lap(d, 1); the loss is |x - d| - |x|
    e = mp.mpf(d)
    return Oracle(
        line(0, d),
        lambda x: mp.exp(-x) / 2,
        lambda x: e - 2 * x,
        [(e, mp.mpf(1) / 2), (-e, mp.exp(-e) / 2)],
        rising=False,
    )


def bounded_range(e: float) -> Oracle:
    """The law whose hockey stick is (1 - e^{-(e - x)/2})² / (1 - e^{-e}): L has density ∝ e^{L/2} on [-e, e]."""
    n = 2 * (mp.exp(mp.mpf(e) / 2) - mp.exp(-mp.mpf(e) / 2))
    return Oracle(line(-e, e), lambda x: mp.exp(x / 2) / n, lambda x: x)


def mixture(q: float, s: float, kind: str) -> Oracle:
    rate, shift = mp.mpf(q), mp.mpf(s)

    def w(x: Real, sign: int = 1) -> Real:
        return 1 - rate + rate * mp.exp(sign * shift * x - shift**2 / 2)

    if kind == "remove":
        return Oracle(whole(-13, 13 + 5 * s), lambda x: normal(x) * w(x), lambda x: mp.log(w(x)))
    if kind == "add":
        return Oracle(whole(-13, 13 + s), normal, lambda x: -mp.log(w(x)), rising=False)
    return Oracle(whole(-13 - 4 * s, 13 + 5 * s), lambda x: normal(x) * w(x), lambda x: mp.log(w(x) / w(x, -1)))


def fixed_size(q: float, s: float) -> Oracle:
    """Losses above 0 as when a record leaves, below 0 as when it joins, the rest at 0 (Zhu, Dong and Wang 2022)."""
    leave, join = mixture(q, s, "remove"), mixture(q, s, "add")
    middle = mp.mpf(s) / 2

    def density(y: Real) -> Real:  # y > 0: x = s/2 + y under "remove"; y < 0: x = s/2 - y under "add"
        return leave.density(middle + y) if y > 0 else join.density(middle - y)

    def loss(y: Real) -> Real:
        return leave.loss(middle + y) if y > 0 else join.loss(middle - y)

    points = line(-13 - 5 * s, 0)[:-1] + line(0, 13 + 5 * s)
    mass = mp.quad(density, points, method="gauss-legendre")
    return Oracle(points, density, loss, [(mp.mpf(0), 1 - mass)])


def sampled_laplace(q: float, d: float, kind: str) -> Oracle:
    """With y the loss of Lap(d, 1) against Lap(0, 1), whose law under Lap(0, 1) mirrors `laplace`."""
    rate, e = mp.mpf(q), mp.mpf(d)
    base = laplace(d)

    def w(y: Real) -> Real:
        return 1 - rate + rate * mp.exp(y)

    # under Q the unsampled loss is -loss(x)
    mirrored = [(-loss, mass) for loss, mass in base.atoms]
    if kind == "remove":
        atoms = [(mp.log(w(y)), mass * w(y)) for y, mass in mirrored]
        return Oracle(line(0, d), lambda x: base.density(x) * w(2 * x - e), lambda x: mp.log(w(2 * x - e)), atoms)
    atoms = [(-mp.log(w(y)), mass) for y, mass in mirrored]
    return Oracle(line(0, d), base.density, lambda x: -mp.log(w(2 * x - e)), atoms, rising=False)


def discrete(losses: Sequence[float], masses: Sequence[float]) -> Oracle:
    atoms = [(mp.mpf(x), mp.mpf(m)) for x, m in zip(losses, masses, strict=True)]
    return Oracle(atoms=atoms, infinite=1 - math.fsum(masses))


THREE = ((-0.75, 0.0, 1.25), (0.25, 0.5, 0.125))
PAIRS: list[tuple[Pair, Callable[[], Oracle]]] = [
    (GaussianPair(0.5), lambda: gaussian(0.5)),
    (GaussianPair(2.0), lambda: gaussian(2.0)),
    (LaplacePair(0.5), lambda: laplace(0.5)),
    (LaplacePair(3.0), lambda: laplace(3.0)),
    (BoundedRangePair(0.25), lambda: bounded_range(0.25)),
    (BoundedRangePair(2.0), lambda: bounded_range(2.0)),
    (DiscretePair(*THREE, infinite=0.125), lambda: discrete(*THREE)),
    (MixturePair(0.01, 1.0, "remove"), lambda: mixture(0.01, 1.0, "remove")),
    (MixturePair(1e-4, 3.0, "remove"), lambda: mixture(1e-4, 3.0, "remove")),
    (MixturePair(0.5, 0.25, "remove"), lambda: mixture(0.5, 0.25, "remove")),
    (MixturePair(0.01, 1.0, "add"), lambda: mixture(0.01, 1.0, "add")),
    (MixturePair(0.9, 2.0, "add"), lambda: mixture(0.9, 2.0, "add")),
    (MixturePair(0.01, 1.0, "replace"), lambda: mixture(0.01, 1.0, "replace")),
    (MixturePair(0.3, 0.5, "replace"), lambda: mixture(0.3, 0.5, "replace")),
    (FixedSizePair(0.01, 1.0), lambda: fixed_size(0.01, 1.0)),
    (FixedSizePair(0.5, 2.0), lambda: fixed_size(0.5, 2.0)),
    (SampledLaplacePair(0.1, 0.5, "remove"), lambda: sampled_laplace(0.1, 0.5, "remove")),
    (SampledLaplacePair(0.5, 2.0, "remove"), lambda: sampled_laplace(0.5, 2.0, "remove")),
    (SampledLaplacePair(0.1, 0.5, "add"), lambda: sampled_laplace(0.1, 0.5, "add")),
    (SampledLaplacePair(0.5, 2.0, "add"), lambda: sampled_laplace(0.5, 2.0, "add")),
]
every_pair = pytest.mark.parametrize(("pair", "oracle"), PAIRS, ids=[repr(pair) for pair, _ in PAIRS])
every_law = pytest.mark.parametrize("pair", [pair for pair, _ in PAIRS], ids=repr)


def spread(pair: Pair, count: int = 41) -> np.ndarray:
    """Losses all over the support and a little beyond its ends."""
    low, high = max(pair.lowest, -6.0), min(pair.highest, 8.0)
    return np.sort(np.concatenate([np.linspace(low - 0.1, high + 0.1, count), np.array(pair.atoms)]))


@pytest.mark.medium
@every_pair
def test_moments_are_within_their_own_error_bound(pair: Pair, oracle: Callable[[], Oracle]) -> None:
    """log_moment agrees with a 30-digit integral at complex orders, within the bound it states, which is small."""
    t = np.array([0.5 + 0.0j, 0.3 + 2.0j, 2.0 + 0.7j, 3.5 + 11.0j])
    values, errors = pair.log_moment(t)
    single = [pair.log_moment(t[i : i + 1]) for i in range(len(t))]
    with mp.workdps(30):
        law, rough = oracle(), oracle()
        for order, value, error, (one, wrong) in zip(t, values, errors, single, strict=True):
            truth = law.moment(mp.mpmathify(order))
            with mp.workdps(15):  # a size to compare with
                at_tilt = rough.moment(mp.mpf(order.real))
            for found, bound in ((value, error), (one[0], wrong[0])):
                moment = mp.exp(mp.mpmathify(found))
                # a moment that has decayed by 20 digits is beyond the oracle: there only its size is compared
                assert abs(moment - truth) <= bound * abs(moment) + mp.mpf("1e-20") * at_tilt
                assert bound * abs(truth) < 1e-9 * at_tilt  # what a line needs: small next to M at the tilt


# Orders at which |M| has fallen to about 1e-8, 1e-9 of M(tilt): the logarithm must not lose what is left.
# These caught mixture.log1p taking log|1+z| from |1+z|² - 1, which has no digits near z = -1.
VANISHING = [
    ("remove", 0.265, 0.314, 0.12 + 159.602j),
    ("add", 0.564, 0.625, 0.32 + 156.609j),
    ("remove", 0.298, 0.263, 4.0 + 125.687j),
    ("add", 0.436, 0.453, 1.77 + 179.551j),
]


@pytest.mark.medium
@pytest.mark.parametrize(("kind", "rate", "shift", "order"), VANISHING)
def test_moments_that_nearly_vanish_keep_their_bound(kind: Any, rate: float, shift: float, order: complex) -> None:
    """Where M is small next to M(tilt), its error, relative or at least next to M(tilt), is within the stated bound."""
    pair = MixturePair(rate, shift, kind)
    with mp.workdps(30):
        rate_, shift_, t = mp.mpf(rate), mp.mpf(shift), mp.mpmathify(order)
        a = 1 + t if kind == "remove" else -t
        h = mp.mpf(1) / 100  # phases turn by |t|·shift·h ≪ π a node
        nodes = [h * k for k in range(-1300, 1300 + round(100 * shift * 6))]
        weights = [normal(x) * h for x in nodes]
        logs = [mp.log(1 - rate_ + rate_ * mp.exp(shift_ * x - shift_**2 / 2)) for x in nodes]
        truth = mp.fsum(w * mp.exp(a * x) for w, x in zip(weights, logs, strict=True))
        at_tilt = mp.fsum(w * mp.exp(a.real * x) for w, x in zip(weights, logs, strict=True))
        for value, error in (
            [float_pair[0] for float_pair in pair.log_moment(np.array([order]))],
            [many[-1] for many in pair.log_moments(order.real, order.imag / 40, 41)],
        ):
            moment = mp.exp(mp.mpmathify(value)) if math.isfinite(value.real) else mp.mpf(0)
            assert abs(moment - truth) <= error * abs(moment) + mp.mpf("1e-14") * at_tilt
            assert abs(moment - truth) <= mp.mpf("1e-12") * at_tilt


@pytest.mark.parametrize("kind", ["remove", "add", "replace"])
def test_moments_by_matrix_product_are_within_their_bound(kind: Any) -> None:
    """The fast moments on equally spaced nodes agree with the slow ones within the sum of the two bounds."""
    pair = MixturePair(0.02, 0.8, kind)
    t = 1.7 + 0.35j * np.arange(150)
    fast, bound = pair.log_moments(1.7, 0.35, 150)
    slow, other = pair.log_moment(t)
    assert np.all(np.abs(np.expm1(fast.real - slow.real)) <= bound + other)
    assert np.all(np.abs(np.exp(fast - slow) - 1) <= bound + other)
    # a decayed moment keeps no digits of its own; what counts is the error relative to M(tilt)
    assert np.all(bound * np.exp(slow.real - slow.real[0]) < 1e-10)


@pytest.mark.medium
@every_pair
def test_tails_and_hockey_sticks_match_mpmath(pair: Pair, oracle: Callable[[], Oracle]) -> None:
    """P and Q above a loss, Q by ∫ e^{-L} dP, and the hockey stick agree with 30-digit integrals, deep tail
    included.
    """
    top = min(pair.highest, 5.0)
    losses = [-0.3, 0.0, 0.1, 0.45 * top, 0.93 * top]
    p, q = pair.above(np.array(losses))
    with mp.workdps(30):
        law = oracle()
        for loss, above_p, above_q in zip(losses, p, q, strict=True):
            true_p = law.expect(lambda x: mp.mpf(1), over=loss)
            true_q = law.expect(lambda x: mp.exp(-x), over=loss)
            assert above_p == pytest.approx(float(true_p), rel=1e-11, abs=1e-300)
            assert above_q == pytest.approx(float(true_q), rel=1e-11, abs=1e-300)
            stick = law.infinite + true_p - mp.exp(mp.mpf(loss)) * true_q
            assert pair.infinite + above_p - math.exp(loss) * above_q == pytest.approx(float(stick), abs=3e-14)


@every_law
def test_tails_are_complementary_and_monotone(pair: Pair) -> None:
    """Above and below share all the mass, fall and rise, and agree with the moments at orders 0 and -1."""
    losses = spread(pair)
    above, below = pair.above(losses), pair.below(losses)
    totals = [1 - pair.infinite, math.exp(pair.log_moment(np.array([-1 + 0j]))[0][0].real)]
    for side in (0, 1):
        assert above[side] + below[side] == pytest.approx(totals[side], abs=2e-14)
        assert np.all(np.diff(above[side]) <= 1e-15)
        assert np.all(np.diff(below[side]) >= -1e-15)
        assert np.all(above[side] >= 0)
        assert np.all(below[side] >= 0)
    assert np.exp(pair.log_moment(np.array([0j]))[0][0]).real == pytest.approx(totals[0], abs=1e-13)


@every_law
def test_support_and_atoms_are_where_they_are_said_to_be(pair: Pair) -> None:
    """No mass lies beyond the ends of the support, and the tails jump at the atoms by their mass, nowhere else."""
    if math.isfinite(pair.highest):
        assert pair.above(np.array([pair.highest + 1e-9]))[0][0] == 0
    if math.isfinite(pair.lowest):
        assert pair.below(np.array([pair.lowest - 1e-9]))[0][0] == 0
    for atom in pair.atoms:
        at, before = pair.above(np.array([atom, np.nextafter(atom, -math.inf) - 1e-12]))[0]
        assert before - at > 1e-3  # above is strict, so the atom itself is not above
    losses = np.array([x for x in spread(pair) if all(abs(x - atom) > 1e-6 for atom in pair.atoms)])
    left, right = pair.above(losses - 1e-9)[0], pair.above(losses + 1e-9)[0]
    assert np.all(np.abs(left - right) < 1e-7)


@every_law
def test_reflection_relates_p_and_q(pair: Pair) -> None:
    """Q's mass of an interval of losses [a, b] is between e^{-b} and e^{-a} times P's."""
    losses = spread(pair)
    p, q = (-np.diff(tail) for tail in pair.above(losses))
    slack = 1e-14
    assert np.all(q <= np.exp(-losses[:-1]) * (p + slack) + slack)
    assert np.all(q >= np.exp(-losses[1:]) * (p - slack) - slack)


def drawn(rng: np.random.Generator) -> list[Pair]:
    """Pairs with parameters drawn over the range in which people run."""
    q, s = 10 ** rng.uniform(-5, -0.05), 10 ** rng.uniform(-1.2, 0.8)
    return [
        GaussianPair(s),
        LaplacePair(s),
        BoundedRangePair(s),
        MixturePair(q, s, "remove"),
        MixturePair(q, s, "add"),
        MixturePair(q, s, "replace"),
        FixedSizePair(q, s),
        SampledLaplacePair(q, s, "remove"),
        SampledLaplacePair(q, s, "add"),
        DiscretePair(*THREE, infinite=0.125),
    ]


def check_decay(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for pair in drawn(rng):
        c = 10 ** rng.uniform(-1, 1.1)
        u = 10 ** rng.uniform(-1, 1.7, size=6)
        with np.errstate(all="ignore"):  # log M(tilt) may exceed what a float holds; then no line is laid there
            try:
                if not pair.log_moment(np.array([c + 1j * u.max()]))[0][0].real < 600:
                    continue
            except OverflowError:
                continue
            promised = pair.decay(c, u)
        assert np.all(promised >= 0)
        for start, least in zip(u, promised, strict=True):
            v = start * np.concatenate([[1.0], 1 + 10 ** rng.uniform(-3, 0.7, size=24)])
            with np.errstate(all="ignore"):  # M may vanish: then it has decayed
                try:
                    value, error = pair.log_moment(np.concatenate([[c], c + 1j * v]))
                except OverflowError:  # more panels than the pair allows; no line reaches so far
                    continue
                # the modulus is at least |M|(1 - error)
                fallen = value[0].real - value[1:].real - np.log1p(-np.minimum(error[1:], 0.5))
            assert np.all(least <= fallen + error[0] + 1e-12), (pair, c, start, least - fallen.min())


@pytest.mark.medium
@pytest.mark.parametrize("seed", range(12))
def test_decay_never_promises_too_much(seed: int) -> None:
    """decay(c, u) is at most log(M(c)/|M(c + iv)|) at every v ≥ u, over random pairs, tilts and frequencies."""
    check_decay(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_decay_never_promises_too_much_wide(seed: int) -> None:
    """As above, over two thousand more pairs."""
    check_decay(seed)


@pytest.mark.parametrize("kind", ["remove", "add", "replace"])
def test_decay_is_worth_having(kind: Any) -> None:
    """A thousand steps of sampled Gaussian noise decay by e^{-40} where the line is cut: the bound is not empty."""
    pair = MixturePair(0.01, 1.0, kind)
    assert 1000 * pair.decay(5.0 if kind != "add" else 20.0, np.array([60.0]))[0] > 40


def test_a_wrong_moment_is_caught() -> None:
    """Mutants of the moments (noise 1% off, no error bound) fail the same comparison that the pairs pass."""
    with mp.workdps(30):
        order = mp.mpc(2, 0.7)
        truth = mixture(0.01, 1.0, "remove").expect(lambda x: mp.exp(order * x))
        t = np.array([2 + 0.7j])
        value, bound = MixturePair(0.01, 1.0, "remove").log_moment(t)
        assert abs(mp.exp(mp.mpmathify(value[0])) / truth - 1) <= bound[0]
        wrong, bound = MixturePair(0.01, 1.01, "remove").log_moment(t)
        assert abs(mp.exp(mp.mpmathify(wrong[0])) / truth - 1) > bound[0]


# --- which pair for which event -------------------------------------------------------------------------------------

NOISE = Gaussian(noise_multiplier=2.0)
LAP = Laplace(scale=4.0)
DECLARED = [Pure(epsilon=0.5), Approximate(epsilon=0.5, delta=1e-6)]


def poisson(event: Event) -> Event:
    return event.poisson(rate=0.25)


def fixed(event: Event) -> Event:
    return event.without_replacement(batch=1, records=4)


TABLE: list[tuple[Event, Neighbours, tuple[Any, ...]]] = [
    *((NOISE, n, (GaussianPair(s),)) for n, s in zip(NEIGHBOURS, (0.5, 0.5, 1.0), strict=True)),
    *((LAP, n, (LaplacePair(s),)) for n, s in zip(NEIGHBOURS, (0.25, 0.25, 0.5), strict=True)),
    (RandomizedResponse(epsilon=0.5), "add_remove", ()),
    *((RandomizedResponse(epsilon=0.5), n, (DiscretePair,)) for n in NEIGHBOURS[1:]),
    *((event, n, (DiscretePair,)) for event in DECLARED for n in NEIGHBOURS),
    *((ExponentialMechanism(epsilon=0.5), n, (BoundedRangePair(0.5),)) for n in NEIGHBOURS),
    *((ZeroConcentrated(rho=0.5), n, (ConcentratedBound(0.5),)) for n in NEIGHBOURS),
    *((poisson(NOISE), n, (MixturePair(0.25, 0.5, "remove"), MixturePair(0.25, 0.5, "add"))) for n in NEIGHBOURS[:2]),
    (poisson(NOISE), "replace_one", (MixturePair(0.25, 0.5, "replace"),)),
    *(
        (poisson(LAP), n, (SampledLaplacePair(0.25, 0.25, "remove"), SampledLaplacePair(0.25, 0.25, "add")))
        for n in NEIGHBOURS[:2]
    ),
    (poisson(LAP), "replace_one", ()),
    *((poisson(e), n, (DiscretePair, DiscretePair)) for e in DECLARED for n in NEIGHBOURS[:2]),
    *((poisson(e), "replace_one", ()) for e in DECLARED),
    *((poisson(ExponentialMechanism(epsilon=0.5)), n, (DiscretePair, DiscretePair)) for n in NEIGHBOURS[:2]),
    (poisson(ExponentialMechanism(epsilon=0.5)), "replace_one", ()),
    *((poisson(RandomizedResponse(epsilon=0.5)), n, ()) for n in NEIGHBOURS),
    *((poisson(ZeroConcentrated(rho=0.5)), n, ()) for n in NEIGHBOURS),
    *((fixed(e), "add_remove", ()) for e in (NOISE, LAP, *DECLARED, ExponentialMechanism(epsilon=0.5))),
    *((fixed(NOISE), n, (FixedSizePair(0.25, 1.0),)) for n in NEIGHBOURS[1:]),
    *((fixed(LAP), n, (DiscretePair,)) for n in NEIGHBOURS[1:]),
    # a price for emptied records says nothing of the exchanges that sampling makes among the others
    *((fixed(e), "zero_out", ()) for e in (*DECLARED, ExponentialMechanism(epsilon=0.5))),
    *((fixed(e), "replace_one", (DiscretePair,)) for e in (*DECLARED, ExponentialMechanism(epsilon=0.5))),
    *((fixed(RandomizedResponse(epsilon=0.5)), n, ()) for n in NEIGHBOURS),
    *((fixed(ZeroConcentrated(rho=0.5)), n, ()) for n in NEIGHBOURS),
    *((wrap(inner), n, ()) for wrap in (poisson, fixed) for inner in (LAP * 2, poisson(NOISE)) for n in NEIGHBOURS),
    *((poisson(NOISE * 2), n, (MixturePair, MixturePair)) for n in NEIGHBOURS[:2]),
    (poisson(NOISE + NOISE), "replace_one", (MixturePair,)),
    *((fixed(NOISE * 2), n, (FixedSizePair,)) for n in NEIGHBOURS[1:]),
]


@pytest.mark.parametrize(("event", "neighbours", "expected"), TABLE)
def test_every_event_has_its_pair_or_is_refused(
    event: Event, neighbours: Neighbours, expected: tuple[Any, ...]
) -> None:
    """Each event under each relation has exactly the pairs that are proven, or NoProvenBound with reason and remedy."""
    if not expected:
        with pytest.raises(NoProvenBound, match=r"Expected .*, got .*: .*\. .*") as caught:
            directions(event * 3, neighbours)
        assert isinstance(caught.value, ValueError)
        return
    found = [way.steps for way in directions(event * 3, neighbours)]
    assert [count for ((_, count),) in found] == [3] * len(expected)
    for ((pair, _),), wanted in zip(found, expected, strict=True):
        assert type(pair) is wanted if isinstance(wanted, type) else pair == wanted


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_sampling_everything_is_no_sampling(neighbours: Neighbours) -> None:
    """A Poisson rate of 1 is the unsampled event under every relation; a full batch is where its n may be public."""
    assert directions(NOISE.poisson(rate=1.0), neighbours) == directions(NOISE, neighbours)
    full = NOISE.without_replacement(batch=5, records=5)
    if neighbours == "add_remove":
        with pytest.raises(NoProvenBound):
            directions(full, neighbours)
    else:
        assert directions(full, neighbours) == directions(NOISE, neighbours)


# --- domination of what really runs, by brute force ----------------------------------------------------------------

EPSILONS = np.array([-2.0, -1.0, -0.5, -0.1, 0.0, 0.05, 0.2, 0.5, 1.0, 2.0])


def stick(pair: Pair) -> np.ndarray:
    p, q = pair.above(EPSILONS)
    return np.asarray(pair.infinite + p - np.exp(EPSILONS) * q)


def plane_stick(q: float, noise: float, v: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Hockey sticks of (1-q)N(0) + qN(v) against (1-q)N(0) + qN(w) in the plane, on a grid; error about 1e-6."""
    h = 0.04 * noise
    x = np.arange(-7.5 * noise, 7.5 * noise, h)
    one = np.exp(-(x**2) / (2 * noise**2))

    def density(mean: np.ndarray) -> np.ndarray:
        a, b = (np.exp(-((x - m) ** 2) / (2 * noise**2)) for m in mean)
        mixed = (1 - q) * np.multiply.outer(one, one) + q * np.multiply.outer(a, b)
        return np.asarray(mixed * h * h / (2 * np.pi * noise**2))

    p, other = density(v), density(w)
    return np.array([np.maximum(p - math.exp(e) * other, 0).sum() for e in EPSILONS])


@pytest.mark.parametrize(("q", "noise"), [(0.1, 1.0), (0.5, 0.7), (0.02, 0.5), (0.9, 2.0)])
def test_opposite_records_are_the_worst_exchange(q: float, noise: float) -> None:
    """No two records of the unit disc are told apart better than +1 and -1 under Poisson sampling; the pair is
    theirs.
    """
    rng = np.random.default_rng(7)
    bound = stick(MixturePair(q, 1 / noise, "replace"))
    for trial in range(10):
        angles, radii = rng.uniform(0, 2 * np.pi, 2), np.sqrt(rng.uniform(0, 1, 2))
        radii = np.ones(2) if trial % 2 else radii
        v, w = (r * np.array([np.cos(a), np.sin(a)]) for r, a in zip(radii, angles, strict=True))
        assert np.all(plane_stick(q, noise, v, w) <= bound + 2e-6)
    v = np.array([np.cos(1.0), np.sin(1.0)])
    assert plane_stick(q, noise, v, -v) == pytest.approx(bound, abs=2e-6)
    # mutant: a record beyond the clip breaks the bound
    assert np.any(plane_stick(q, noise, 1.1 * v, -1.1 * v) > bound + 1e-4)


def batch_density(records: Sequence[float], weights: dict[tuple[int, ...], float], noise: float) -> np.ndarray:
    x = np.arange(-14.0, 14.0, 2e-3)
    out = np.zeros_like(x)
    for batch, weight in weights.items():
        out += weight * np.exp(-((x - sum(records[i] for i in batch)) ** 2) / (2 * noise**2))
    return out * 2e-3 / (noise * math.sqrt(2 * math.pi))


def told_apart(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - math.exp(e) * q, 0).sum() for e in EPSILONS])


@pytest.mark.parametrize(("records", "batch", "noise"), [(3, 1, 1.0), (3, 2, 1.0), (4, 2, 0.6), (4, 3, 1.7)])
def test_fixed_size_batches_are_dominated(records: int, batch: int, noise: float) -> None:
    """For every tiny data set at the clip and every exchange of one record, the true hockey stick is below the
    pair's.
    """
    subsets = list(itertools.combinations(range(records), batch))
    weights = {subset: 1 / len(subsets) for subset in subsets}
    bound = stick(
        directions(Gaussian(noise_multiplier=noise).without_replacement(batch=batch, records=records), "replace_one")[
            0
        ].steps[0][0]
    )
    attained = np.zeros_like(bound)
    for rest in itertools.combinations_with_replacement((-1.0, 0.0, 1.0), records - 1):
        laws = [batch_density([own, *rest], weights, noise) for own in (-1.0, 0.0, 1.0)]
        for p, q in itertools.permutations(laws, 2):
            found = told_apart(p, q)
            assert np.all(found <= bound + 1e-6)
            attained = np.maximum(attained, found)
    assert np.any(attained > 0.6 * bound)  # a mutant pair with half the distance would be exceeded:
    assert np.any(attained > stick(FixedSizePair(batch / records, 1 / noise)) + 1e-3)


@pytest.mark.medium
@pytest.mark.parametrize(("q", "noise"), [(0.3, 1.0), (0.1, 0.5)])
def test_poisson_batches_are_dominated(q: float, noise: float) -> None:
    """For every tiny data set, adding or removing, emptying and exchanging a record cost at most their pairs."""

    def law(data: Sequence[float]) -> np.ndarray:
        chosen = itertools.chain.from_iterable(
            itertools.combinations(range(len(data)), k) for k in range(len(data) + 1)
        )
        weights = {batch: q ** len(batch) * (1 - q) ** (len(data) - len(batch)) for batch in chosen}
        return batch_density(data, weights, noise)

    leave, join = (
        way.steps[0][0] for way in directions(Gaussian(noise_multiplier=noise).poisson(rate=q), "add_remove")
    )
    change = directions(Gaussian(noise_multiplier=noise).poisson(rate=q), "replace_one")[0].steps[0][0]
    for rest in itertools.combinations_with_replacement((-1.0, 0.5, 1.0), 2):
        without, emptied = law(rest), law([*rest, 0.0])
        assert emptied == pytest.approx(without, abs=1e-15)  # inside a batch, an emptied record is an absent one
        laws = [law([*rest, own]) for own in (-1.0, 0.3, 1.0)]
        for there in laws:
            assert np.all(told_apart(there, without) <= stick(leave) + 1e-6)
            assert np.all(told_apart(without, there) <= stick(join) + 1e-6)
        for p, other in itertools.permutations(laws, 2):
            assert np.all(told_apart(p, other) <= stick(change) + 1e-6)


def test_tail_function_is_scipys() -> None:
    """The Gaussian pair's deep tail keeps its digits: 30 standard deviations out it is still a normal number."""
    p, q = GaussianPair(1.0).above(np.array([30.5]))
    assert p[0] == pytest.approx(float(mp.ncdf(-30)), rel=1e-12)
    assert q[0] == pytest.approx(float(ndtr(-31.0)), rel=1e-12)
