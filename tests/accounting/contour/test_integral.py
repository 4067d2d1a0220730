"""The contour accountant: certified brackets that hold golden values and independent witnesses, and catch mutants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from privet.accounting import Event, ExponentialMechanism, Gaussian, Laplace, Pure
from privet.accounting.contour.integral import contour_delta, contour_epsilon
from privet.accounting.contour.line import Line
from privet.accounting.fourier.brackets import fourier_delta, fourier_epsilon
from privet.accounting.pairs.dominating import directions
from privet.accounting.pairs.elementary import DiscretePair, GaussianPair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Pair
from privet.accounting.renyi_orders import (
    Steps,
    best_order,
    chernoff_epsilon,
    chernoff_log_delta,
    infinite_mass,
    log_moment,
)
from privet.accounting.theorems.gaussian_profile import profile
from privet.privacy import Neighbours

Bracket = tuple[float, float]


def sgd(noise: float, rate: float, steps: int) -> Event:
    return Gaussian(noise_multiplier=noise).poisson(rate=rate) * steps


def fixed(noise: float, batch: int, records: int, steps: int) -> Event:
    return Gaussian(noise_multiplier=noise).without_replacement(batch=batch, records=records) * steps


def brackets(
    run: Event, neighbours: Neighbours, price: Callable[[Steps, float], Bracket | None], at: float
) -> list[Bracket]:
    found = [price(way.steps, at) for way in directions(run, neighbours)]
    return [bracket for bracket in found if bracket is not None]


def worst(run: Event, neighbours: Neighbours, price: Callable[[Steps, float], Bracket | None], at: float) -> Bracket:
    found = brackets(run, neighbours, price, at)
    return max(low for low, _ in found), max(high for _, high in found)


def holds(bracket: Bracket, truth: float, relative: float = 0.0) -> bool:
    """Whether the bracket holds a truth that is itself known to `relative` only."""
    return bracket[0] * (1 - relative) <= truth <= bracket[1] * (1 + relative)


# --- golden values --------------------------------------------------------------------------------------------------

# From the project's reference panel: saddle-point contour integrals by an implementation that shares no code with
# this one, at two resolutions that agree to 1e-12, and inside rigorous lattice brackets; stated to 1e-9.
GOLDEN: list[tuple[str, Event, Neighbours, float, float]] = [
    ("pub_mnist_60ep", sgd(1.1, 0.004266666666666667, 14062), "add_remove", 1e-5, 2.381596921424422),
    ("pub_cifar_bigbatch", sgd(3.0, 0.08192, 2500), "add_remove", 1e-5, 6.578895850577211),
    ("pub_poisson_T1", sgd(0.8, 0.01, 1), "add_remove", 1e-6, 0.8876273503451443),
    ("pub_poisson_lownoise", sgd(0.7, 0.001, 10_000), "add_remove", 1e-7, 2.1020291307838694),
    (
        "pub_three_phases",
        sgd(1.0, 0.01, 1000) + sgd(1.5, 0.02, 500) + sgd(0.8, 0.005, 2000),
        "add_remove",
        1e-5,
        3.0850910167528762,
    ),
    (
        "pub_laplace_gauss",
        Laplace(scale=4.0) * 10 + Gaussian(noise_multiplier=5.0) * 10,
        "add_remove",
        1e-6,
        4.499630774250027,
    ),
    ("pub_replace_poisson", sgd(1.5, 0.01, 500), "replace_one", 1e-5, 1.1450325669171535),
    ("pub_single_record_n2", sgd(4.0, 0.001, 1_000_000), "add_remove", 1e-6, 1.0794145492151364),
    ("pub_gauss_T1000", Gaussian(noise_multiplier=20.0) * 1000, "add_remove", 1e-6, 8.30622504995473),
    # upper end of the panel's bracket: the dominating pair of Zhu, Dong and Wang; sigma 2 there is per replacement
    ("pub_wor_replace", fixed(4.0, 100, 10_000, 1000), "replace_one", 1e-5, 0.718571003719651),
]


@pytest.mark.parametrize(("run", "neighbours", "delta", "truth"), [g[1:] for g in GOLDEN], ids=[g[0] for g in GOLDEN])
def test_golden_epsilons(run: Event, neighbours: Neighbours, delta: float, truth: float) -> None:
    """The bracket holds the panel's value to the digits that the panel knows, and is a millionth wide at most."""
    low, high = worst(run, neighbours, contour_epsilon, delta)
    assert holds((low, high), truth, 2e-9)
    assert high - low <= 1e-6 * high


