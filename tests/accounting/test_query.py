"""What does a run cost? Every question, on the safe side, by the accountant that is documented to answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from privet.accounting import (
    Approximate,
    Bounds,
    DiscreteLaplace,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
    bounds,
    delta,
    epsilon,
    guarantee,
    profile,
)
from privet.accounting.accountants import ACCOUNTANTS, THEOREMS
from privet.errors import InvalidParameter, NoProvenBound
from privet.privacy import Neighbours

SGD = Gaussian(noise_multiplier=1.1).poisson(rate=0.01) * 500
BATCHES = Gaussian(noise_multiplier=3.0).without_replacement(batch=10, records=500) * 200
NEIGHBOURS: tuple[Neighbours, ...] = ("add_remove", "zero_out", "replace_one")


def test_the_four_questions_agree() -> None:
    """epsilon and delta are the upper ends of bounds, profile is delta at each epsilon, guarantee carries the
    bracket.
    """
    eps = epsilon(SGD, delta=1e-6, neighbours="add_remove")
    found = bounds(SGD, delta=1e-6, neighbours="add_remove")
    assert isinstance(found, Bounds)
    assert found.upper == eps
    assert 0 < found.lower <= found.upper
    assert found.upper - found.lower < 1e-6 * found.upper
    deltas = profile(SGD, [0.5, 1.0, 2.0], neighbours="add_remove")
    one_by_one = [delta(SGD, epsilon=e, neighbours="add_remove") for e in (0.5, 1.0, 2.0)]
    assert deltas.tolist() == pytest.approx(one_by_one, rel=1e-6)  # points of a profile share their lines
    assert bounds(SGD, epsilon=1.0, neighbours="add_remove").upper == one_by_one[1]
    promise = guarantee(SGD, delta=1e-6, neighbours="add_remove")
    assert (promise.epsilon, promise.delta, promise.lower) == (eps, 1e-6, found.lower)
    assert promise.accountant == "contour"
    assert promise.theorem == THEOREMS["contour"]


def test_the_profile_falls_and_takes_arrays() -> None:
    """A profile is a float array of its input's length, in [0, 1], never rising with epsilon."""
    found = profile(SGD, np.linspace(0, 6, 13), neighbours="replace_one")
    assert found.shape == (13,)
    assert found.dtype == np.float64
    assert np.all(np.diff(found) <= 0)
    assert np.all((found >= 0) & (found <= 1))
    assert profile(SGD, [], neighbours="replace_one").shape == (0,)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_guarantee_is_a_sentence_to_sign(neighbours: Neighbours) -> None:
    """The sentence states numbers rounded to the safe side, the relation, the sampling, the theorem and what
    it assumes.
    """
    promise = guarantee(SGD, delta=1e-6, neighbours=neighbours)
    text = promise.details
    assert "500 releases of Gaussian noise (noise multiplier 1.1) on Poisson batches (rate 0.01)" in text
    assert THEOREMS["contour"] in text
    assert "clipped" in text
    assert "stay secret" in text
    assert {"add_remove": "added or removed", "zero_out": "zeroed out", "replace_one": "replaced"}[neighbours] in text
    stated = float(text.split("(", 1)[1].split(",", 1)[0])
    assert promise.epsilon <= stated <= promise.epsilon * (1 + 1e-7)


def test_the_guarantee_names_every_part() -> None:
    """A composed run's sentence names its unlike parts with their counts, and batches without replacement as such."""
    run = BATCHES + Laplace(scale=3.0) * 2 + Pure(epsilon=0.1)
    text = guarantee(run, delta=1e-5, neighbours="replace_one", accountant="renyi").details
    for words in ("200 releases", "10 out of 500 without replacement", "2 releases of Laplace", "1 release of Pure"):
        assert words in text
    assert "stated guarantees of the declared parts" in text


