"""What any attack can gain: bounds that hold, are tight where the truth is known, and are said rightly."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from privet.accounting import Gaussian, Laplace, Pure, epsilon, guarantee
from privet.errors import InvalidParameter
from privet.privacy import Guarantee, Neighbours, words
from privet.report import best_attack, best_guess, implied_profile, meaning, posterior, reach
from privet.report.meaning import run_profile

RATES = [0.0, 1e-6, 0.001, 0.01, 0.05, 0.1, 0.5, 0.9, 0.999, 1.0]
ALL_NEIGHBOURS: tuple[Neighbours, ...] = ("replace_one", "zero_out", "add_remove")
epsilons = st.floats(0.0, 20.0)
deltas = st.floats(0.0, 0.5)
priors = st.floats(0.001, 0.999)


def gaussian_profile(mu: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exact profile of mu-GDP (Balle and Wang 2018), as the slow obvious oracle."""
    return np.asarray(norm.cdf(mu / 2 - at / mu) - np.exp(at + norm.logcdf(-mu / 2 - at / mu)))


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
def test_best_attack_is_the_likelihood_ratio_test(mu: float) -> None:
    """For Gaussian noise the bound is Neyman and Pearson's rate, Phi(Phi^-1(FPR) + mu): never below, hardly above."""
    truth = norm.cdf(norm.ppf(RATES) + mu)
    found = best_attack(lambda at: gaussian_profile(mu, at), RATES)
    assert np.all(found >= truth * (1 - 1e-14))
    ordinary = np.array(RATES) >= 0.001
    assert np.all(found[ordinary] <= truth[ordinary] * (1 + 1e-4))


@pytest.mark.medium
@given(epsilons)
def test_best_attack_on_pure_privacy_is_two_lines(value: float) -> None:
    """(epsilon, 0)-privacy leaves exactly the smaller of e^epsilon FPR and 1 - e^-epsilon (1 - FPR)."""
    rates = np.array(RATES)
    truth = np.minimum(np.exp(value) * rates, 1 - np.exp(-value) * (1 - rates))
    found = best_attack(implied_profile(epsilon=value, delta=0.0), RATES, refinements=40)
    assert np.all(found >= np.clip(truth, rates, 1) * (1 - 1e-12))
    assert np.all(found <= truth * (1 + 1e-6) + 1e-12)


@pytest.mark.parametrize("mu", [0.1, 2.0])
def test_refining_only_tightens(mu: float) -> None:
    """Any choice of epsilons gives a valid bound; more of them a smaller one, rising in the rate, never below it."""
    truth = norm.cdf(norm.ppf(RATES) + mu)
    bounds = [best_attack(lambda at: gaussian_profile(mu, at), RATES, refinements=times) for times in (0, 5, 20)]
    assert np.all(bounds[2] <= bounds[1])
    assert np.all(bounds[1] <= bounds[0])
    for bound in bounds:
        assert np.all(bound >= truth * (1 - 1e-14))
        assert np.all(np.diff(bound) >= 0)
        assert np.all(bound >= RATES)


@given(epsilons, deltas, st.floats(0.0, 25.0))
def test_implied_profile_is_that_of_the_worst_release(value: float, delta: float, at: float) -> None:
    """It equals the hockey stick of: tell all with probability delta, else randomized response (four answers)."""
    lie = (1 - delta) / (1 + math.exp(value))
    truth = (1 - delta) - lie
    worst = sum(max(0.0, p - math.exp(at) * q) for p, q in ((delta, 0.0), (truth, lie), (lie, truth)))
    bound = float(implied_profile(epsilon=value, delta=delta)(np.array([at]))[0])
    assert worst * (1 - 1e-12) - 4e-16 <= bound <= worst + 1e-12


@pytest.mark.parametrize("prior", [0.001, 0.2, 0.5, 0.7])
def test_best_guess_is_bayes(prior: float) -> None:
    """For Gaussian noise no threshold guesses better than the bound, and the best one attains it."""
    thresholds = np.linspace(-12, 12, 200_001)
    right = prior * norm.sf(thresholds - 1.0) + (1 - prior) * norm.cdf(thresholds)
    bound = best_guess(lambda at: gaussian_profile(1.0, at), prior)
    assert right.max() <= bound <= right.max() + 1e-7


@given(priors, epsilons)
def test_posterior_moves_the_odds_by_e_to_the_epsilon(prior: float, value: float) -> None:
    """The two ends of the belief have odds e^epsilon below and above the prior's."""
    low, high = posterior(prior, epsilon=value)
    odds = prior / (1 - prior)
    assert low <= prior <= high or math.isclose(low, high)
    assert low / (1 - low) == pytest.approx(odds * math.exp(-value), rel=1e-9)
    assert (1 - high) / high == pytest.approx(math.exp(-value) / odds, rel=1e-3, abs=1e-15)


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ALL_NEIGHBOURS)
@pytest.mark.parametrize("run", [Gaussian(noise_multiplier=4.0) * 9, Laplace(scale=20.0) * 200], ids=repr)
def test_a_run_is_known_better_than_its_guarantee(run: Any, neighbours: Neighbours) -> None:
    """The whole profile never leaves more to an attack than the one pair (epsilon, delta) taken from it."""
    whole = meaning(run, delta=1e-6, neighbours=neighbours)
    pair = meaning(guarantee(run, delta=1e-6, neighbours=neighbours))
    for tight, loose in zip(whole.attacks, pair.attacks, strict=True):
        assert tight.true_positive_rate <= loose.true_positive_rate * (1 + 1e-9)
    assert whole.guess <= pair.guess
    assert whole.posterior == pair.posterior