def test_golden_delta() -> None:
    """Panel case pub_delta_at_eps1: delta(1) of 1000 steps at rate 0.01 and noise 1, known to 1e-9."""
    low, high = worst(sgd(1.0, 0.01, 1000), "add_remove", contour_delta, 1.0)
    assert holds((low, high), 0.002612420578626824, 2e-9)
    assert high - low <= 1e-6 * high


# reference.json, psg2_*: one-dimensional mpmath quadrature of the profile of two steps, 15 digits
TWICE = [
    ("remove", 0.1, 1.0, 0.1, 0.0333398136254453),
    ("add", 0.1, 1.0, 0.1, 0.0111589499032626),
    ("remove", 0.25, 2.0, 0.25, 0.013110013888545),
    ("add", 0.25, 2.0, 0.25, 0.00235011937377767),
]


@pytest.mark.parametrize(("kind", "rate", "noise", "epsilon", "truth"), TWICE)
def test_two_steps_match_quadrature(kind: str, rate: float, noise: float, epsilon: float, truth: float) -> None:
    """Two steps, in each direction, against the reference's own 15 digits: by the line, or by Fourier where it
    has none.
    """
    steps = [(MixturePair(rate, 1 / noise, kind), 2)]  # type: ignore[arg-type]
    found = contour_delta(steps, epsilon)
    assert kind == "add" or found is not None
    assert holds(found or fourier_delta(steps, epsilon), truth, 1e-14)


def nested(pair: MixturePair, epsilon: np.ndarray, count: int) -> np.ndarray:
    """delta of `count` steps by the defining integrals, E over one step's outcome of the rest's delta: slow,
    obvious.
    """
    if count == 1:
        p, q = pair.above(epsilon)
        return np.asarray(p - np.exp(epsilon) * q)
    h = 1 / 80
    x = np.arange(-9.0, 9.0 + 4 * pair.shift, h)
    up, down = (1 - pair.rate + pair.rate * np.exp(z * pair.shift * x - pair.shift**2 / 2) for z in (1, -1))
    flat = np.exp(-x * x / 2) * h / math.sqrt(2 * math.pi)
    density, loss = {
        "remove": (flat * up, np.log(up)),
        "add": (flat, -np.log(up)),
        "replace": (flat * up, np.log(up / down)),
    }[pair.kind]
    return nested(pair, np.subtract.outer(epsilon, loss), count - 1) @ density


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["remove", "add", "replace"])
@pytest.mark.parametrize("count", [2, 3])
def test_few_steps_match_nested_quadrature(kind: str, count: int) -> None:
    """Two and three steps against nested trapezoid sums over the outcomes, which know nothing of moments."""
    pair = MixturePair(0.2, 0.7, kind)  # type: ignore[arg-type]
    for epsilon in (0.15, 0.4):
        truth = float(nested(pair, np.array(epsilon), count))
        found = contour_delta([(pair, count)], epsilon) or fourier_delta([(pair, count)], epsilon)
        assert holds(found, truth, 1e-9 if kind != "add" else 1e-6)


# --- an independent engine as witness -------------------------------------------------------------------------------

WITNESSED: list[Any] = [
    (sgd(0.3, 1e-4, 1000), "add_remove", 1e-5),  # nearly atomic
    (sgd(0.5, 1e-3, 5), "add_remove", 1e-6),
    pytest.param(sgd(0.2, 1e-6, 10), "add_remove", 1e-6, marks=pytest.mark.slow),
    (sgd(0.2, 1e-6, 10), "add_remove", 1e-8),
    (sgd(0.5, 1e-3, 50), "replace_one", 1e-6),
    (sgd(1.0, 0.01, 1000), "add_remove", 1e-18),
    (sgd(0.6, 0.05, 20), "zero_out", 1e-18),
    (sgd(4.0, 0.001, 10**6), "add_remove", 1e-6),
    (sgd(50.0, 0.5, 10**4), "replace_one", 1e-9),
    (sgd(1.5, 0.01, 500), "replace_one", 1e-5),
    (sgd(0.8, 0.9, 3), "replace_one", 1e-5),  # M nearly vanishes on the line; see test_pairs, VANISHING
    (fixed(4.0, 100, 10_000, 1000), "replace_one", 1e-5),
    (fixed(2.0, 10, 50, 30), "zero_out", 1e-5),
    (sgd(1.0, 0.1, 5) + Gaussian(noise_multiplier=3.0), "add_remove", 1e-6),
    (Laplace(scale=4.0).poisson(rate=0.1) * 100 + Gaussian(noise_multiplier=5.0) * 10, "add_remove", 1e-6),
    (Pure(epsilon=0.2) * 5 + Gaussian(noise_multiplier=5.0), "replace_one", 1e-6),
    (ExponentialMechanism(epsilon=0.2) * 20, "add_remove", 1e-6),
]


