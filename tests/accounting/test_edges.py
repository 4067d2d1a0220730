"""Brackets at absurd parameters, against mpmath: no upper end below the truth, no lower end above it, no crash."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from privet.accounting import (
    Approximate,
    Bounds,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    NegativeBinomialTrials,
    PoissonTrials,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
    bounds,
    delta,
    epsilon,
    guarantee,
    random_trials,
)
from privet.accounting.accountants import ACCOUNTANTS
from privet.accounting.query import ask
from privet.errors import InvalidParameter, NoProvenBound
from privet.privacy import Neighbours

Curve = Callable[[Any], Any]  # epsilon to the log of delta, in mpmath
A: Neighbours = "zero_out"


def gaussian(mu: Any, e: Any) -> Any:
    """log delta of Gaussian noise, Balle and Wang 2018."""
    u = e / mu - mu / 2
    if abs(u) > 1e4:
        return -u * u / 2 - 2 * mpmath.log(u) + mpmath.log(min(mu, 1)) - 1 if u > 0 else mpmath.mpf(10) ** -40 * -1
    with mpmath.workdps(max(60, int(60 - 2 * mpmath.log10(mu)) if mu < 1 else 60)):

        def mills(x: Any) -> Any:
            return mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(x / mpmath.sqrt(2)) * mpmath.exp(x * x / 2)

        far = mills(u + mu) if u + mu < 1e4 else (1 - (u + mu) ** -2) / (u + mu)
        return mpmath.log(mills(u) - far) - u * u / 2 - mpmath.log(2 * mpmath.pi) / 2


def laplace(distance: Any, e: Any) -> Any:
    return mpmath.log(-mpmath.expm1((e - distance) / 2)) if e < distance else mpmath.ninf


def answer(size: Any, e: Any) -> Any:
    return mpmath.log(-mpmath.expm1(e - size) / (1 + mpmath.exp(-size))) if e < size else mpmath.ninf


def choice(size: Any, e: Any) -> Any:
    return mpmath.log(mpmath.expm1((e - size) / 2) ** 2 / -mpmath.expm1(-size)) if e < size else mpmath.ninf


def sampled(curve: Curve, rate: float) -> Curve:
    """Poisson batches, the worse of both directions, in as many digits as the rate needs."""

    def log_delta(e: Any) -> Any:
        with mpmath.workdps(700):
            q, found = mpmath.mpf(rate), mpmath.ninf
            for weight in (q, 1 - mpmath.exp(e) * (1 - q) if e < 1e3 else -1):
                if weight > 0:
                    inner = mpmath.log1p(mpmath.expm1(e) / weight) if e < 1e5 else e - mpmath.log(weight)
                    found = max(found, curve(inner) + mpmath.log(weight))
            return found

    return log_delta


def drawn(kind: str, size: float, rate: float) -> tuple[Event, Curve, float]:
    """An event of that size, its exact curve, and its largest loss or a typical one."""
    inverse = 1 / mpmath.mpf(size)
    match kind:
        case "gaussian":
            return Gaussian(noise_multiplier=size), lambda e: gaussian(inverse, e), float(inverse)
        case "gaussians":
            run = Gaussian(noise_multiplier=size) * 3 + Gaussian(noise_multiplier=size / 2)
            return run, lambda e: gaussian(inverse * mpmath.sqrt(7), e), float(inverse)
        case "laplace":
            return Laplace(scale=size), lambda e: laplace(inverse, e), float(inverse)
        case "pure":
            return Pure(epsilon=size), lambda e: answer(mpmath.mpf(size), e), size
        case "exponential":
            return ExponentialMechanism(epsilon=size), lambda e: choice(mpmath.mpf(size), e), size
    inner, curve, largest = drawn(kind.split()[0], size, rate)
    largest = largest + math.log(rate) if largest > 700 else math.log1p(rate * math.expm1(largest))
    return inner.poisson(rate=rate), sampled(curve, rate), max(largest, 0.0)


KINDS = [
    "gaussian",
    "gaussians",
    "laplace",
    "pure",
    "exponential",
    "gaussian sampled",
    "laplace sampled",
    "pure sampled",
]


def check(run: Event, curve: Curve, asked: dict[str, float], accountant: str) -> None:
    delta, epsilon = asked.get("delta"), asked.get("epsilon")
    try:
        (low, high), _ = ask(run, A, accountant, delta, epsilon)
    except NoProvenBound:
        return
    assert 0 <= low <= high, (run, asked)
    if epsilon is not None:
        truth = curve(mpmath.mpf(epsilon))
        assert high > 0 or truth == mpmath.ninf, (run, asked)
        assert truth <= mpmath.log(high) + 1e-40 if high > 0 and truth > -740 else True, (run, asked, low, high)
        assert low == 0 or mpmath.log(low) <= truth + 1e-40, (run, asked, low, high)
    else:
        target = mpmath.log(delta)
        assert high == math.inf or curve(mpmath.mpf(high)) <= target + 1e-40, (run, asked, low, high)
        assert low in (0, sys.float_info.max) or curve(mpmath.mpf(low)) >= target - 1e-40, (run, asked, low, high)
        assert low < math.inf, (run, asked)


def scan(seed: int, cases: int) -> None:
    """Log-uniform sizes, rates and questions, half of them within reason, many at the ends of the support."""
    rng = random.Random(seed)
    mpmath.mp.dps = 60
    for _ in range(cases):
        kind = rng.choice(KINDS)
        size = 10 ** rng.uniform(*rng.choice([(-290, 290), (-4, 4)]))
        rate = min(10 ** rng.uniform(*rng.choice([(-280, 0), (-4, 0)])), 1 - 2.0**-50)
        run, curve, largest = drawn(kind, size, rate)
        near = largest * (1 - 10 ** rng.uniform(-17, -1)) if math.isfinite(largest) else 1.0
        at = rng.choice([near, largest if math.isfinite(largest) else 0.0, 10 ** rng.uniform(-290, 290), 0.0])
        for asked in ({"epsilon": at}, {"delta": 10 ** rng.uniform(*rng.choice([(-290, -0.001), (-12, -0.1)]))}):
            for accountant in ("auto", rng.choice(["closed", "renyi", "zcdp", "gdp"])):
                check(run, curve, asked, accountant)


@pytest.mark.medium
def test_absurd_parameters_keep_their_brackets() -> None:
    """30 random events with sizes from 1e-290 to 1e290 lie in their brackets, by auto and by another accountant."""
    scan(1, 30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_absurd_parameters_keep_their_brackets_everywhere(seed: int) -> None:
    """As above, for 600 events each."""
    scan(seed, 600)


@pytest.mark.parametrize(
    ("kind", "size", "rate", "at"),
    [
        ("gaussian sampled", 6.383925177697551e197, 4.361920140780931e-114, 6.832661754903e-312),
        ("laplace sampled", 6.518549143494514e210, 9.748842736812542e-106, 1.49555405e-316),
        ("pure sampled", 1.534e-211, 9.748842736812542e-106, 1.4954e-316),
    ],
)
def test_what_floats_hold_with_few_digits_is_rounded_outwards(kind: str, size: float, rate: float, at: float) -> None:
    """Below 1e-308 a product rounds by half of the least float: both ends allow for it, and the upper is above 0."""
    run, curve, _ = drawn(kind, size, rate)
    mpmath.mp.dps = 60
    check(run, curve, {"epsilon": at}, "auto")


def holds(found: Bounds, truth: float) -> bool:
    return found.lower <= truth * (1 + 1e-12) and found.upper >= truth * (1 - 1e-12)


def test_a_laplace_loss_beyond_700_is_not_guessed() -> None:
    """Scale 1e-3 at epsilon 999.9 leaves 1 - e^-0.05; the lower end was .524."""
    assert holds(bounds(Laplace(scale=1e-3), epsilon=999.9, neighbours=A), -math.expm1(-0.05))


def test_a_huge_epsilon_is_not_called_infinite() -> None:
    """sigma 5e-4 on half the records: two million, where the lower end was infinite."""
    low, high = bounds(Gaussian(noise_multiplier=5e-4).poisson(rate=0.5), delta=1e-5, neighbours=A)
    assert 2.0e6 < low <= high < 2.01e6


@pytest.mark.medium
def test_the_lower_end_of_ten_thousand_million_answers_is_below_its_upper_end_by_its_rounding() -> None:
    """Pure(1e-5) * 10**10 is nearly Gaussian with mu = 1: its bracket holds that; it was too narrow."""
    (low, high), _ = ask(Pure(epsilon=1e-5) * 10**10, A, "auto", None, 1.0)
    assert low < high * (1 - 2e-9)
    assert holds(Bounds(low, high), 0.126936737506644 * (1 + 2e-10))


@pytest.mark.parametrize("noise", [1e-150, 1e-155, 1e-300, 5e-324])
def test_next_to_no_noise_is_no_crash(noise: float) -> None:
    """Up to the largest float epsilon is certified or infinite; delta is 1 but for rounding; nothing is raised."""
    for run in (Gaussian(noise_multiplier=noise), Gaussian(noise_multiplier=noise) * 3 + Gaussian(noise_multiplier=1)):
        low, high = bounds(run, delta=1e-5, neighbours=A)
        assert 0 < low < math.inf
        assert high >= min(0.5 / noise / noise if noise > 1e-154 else math.inf, sys.float_info.max)
        assert bounds(run, epsilon=1.0, neighbours=A).upper == 1.0


@pytest.mark.parametrize("size", [1e17, 1e152, 1e300])
def test_huge_bounded_ranges_compose_to_their_size(size: float) -> None:
    """Ten choices of epsilon 1e300 cost about 1e301; moments whose digits cancelled said 2.4e152."""
    assert epsilon(ExponentialMechanism(epsilon=size) * 10, delta=1e-5, neighbours=A) >= size


@pytest.mark.filterwarnings("ignore::privet.errors.LooseBound")
@pytest.mark.parametrize(
    ("run", "at"),
    [
        (Gaussian(noise_multiplier=1e200), 0.0),
        (Gaussian(noise_multiplier=1e200) * 5, 1.0),
        (Gaussian(noise_multiplier=3.0), 1e300),
        (Gaussian(noise_multiplier=3.0).poisson(rate=0.1), 1000.0),
        (Gaussian(noise_multiplier=3.0).poisson(rate=0.1) * 5, 1e200),
    ],
)
@pytest.mark.parametrize("accountant", ["auto", *sorted(set(ACCOUNTANTS) - {"basic", "advanced", "optimal"})])
def test_gaussian_noise_never_has_a_delta_of_zero(run: Event, at: float, accountant: str) -> None:
    """Whatever epsilon, some delta above 0 is left; what underflows is rounded up."""
    try:
        assert delta(run, epsilon=at, neighbours=A, accountant=accountant) > 0
    except NoProvenBound:
        assert accountant != "auto"


def test_a_tiny_mu_still_costs() -> None:
    """sigma 1e200 has delta(0) = 4e-201; at a smaller delta its epsilon is above 0."""
    assert epsilon(Gaussian(noise_multiplier=1e200) * 5, delta=1e-205, neighbours=A) > 0
    assert holds(bounds(Gaussian(noise_multiplier=1e200), epsilon=0, neighbours=A), 1e-200 / math.sqrt(2 * math.pi))


@pytest.mark.parametrize("steps", range(1, 9))
def test_delta_is_above_zero_up_to_the_last_float_of_the_support(steps: int) -> None:
    """`steps` floats below its largest loss a sampled Laplace step has the delta that mpmath says, not 0."""
    run, curve, largest = drawn("laplace sampled", 0.3, 0.5)
    for _ in range(steps):
        largest = math.nextafter(largest, 0.0)
    found = bounds(run, epsilon=largest, neighbours=A)
    truth = curve(mpmath.mpf(largest))
    assert truth == mpmath.ninf or found.upper >= mpmath.exp(truth)
    assert found.lower <= mpmath.exp(truth)


UNUSUAL: list[Any] = [
    Fraction(1, 3),
    np.longdouble("0.3"),
    Fraction(1, 10**400),
    Fraction(10**400, 3),
    10**400,
    10**5000,
]
IDS = ["1/3", "longdouble", "tiny", "huge fraction", "huge", "unprintable"]
PLACES: dict[str, Callable[[Any], Event]] = {
    "gaussian": lambda v: Gaussian(noise_multiplier=v),
    "laplace": lambda v: Laplace(scale=v),
    "response": lambda v: RandomizedResponse(epsilon=v),
    "pure": lambda v: Pure(epsilon=v),
    "approximate": lambda v: Approximate(epsilon=v, delta=1e-9),
    "its delta": lambda v: Approximate(epsilon=1.0, delta=v),
    "exponential": lambda v: ExponentialMechanism(epsilon=v),
    "concentrated": lambda v: ZeroConcentrated(rho=v),
    "rate": lambda v: Gaussian(noise_multiplier=1.0).poisson(rate=v),
    "count": lambda v: Gaussian(noise_multiplier=1.0) * v,
    "twice": lambda v: (Gaussian(noise_multiplier=1.0) * 10**200) * 10**200,
    "records": lambda v: Gaussian(noise_multiplier=1.0).without_replacement(batch=2, records=v),
    "mean": lambda v: random_trials(Gaussian(noise_multiplier=1.0), mean=v),
    "poisson mean": lambda v: PoissonTrials(event=Gaussian(noise_multiplier=1.0), mean=v),
    "shape": lambda v: NegativeBinomialTrials(event=Gaussian(noise_multiplier=1.0), shape=v, stop=0.5),
    "stop": lambda v: NegativeBinomialTrials(event=Gaussian(noise_multiplier=1.0), shape=0.0, stop=v),
}


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.LooseBound")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", UNUSUAL, ids=IDS)
def test_unusual_numbers_are_taken_or_refused_in_a_sentence(value: Any, place: str) -> None:
    """Fractions, long doubles and numbers beyond floats have a cost, in both questions, or are refused shortly."""
    try:
        run = PLACES[place](value)
        assert epsilon(run, delta=1e-3, neighbours="replace_one" if place == "records" else A) >= 0
        assert 0 <= delta(run * 3, epsilon=0.5, neighbours="replace_one" if place == "records" else A) <= 1
        promise = guarantee(run, delta=1e-3, neighbours="replace_one" if place == "records" else A)
        assert str(promise)
        assert promise.details
    except InvalidParameter as error:
        refusal = str(error)
    else:
        return
    assert refusal.startswith("Expected ")
    assert len(refusal) < 400


@pytest.mark.parametrize("value", UNUSUAL, ids=IDS)
def test_unusual_questions_are_answered_or_refused_in_a_sentence(value: Any) -> None:
    """As above, for delta and epsilon themselves."""
    questions: list[Callable[[], float]] = [
        lambda: epsilon(Gaussian(noise_multiplier=1.0), delta=value, neighbours=A),
        lambda: delta(Gaussian(noise_multiplier=1.0), epsilon=value, neighbours=A),
    ]
    for question in questions:
        refusal = ""
        try:
            assert question() >= 0
        except InvalidParameter as error:
            refusal = str(error)
        assert len(refusal) < 400


def test_what_no_float_equals_is_rounded_to_where_it_costs_more() -> None:
    """A noise of 1/3 is kept from below, an epsilon, a delta and a rate of 1/3 from above."""
    third: Any = Fraction(1, 3)
    assert Gaussian(noise_multiplier=third).noise_multiplier <= third
    assert Laplace(scale=third).scale <= third
    assert Pure(epsilon=third).epsilon >= third
    assert Approximate(epsilon=1.0, delta=third).delta >= third
    assert Gaussian(noise_multiplier=1.0).poisson(rate=third).rate >= third  # type: ignore[attr-defined]
    assert Gaussian(noise_multiplier=2**60 + 1).noise_multiplier == 2.0**60


def test_unlike_answers_compose_to_the_optimum() -> None:
    """All is revealed with 1 - .9 × .8 = .28 exactly: at that delta epsilon is 3, not infinite; below it is."""
    run = Approximate(epsilon=1.0, delta=0.1) + Approximate(epsilon=2.0, delta=0.2)
    assert epsilon(run, delta=0.28, neighbours=A) == 3.0
    assert epsilon(run, delta=0.2799999999999999, neighbours=A) == math.inf
    p, q = math.e / (1 + math.e), math.e**2 / (1 + math.e**2)
    by_hand = 0.28 + 0.72 * (p * q * (1 - math.exp(0.5 - 3)) + (1 - p) * q * (1 - math.exp(0.5 - 1)))
    assert delta(run, epsilon=0.5, neighbours=A) == pytest.approx(by_hand, rel=1e-12)
    (low, high), name = ask(Pure(epsilon=0.1) * 30 + Pure(epsilon=0.2) * 40, A, "auto", 1e-5, None)
    assert name == "closed"
    other = ask(Pure(epsilon=0.1) * 30 + Pure(epsilon=0.2) * 40, A, "fourier", 1e-5, None)[0]
    assert other.lower <= high
    assert low <= other.upper
    assert high - low < 1e-8