def test_the_meaning_of_a_gaussian_is_exact() -> None:
    """Through the accountant, one Gaussian of noise 2 leaves Phi(Phi^-1(FPR) + 1/2), and Phi(1/4) to a guess."""
    told = meaning(Gaussian(noise_multiplier=2.0), delta=1e-6, neighbours="add_remove")
    for attack in told.attacks:
        truth = norm.cdf(norm.ppf(attack.false_positive_rate) + 0.5)
        assert truth <= attack.true_positive_rate <= truth * (1 + 1e-5)
    assert told.guess == pytest.approx(norm.cdf(0.25), rel=1e-9)
    assert told.guarantee.epsilon == epsilon(Gaussian(noise_multiplier=2.0), delta=1e-6, neighbours="add_remove")


@pytest.mark.parametrize("neighbours", ALL_NEIGHBOURS)
def test_the_words_carry_the_whole_statement(neighbours: Neighbours) -> None:
    """The text begins with the full guarantee, has a line a rate, and every percentage is rounded to the safe side."""
    told = meaning(Gaussian(noise_multiplier=5.0) * 3, delta=1e-6, neighbours=neighbours, prior=0.1)
    text = str(told)
    assert text.startswith(told.guarantee.details)
    assert text.count("false alarm") == len(told.attacks) == 4
    assert "reveals everything with probability 1e-06" in text
    assert "a belief of 10 %" in text
    for attack in told.attacks:
        said = next(line for line in text.splitlines() if f"in {100 * attack.false_positive_rate:g} % of cases" in line)
        number = float(said.split("at most ")[1].split(" %")[0])
        assert 100 * attack.true_positive_rate <= number <= 100 * attack.true_positive_rate * 1.02


@pytest.mark.parametrize("neighbours", ALL_NEIGHBOURS)
def test_a_guarantee_for_people_is_explained_in_people(neighbours: Neighbours) -> None:
    """Where a person is the unit the whole text speaks of people and their rows, never of a record."""
    stated = replace(guarantee(Gaussian(noise_multiplier=5.0), delta=1e-6, neighbours=neighbours), unit="person")
    promise, question = str(meaning(stated)).split("\n\n")[:2]
    assert promise.startswith("The release is user-level (")
    assert words(neighbours, "person").change in promise
    assert "knows all rows of every other person" in question
    assert "given pe" in question
    assert "record" not in question


def test_no_noise_means_no_secret() -> None:
    """Without noise every attack succeeds, belief may become certainty, and the text says so."""
    told = meaning(Gaussian(noise_multiplier=0.0), delta=1e-6, neighbours="add_remove")
    assert all(attack.true_positive_rate == 1.0 for attack in told.attacks)
    assert told.posterior == (0.0, 1.0)
    assert "may become certainty" in str(told)


def test_a_foreign_guarantee_can_be_explained() -> None:
    """A bare statement by somebody else, of any size, is explained without its run."""
    stated = Guarantee(
        epsilon=1000.0,
        delta=1e-5,
        neighbours="replace_one",
        accountant="unknown",
        theorem="as stated",
        lower=0.0,
        sampling="sampling not stated",
    )
    told = meaning(stated)
    assert told.posterior[1] == 1.0
    assert "more than e^1e+03 = infinity" in str(told)


def test_reach_is_where_delta_vanishes() -> None:
    """A profile is shown up to where delta is about 1e-12; a run that is infinitely bad or perfect has a span too."""
    run = Gaussian(noise_multiplier=3.0)
    end = reach(run, neighbours="add_remove")
    shown = run_profile(run, neighbours="add_remove")(np.array([end]))
    assert shown[0] == pytest.approx(1e-12, rel=1e-3)
    assert reach(Gaussian(noise_multiplier=0.0), neighbours="add_remove") == 10.0
    assert reach(Pure(epsilon=0.0), neighbours="add_remove") == 1.0


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.5, math.nan, "half"])
def test_impossible_priors_are_refused(prior: Any) -> None:
    """Certainty, negative or missing belief is refused with a remedy."""
    with pytest.raises(InvalidParameter, match=r"prior in \(0, 1\).*Use 0\.5"):
        meaning(Gaussian(noise_multiplier=1.0), delta=1e-6, neighbours="add_remove", prior=prior)


@pytest.mark.parametrize("rates", [[-0.1], [1.1], [math.nan], 0.1])
def test_impossible_rates_are_refused(rates: Any) -> None:
    """A false positive rate that is no probability, or is not in a list, is refused."""
    with pytest.raises(InvalidParameter, match="false positive rates"):
        best_attack(implied_profile(epsilon=1.0, delta=0.0), rates)


def test_half_a_statement_is_refused() -> None:
    """A run needs delta and neighbours; a guarantee has its own."""
    run: Any = Gaussian(noise_multiplier=1.0)
    with pytest.raises(InvalidParameter, match="delta and neighbours"):
        meaning(run, delta=1e-6)  # type: ignore[call-overload]  # on purpose
    stated: Any = guarantee(run, delta=1e-6, neighbours="add_remove")
    with pytest.raises(InvalidParameter, match="a guarantee alone"):
        meaning(stated, delta=1e-6)  # type: ignore[call-overload]  # on purpose