def agree(run: Event, neighbours: Neighbours, delta: float) -> int:
    """Both engines' brackets overlap, in both questions and each direction; how many lines were certified."""
    certified = 0
    for way in directions(run, neighbours):
        low, high = fourier_epsilon(way.steps, delta)
        found = contour_epsilon(way.steps, delta)
        if found is not None:
            certified += 1
            assert found[0] <= found[1]
            assert max(found[0], low) <= min(found[1], high), (run, way.name, delta, found, (low, high))
        if not 0 < high < math.inf:
            continue
        epsilon = high
        low, high = fourier_delta(way.steps, epsilon)
        found = contour_delta(way.steps, epsilon)
        if found is not None:
            assert found[0] <= found[1]
            assert max(found[0], low) <= min(found[1], high), (run, way.name, epsilon, found, (low, high))
    return certified


@pytest.mark.medium
@pytest.mark.parametrize(("run", "neighbours", "delta"), WITNESSED, ids=repr)
def test_the_fourier_engine_agrees(run: Event, neighbours: Neighbours, delta: float) -> None:
    """Two engines that share only the pairs' definitions overlap, nearly atomic losses and tiny deltas included."""
    assert agree(run, neighbours, delta) > 0


def random_run(rng: np.random.Generator) -> tuple[Event, Neighbours, float]:
    noise, rate = 10 ** rng.uniform(-0.6, 1.0), 10 ** rng.uniform(-5, -0.05)
    steps = int(10 ** rng.uniform(0.3, 5.0))
    neighbours: Neighbours = ("add_remove", "zero_out", "replace_one")[int(rng.integers(3))]
    run = sgd(noise, rate, steps)
    if neighbours != "add_remove" and rng.uniform() < 0.3:
        records = int(10 ** rng.uniform(1, 5))
        run = fixed(noise, max(1, round(rate * records)), records, steps)
    if rng.uniform() < 0.2:
        run = run + Gaussian(noise_multiplier=10 ** rng.uniform(0, 1.5))
    return run, neighbours, 10 ** rng.uniform(-14, -2)