NOISELESS: list[Event] = [
    Gaussian(noise_multiplier=0.0),
    Laplace(scale=0),
    Gaussian(noise_multiplier=0) * 3,
    SGD + Gaussian(noise_multiplier=0),
    Gaussian(noise_multiplier=0).poisson(rate=0.1),
    Laplace(scale=0).poisson(rate=0.1) * 4,
]


@pytest.mark.parametrize("run", NOISELESS, ids=repr)
def test_no_noise_is_said_plainly(run: Event) -> None:
    """Without noise epsilon is infinite, and the sentence says that nothing is promised, never a finite number."""
    assert epsilon(run, delta=1e-6, neighbours="add_remove") == math.inf
    assert bounds(run, delta=1e-6, neighbours="add_remove") == (math.inf, math.inf)
    text = guarantee(run, delta=1e-6, neighbours="add_remove").details
    assert "promises nothing" in text
    assert "epsilon is infinite" in text
    assert "differentially private" not in text


@pytest.mark.parametrize("accountant", ["auto", *ACCOUNTANTS])
@pytest.mark.parametrize("run", NOISELESS, ids=repr)
def test_no_accountant_makes_a_number_of_no_noise(run: Event, accountant: str) -> None:
    """Every accountant says infinity and delta of at least the leak, or refuses; none crashes or invents a price."""
    leak = {True: 0.1, False: 1.0}["poisson" in repr(run) and "1.1" not in repr(run)]
    for ask, least in (({"delta": 1e-6}, math.inf), ({"epsilon": 5.0}, leak)):
        try:
            found = bounds(run, neighbours="add_remove", accountant=accountant, **ask)
        except NoProvenBound:
            continue
        assert found.upper >= least * (1 - 1e-12)
        assert found.lower <= found.upper


def test_a_leak_smaller_than_delta_is_priced() -> None:
    """One noiseless batch at rate 0.1 leaks with probability 0.1: at delta 0.2 epsilon is finite, at 0.05 infinite."""
    run = Gaussian(noise_multiplier=0.0).poisson(rate=0.1)
    assert epsilon(run, delta=0.05, neighbours="add_remove") == math.inf
    assert math.isfinite(epsilon(run, delta=0.2, neighbours="add_remove"))
    assert delta(run, epsilon=3.0, neighbours="add_remove") == pytest.approx(0.1, rel=1e-12)


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: epsilon(SGD, delta=1e-6, neighbours="add_remove", accountant="moments"), "accountant"),
    (lambda: epsilon(SGD, delta=1e-6, neighbours="swap"), "neighbours"),  # type: ignore[arg-type]
    (lambda: epsilon(SGD, delta=1e-6, neighbours=None), "neighbours"),  # type: ignore[arg-type]
    (lambda: epsilon(1.1, delta=1e-6, neighbours="add_remove"), "event"),  # type: ignore[arg-type]
    (lambda: bounds(SGD, neighbours="add_remove"), "exactly one"),
    (lambda: bounds(SGD, delta=1e-6, epsilon=1.0, neighbours="add_remove"), "exactly one"),
    (lambda: bounds(SGD, delta=0.0, neighbours="add_remove"), "delta"),
    (lambda: guarantee(SGD, delta=1.0, neighbours="add_remove"), "delta"),
    *(
        (lambda d=d: epsilon(SGD, delta=d, neighbours="add_remove"), "delta")
        for d in (0, -1e-6, 1, 1.5, math.nan, "1e-6")
    ),
    *(
        (lambda e=e: delta(SGD, epsilon=e, neighbours="add_remove"), "epsilon")
        for e in (-0.1, math.nan, math.inf, None)
    ),
    (lambda: profile(SGD, [0.5, -1.0], neighbours="add_remove"), "epsilon"),
]


@pytest.mark.parametrize(("ask", "named"), BAD)
def test_questions_that_have_no_answer_are_refused(ask: Callable[[], Any], named: str) -> None:
    """Unknown names, both or neither of the pair, and numbers out of range say what was expected, got, and the
    remedy.
    """
    with pytest.raises(InvalidParameter) as caught:
        ask()
    text = str(caught.value)
    assert text.startswith("Expected ")
    assert named in text
    assert ", got " in text
    assert text.rstrip(".").count(". ") >= 1


def test_neighbours_and_the_pair_are_keywords() -> None:
    """The relation is never implied: leaving it out is a TypeError, and so is passing delta by position."""
    with pytest.raises(TypeError):
        epsilon(SGD, delta=1e-6)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        epsilon(SGD, 1e-6, neighbours="add_remove")  # type: ignore[call-arg]


CHOICES: list[tuple[Event, Neighbours, str]] = [
    (Gaussian(noise_multiplier=2.0) * 10, "replace_one", "closed"),
    (Gaussian(noise_multiplier=2.0) + Gaussian(noise_multiplier=3.0) * 4, "add_remove", "closed"),
    (Gaussian(noise_multiplier=1.0).poisson(rate=0.1), "add_remove", "closed"),
    (Gaussian(noise_multiplier=1.0).poisson(rate=0.1), "replace_one", "closed"),
    (Gaussian(noise_multiplier=1.0).poisson(rate=1.0) * 5, "add_remove", "closed"),
    (Laplace(scale=2.0), "zero_out", "closed"),
    (Pure(epsilon=0.1) * 50, "add_remove", "closed"),
    (RandomizedResponse(epsilon=0.5) * 7, "replace_one", "closed"),
    (Approximate(epsilon=0.1, delta=1e-9) * 20, "replace_one", "closed"),
    (ExponentialMechanism(epsilon=0.3), "add_remove", "closed"),
    (SGD, "add_remove", "contour"),
    (SGD, "replace_one", "contour"),
    (BATCHES, "replace_one", "contour"),
    (ExponentialMechanism(epsilon=0.3) * 3, "add_remove", "contour"),
    (ExponentialMechanism(epsilon=0.3) * 30, "add_remove", "renyi"),  # its pair is that of no one mechanism
    (Laplace(scale=4.0) * 10 + Gaussian(noise_multiplier=5.0) * 10, "add_remove", "contour"),
    (Pure(epsilon=0.1) * 30 + Pure(epsilon=0.2) * 40, "add_remove", "closed"),
    (Pure(epsilon=0.1).poisson(rate=0.5) * 30, "add_remove", "fourier"),
    (Pure(epsilon=0.1).poisson(rate=0.5) * 3 + Pure(epsilon=0.2) * 4, "add_remove", "renyi"),  # near its largest loss
    (ZeroConcentrated(rho=0.1), "add_remove", "renyi"),
    (ZeroConcentrated(rho=0.1) * 3 + SGD, "add_remove", "renyi"),
]


@pytest.mark.medium
@pytest.mark.parametrize(("run", "neighbours", "name"), CHOICES)
def test_auto_picks_as_documented(run: Event, neighbours: Neighbours, name: str) -> None:
    """auto is the closed form where there is one, else the contour, else Fourier, and Rényi where only moments
    are known.
    """
    assert guarantee(run, delta=1e-5, neighbours=neighbours).accountant == name


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_theorem_that_is_sharper_than_a_lattice_answers(neighbours: Neighbours) -> None:
    """Seven discrete Laplace sums: lattices of 4e-6 are narrow, and Rényi's bound is below their upper end."""
    run = DiscreteLaplace(scale=1.5, clip=2) * 7
    found = guarantee(run, delta=1e-5, neighbours=neighbours)
    assert found.accountant == "renyi"
    assert found.epsilon == epsilon(run, delta=1e-5, neighbours=neighbours, accountant="renyi")
    assert found.lower <= found.epsilon < epsilon(run, delta=1e-5, neighbours=neighbours, accountant="fourier")