@pytest.mark.medium
@pytest.mark.parametrize("seed", range(8))
def test_the_fourier_engine_agrees_on_random_runs(seed: int) -> None:
    """As above, on settings that nobody chose."""
    agree(*random_run(np.random.default_rng(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_the_fourier_engine_agrees_on_three_hundred_runs(seed: int) -> None:
    """As above, on three hundred settings."""
    agree(*random_run(np.random.default_rng(seed)))


def test_a_billion_steps() -> None:
    """At 1e9 steps the run is Gaussian to 1e-4: the bracket is narrow and next to the central limit, which is
    no bound.
    """
    rate, noise, steps = 1e-4, 40.0, 10**9
    low, high = worst(sgd(noise, rate, steps), "add_remove", contour_epsilon, 1e-6)
    assert 0 < low <= high
    assert high - low < 1e-6 * high
    mu = rate * math.sqrt(steps * math.expm1(noise**-2))
    assert profile(mu, high) == pytest.approx(1e-6, rel=0.01)


# --- closed forms and structure -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-18, 1e-60, 1e-250])
@pytest.mark.parametrize("mu", [0.05, 1.0, 7.0])
def test_gaussian_runs_match_the_closed_form(mu: float, delta: float) -> None:
    """On Gaussian runs, where the truth is a formula, the bracket holds it down to deltas of 1e-250."""
    found = contour_epsilon([(GaussianPair(mu / 4), 16)], delta)
    assert found is not None
    low, high = found
    assert profile(mu, high) <= delta * (1 + 1e-9)
    assert low == 0 or profile(mu, low) >= delta * (1 - 1e-9)
    assert high - low < 1e-6 * high


def test_infinite_losses_are_charged() -> None:
    """Mass at infinity composes as 1 - (1-d)^k, is added to delta, and a smaller delta has no epsilon."""
    pair = DiscretePair((-0.5, 0.5), (0.4, 0.59), 0.01)
    steps: list[tuple[Pair, int]] = [(pair, 3), (GaussianPair(0.5), 4)]
    mass = 1 - 0.99**3
    assert infinite_mass(steps) == pytest.approx(mass, rel=1e-14)
    assert contour_epsilon(steps, mass * 0.999) == (math.inf, math.inf)
    found = contour_epsilon(steps, mass + 1e-6)
    assert found is not None
    assert math.isfinite(found[1])
    at = contour_delta(steps, found[1])
    assert at is not None
    assert holds(at, mass + 1e-6, 1e-6)


def test_beyond_the_largest_loss_nothing_is_left() -> None:
    """Where epsilon exceeds every possible loss, delta is exactly the mass at infinity."""
    pair = MixturePair(0.01, 1.0, "add")
    assert contour_delta([(pair, 10)], 10 * pair.highest * (1 + 1e-14)) == (0.0, 0.0)


def test_renyi_bounds_lie_above() -> None:
    """The Rényi bounds at any order are above the line's upper bounds, and best_order finds nearly the best."""
    steps = [(MixturePair(0.02, 0.8, "remove"), 300)]
    found = contour_epsilon(steps, 1e-6)
    assert found is not None
    orders = np.geomspace(0.5, 60, 100)
    bounds = chernoff_epsilon(steps, math.log(1e-6), orders)
    assert np.all(bounds >= found[1])
    best = best_order(steps, "epsilon", math.log(1e-6), fine=True)
    assert chernoff_epsilon(steps, math.log(1e-6), np.array([best]))[0] <= bounds.min() * (1 + 1e-3)
    assert np.all(chernoff_log_delta(steps, found[1], orders) >= math.log(1e-6) - 1e-6)


# --- the sign of the trapezoid rule's error, and mutants ------------------------------------------------------------


def coarse(line: Line, spacing: float) -> Line:
    """The same line with nodes `spacing` apart, as many as decay to nothing."""
    nodes = line.tilt + 1j * spacing * np.arange(max(3, math.ceil(line.nodes[-1].imag / spacing)) + 1)
    values, error = log_moment(line.steps, nodes)
    return replace(line, spacing=spacing, nodes=nodes, log_m=values, error=error)


def laid(steps: Steps, epsilon: float, log_delta: float) -> Line:
    line = Line.laid(steps, best_order(steps, "log_delta", epsilon), epsilon, log_delta)
    assert line is not None
    return line


@pytest.mark.parametrize("period", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_aliases_only_add(period: float) -> None:
    """Coarse trapezoid sums are Σ e^{ckP} delta(epsilon + kP): above the truth always, and equal to that sum."""
    steps = [(GaussianPair(0.25), 16)]
    line = coarse(laid(steps, 2.0, math.log(profile(1.0, 2.0))), 2 * math.pi / period)
    assert line.lower(2.0) <= profile(1.0, 2.0) <= line.upper(2.0)
    images = 0.0
    for k in range(-200, 200):
        at, tilt = 2.0 + k * period, line.tilt * k * period
        # below 0 the hockey stick is 1 - e^at + e^at·delta(-at)
        value = profile(1.0, at) if at >= 0 else -math.expm1(at) + math.exp(at) * profile(1.0, -at)
        images += math.exp(tilt + math.log(value)) if value > 1e-290 else 0.0
    assert line.total(2.0) == pytest.approx(images, rel=1e-9)


@pytest.mark.parametrize("factor", [2, 5, 10, 20])
@pytest.mark.parametrize("kind", ["remove", "replace"])
def test_coarse_lines_of_mixtures_stay_above(kind: str, factor: int) -> None:
    """A sampled run priced with nodes too far apart is priced too high, never too low."""
    steps = [(MixturePair(0.02, 1.0, kind), 400)]  # type: ignore[arg-type]
    line = laid(steps, 2.0, -14.0)
    truth = line.lower(2.0)
    assert coarse(line, factor * line.spacing).upper(2.0) >= truth
    assert coarse(line, factor * line.spacing).lower(2.0) <= line.upper(2.0)


def test_a_dropped_truncation_term_is_caught() -> None:
    """With too few nodes the honest cut keeps the bracket around the truth; the mutant without it loses the truth."""
    steps = [(MixturePair(0.02, 1.0, "remove"), 400)]
    full = laid(steps, 2.0, -14.0)
    truth = (full.lower(2.0) + full.upper(2.0)) / 2
    assert holds((full.lower(2.0), full.upper(2.0)), truth)
    caught = 0
    for last in range(2, len(full.nodes) // 2):
        short = replace(
            full, nodes=full.nodes[: last + 1], log_m=full.log_m[: last + 1], error=full.error[: last + 1], tail=None
        )
        reach = np.array([full.spacing * last])
        fall = sum(count * pair.decay(full.tilt, reach)[0] for pair, count in steps)
        honest = replace(short, log_cut=float(full.log_m[0].real + full.error[0] - fall))
        mutant = replace(short, log_cut=-math.inf)
        assert holds((honest.lower(2.0), honest.upper(2.0)), truth)
        caught += not holds((mutant.lower(2.0), mutant.upper(2.0)), truth)
    assert caught >= 3


def test_a_dropped_tail_is_caught() -> None:
    """Where the loss is nearly atomic the Fermi tail carries the answer: without it the bracket misses the witness."""
    steps = [(MixturePair(1e-6, 5.0, "remove"), 10)]
    truth = fourier_delta(steps, 13.0)
    line = laid(steps, 13.0, math.log(truth[1]))
    assert line.tail is not None
    assert line.lower(13.0) <= truth[1]
    assert truth[0] <= line.upper(13.0)
    mutant = replace(line, tail=None, log_cut=-math.inf)
    assert mutant.upper(13.0) < truth[0] or mutant.lower(13.0) > truth[1]


@pytest.mark.parametrize(
    "mutant",
    [
        sgd(0.55, 0.004266666666666667, 14062),
        sgd(1.1, 0.004266666666666667 / 2, 14062),
        sgd(1.1001, 256 / 60_000, 14062),
    ],
)
def test_a_wrong_run_is_caught(mutant: Event) -> None:
    """Half the noise, half the rate, or noise off by 1e-4 fail the comparison that the golden run passes."""
    assert not holds(worst(mutant, "add_remove", contour_epsilon, 1e-5), 2.381596921424422, 2e-9)


def test_a_sum_without_moments_errors_is_no_bound() -> None:
    """The slack that rounding adds is positive at every epsilon: upper and lower never coincide by accident."""
    line = laid([(MixturePair(0.02, 1.0, "remove"), 400)], 2.0, -14.0)
    for epsilon in (1.9, 2.0, 2.1):
        assert line.lower(epsilon) < line.total(epsilon) < line.upper(epsilon)


@pytest.mark.medium
def test_one_step_against_the_hockey_stick() -> None:
    """On one step, where above() is the answer, every certified line holds it over random rates, noises and deltas."""
    rng = np.random.default_rng(3)
    certified = 0
    for _ in range(40):
        rate, shift = 10 ** rng.uniform(-3, -0.05), 10 ** rng.uniform(-1, 0.7)
        epsilon = float(rng.uniform(0.05, 1.0) * shift * 4)
        for kind in ("remove", "add", "replace"):
            pair = MixturePair(rate, shift, kind)
            p, q = (float(tail[0]) for tail in pair.above(np.array([epsilon])))
            truth, slack = p - math.exp(epsilon) * q, 1e-13 * p
            found = contour_delta([(pair, 1)], epsilon)
            if found is None:
                continue
            certified += 1
            assert found[0] - slack <= truth <= found[1] + slack, (pair, epsilon)
    assert certified > 20


def test_normal_tail_is_available() -> None:
    """The witness for Gaussian runs is scipy's normal law: delta(0) of mu is 2Φ(mu/2) - 1."""
    found = contour_delta([(GaussianPair(0.5), 4)], 0.0)
    assert found is not None
    assert holds(found, float(2 * ndtr(0.5) - 1), 1e-14)