@pytest.mark.medium
def test_the_default_is_below_moments_by_any_margin() -> None:
    """A lattice as narrow as 4e-8 is asked against them too: it was above by 7e-9."""
    run = Laplace(scale=1.034) + DiscreteLaplace(scale=7.728, clip=4) * 10 + RandomizedResponse(epsilon=1.599)
    for neighbours in NEIGHBOURS[1:]:
        found, loose = (
            epsilon(run, delta=2.97e-9, neighbours=neighbours, accountant=name) for name in ("auto", "renyi")
        )
        assert found <= loose


@pytest.mark.parametrize(("size", "steps"), [(0.7, 300), (0.3, 30), (2.0, 100), (0.05, 1000), (1.0, 4)])
def test_many_exponential_mechanisms_cost_no_more_than_any_theorem_says(size: float, steps: int) -> None:
    """auto is below its pair, Rényi's and zCDP's bound, and above n choices of two losses t and t - size, any t."""
    run = ExponentialMechanism(epsilon=size) * steps
    names = ("auto", "contour", "renyi", "zcdp")
    found, *others = (epsilon(run, delta=1e-5, neighbours="add_remove", accountant=name) for name in names)
    assert found <= min(others) * (1 + 1e-9)
    for top in np.linspace(0.02, 0.98, 49) * size:  # P-mass p at t, where E e^{-L} = 1
        p = -math.expm1(top - size) / -math.expm1(-size)
        count = np.arange(steps + 1)
        loss = count * (top - size) + (steps - count) * top
        chance = binom.pmf(count, steps, 1 - p)
        assert abs(float(chance @ np.exp(-loss)) - 1) < 1e-9
        assert float(chance @ np.maximum(-np.expm1(found - loss), 0.0)) <= 1e-5


def test_a_pair_that_nothing_attains_gives_no_lower_end() -> None:
    """Of many choices and a sampled sum, the lower end is that of the sum, also where moments have the upper end."""
    noise = Gaussian(noise_multiplier=1.0).poisson(rate=0.1) * 30
    run = ExponentialMechanism(epsilon=0.3) * 30
    assert bounds(run, delta=1e-5, neighbours="zero_out").lower == 0
    found, alone = (bounds(part, delta=1e-5, neighbours="zero_out") for part in (run * 10 + noise, noise))
    assert found.lower == alone.lower > 0
    assert guarantee(run * 10 + noise, delta=1e-5, neighbours="zero_out").accountant == "renyi"


def test_a_named_accountant_that_cannot_says_so() -> None:
    """Asking an accountant beyond its theorem is NoProvenBound with a remedy; the contour's own limits included."""
    for name, run in (
        ("closed", SGD),
        ("zcdp", SGD),
        ("gdp", SGD),
        ("optimal", Pure(epsilon=0.1) + Pure(epsilon=0.2)),
        ("contour", Pure(epsilon=0.1) * 3),
        ("fourier", ZeroConcentrated(rho=0.1)),
    ):
        with pytest.raises(NoProvenBound, match=r"Use accountant='auto'"):
            epsilon(run, delta=1e-5, neighbours="add_remove", accountant=name)


TRIPS: list[tuple[Event, Neighbours]] = [
    (SGD, "add_remove"),
    (SGD, "replace_one"),
    (BATCHES, "zero_out"),
    (Gaussian(noise_multiplier=2.0) * 10, "replace_one"),
    (Laplace(scale=2.0), "add_remove"),
    (Pure(epsilon=0.1) * 50, "add_remove"),
    (ZeroConcentrated(rho=0.1), "add_remove"),
    (ExponentialMechanism(epsilon=0.3) * 10, "add_remove"),
]


@pytest.mark.medium
@pytest.mark.parametrize(("run", "neighbours"), TRIPS)
@pytest.mark.parametrize("wanted", [1e-3, 1e-6, 1e-12])
def test_round_trips_stay_on_the_safe_side(run: Event, neighbours: Neighbours, wanted: float) -> None:
    """delta → epsilon → delta comes back to the start within the brackets: never an epsilon that is too small."""
    found = bounds(run, delta=wanted, neighbours=neighbours)
    if found.upper == 0.0:
        assert delta(run, epsilon=0.0, neighbours=neighbours) <= wanted * (1 + 1e-9)
        return
    back = bounds(run, epsilon=found.upper, neighbours=neighbours)
    assert back.lower <= wanted
    assert back.upper <= wanted * (1 + 1e-5)
    again = epsilon(run, delta=back.upper, neighbours=neighbours)
    assert again == pytest.approx(found.upper, rel=1e-5)
    if found.lower > 0:
        assert bounds(run, epsilon=found.lower, neighbours=neighbours).upper >= wanted * (1 - 1e-12)


# Reference panel, closed forms of Balle and Wang in 60 digits
@pytest.mark.parametrize(
    ("noise", "steps", "wanted", "truth"), [(1.0, 1, 1e-5, 4.3771780956812245), (20.0, 1000, 1e-6, 8.30622504995473)]
)
def test_golden_closed_forms(noise: float, steps: int, wanted: float, truth: float) -> None:
    """Panel cases pub_gauss_T1 and pub_gauss_T1000 lie in the bracket, which is tight to 1e-12."""
    low, high = bounds(Gaussian(noise_multiplier=noise) * steps, delta=wanted, neighbours="add_remove")
    assert low <= truth * (1 + 2e-16)
    assert high >= truth * (1 - 2e-16)
    assert high - low < 1e-12 * high


@pytest.mark.parametrize(
    ("run", "neighbours"),
    [
        (Gaussian(noise_multiplier=1e-3).poisson(rate=0.01) * 3, "replace_one"),
        (Gaussian(noise_multiplier=0.01).poisson(rate=0.5) * 10**6, "add_remove"),
        (Laplace(scale=1e-4) * 10, "add_remove"),
        (Pure(epsilon=2000.0).poisson(rate=0.1) * 10, "add_remove"),
        (ExponentialMechanism(epsilon=2000.0) * 10, "replace_one"),
    ],
)
@pytest.mark.filterwarnings("ignore::privet.errors.LooseBound")
def test_losses_beyond_all_meaning_are_still_bounded(run: Event, neighbours: Neighbours) -> None:
    """Epsilons of thousands get a valid bound, at worst a loose one or infinity, never an exception or a NaN."""
    found = bounds(run, delta=1e-5, neighbours=neighbours)
    assert 0 <= found.lower <= found.upper
    assert found.upper > 1000
    assert found.lower < math.inf


def test_numbers_of_other_libraries_are_taken_at_their_value() -> None:
    """NumPy's float32 and int64 price as the plain numbers they are equal to."""
    sampled = Gaussian(noise_multiplier=np.float32(1.1)).poisson(rate=np.float32(0.01))  # type: ignore[arg-type]
    single = sampled * np.int64(3)  # type: ignore[operator]  # as users will
    plain = Gaussian(noise_multiplier=float(np.float32(1.1))).poisson(rate=float(np.float32(0.01))) * 3
    assert single == plain
    price = epsilon(single, delta=np.float32(1e-5), neighbours="add_remove")  # type: ignore[arg-type]
    assert price == epsilon(plain, delta=float(np.float32(1e-5)), neighbours="add_remove")


def test_guarantees_of_the_engines_name_their_arithmetic() -> None:
    """What an engine integrated says that it rests on NumPy and SciPy; a closed form does not."""
    run = Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 100
    for accountant in ("contour", "fourier"):
        said = guarantee(run, delta=1e-6, neighbours="add_remove", accountant=accountant).assumptions
        assert "section 7 of https://" in said[-1]
        assert "/proofs/contour.html" in said[-1]
    closed = guarantee(Gaussian(noise_multiplier=1.0), delta=1e-6, neighbours="add_remove")
    assert not any("SciPy" in clause for clause in closed.assumptions)
