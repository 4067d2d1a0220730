from __future__ import annotations

import math

import numpy as np
import pytest

from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.elementary import GaussianPair, LaplacePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Pair
from privet.lectures.examples.amplification_proof import fixed_size, poisson
from privet.lectures.examples.clip_before_averaging import clip_before_or_after
from privet.lectures.examples.one_record_a_step import against_full_batches, n_squared_steps
from privet.lectures.examples.privacy_loss import composed, convolved, loss_law, transformed
from privet.lectures.examples.realised_batch import divided_by_expected_size, divided_by_realised_size
from privet.lectures.examples.survey import survey


def test_the_survey_costs_what_the_exercise_says() -> None:
    """6.48719166512793e-06 with a secret list, 0.5 for a known participant; by hand and by the lemma."""
    found = survey()
    assert found.by_hand == pytest.approx(6.48719166512793e-06, rel=1e-13)
    assert found.by_the_lemma == pytest.approx(found.by_hand, rel=1e-12)
    assert found.known_participant == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("rate", "accountant", "true"), [(0.05, 1.195e-5, 6.462e-3), (0.01, 2.732e-9, 6.344e-4)], ids=["541 times", "rare"]
)
def test_a_batch_divided_by_its_own_size_leaks(rate: float, accountant: float, true: float) -> None:
    """The audit's numbers, section 2.6; divided by the expected size instead, nothing leaks beyond the price."""
    found = divided_by_realised_size(rate=rate)
    assert found.accountant == pytest.approx(accountant, rel=1e-3)
    assert found.true == pytest.approx(true, rel=1e-3)
    fixed = divided_by_expected_size(rate=rate)
    assert 0.9 * fixed.accountant < fixed.true <= fixed.accountant


def test_the_realised_leak_agrees_with_simulation() -> None:
    """200,000 simulated batches of a small table show a half-line that has 90 % of the exact δ, and not more than all.

    Five standard errors: at most 1e-6 false alarms. Mutant: with moves of C/|B| the exact δ would be a third of it.
    """
    n, rate, noise, epsilon, runs = 20, 0.3, 1.0, 1.0, 200_000
    rng = np.random.default_rng(541)
    others = rng.binomial(n, rate, size=runs)
    newcomer = rng.random(runs) < rate
    size = others + newcomer
    mean = np.where(size > 0, (newcomer - 1.0 * others) / np.maximum(size, 1), 0.0)
    outcome = mean + noise / (rate * n) * rng.normal(size=runs)
    # an event: how much likelier than e^ε times its chance without the newcomer
    cut = -0.7
    present = float(np.mean(outcome > cut))
    alone = np.where(others > 0, -1.0, 0.0) + noise / (rate * n) * rng.normal(size=runs)
    seen = present - math.exp(epsilon) * float(np.mean(alone > cut))
    deviation = math.sqrt((present + math.exp(2 * epsilon) * float(np.mean(alone > cut))) / runs)
    exact = divided_by_realised_size(n=n, rate=rate, noise=noise, epsilon=epsilon).true
    assert seen <= exact + 5 * deviation
    assert seen >= 0.9 * exact


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.7])
@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
def test_every_line_of_the_proof_holds(rate: float, noise: float) -> None:
    """Split exact, each line at least the one before, both directions; a rate of half as much is refused."""
    lines = poisson(rate=rate, noise=noise)
    assert lines.gap < 1e-15
    assert lines.left == pytest.approx(lines.split, abs=1e-12)
    assert lines.split <= lines.step_private + 1e-12
    assert lines.step_private == pytest.approx(lines.right, abs=1e-12)
    assert max(lines.worst, lines.worst_back) <= 1
    assert poisson(table=(0,) * 4, rate=rate, noise=noise).worst == pytest.approx(1, rel=1e-3)
    assert poisson(table=(0,) * 4, rate=rate, noise=noise, claimed_rate=rate / 2).worst > 1.5


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_the_exercise_on_fixed_sizes_holds(batch: int) -> None:
    """Batches of fixed size, one record exchanged: both directions, and an equality if nobody else counts."""
    lines = fixed_size(batch=batch)
    assert max(lines.worst, lines.worst_back) <= 1
    assert fixed_size(table=(0,) * 8, batch=batch).worst == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(
    "pair", [GaussianPair(0.1), LaplacePair(0.2), MixturePair(0.1, 0.5, "remove"), MixturePair(0.1, 0.5, "add")]
)
def test_the_recipe_agrees_with_the_library(pair: Pair) -> None:
    """Rounded up and down the recipe brackets the library's bracket; to the nearest it is within 1e-3 of it."""
    found = composed(pair, steps=60, epsilon=0.8)
    low, high = fourier_delta([(pair, 60)], 0.8)
    assert found.down <= high
    assert low <= found.up
    assert found.nearest == pytest.approx(high, rel=1e-3)


def test_transforming_equals_convolving() -> None:
    """The T-th power of the transform is the T-fold convolution, to 1e-13."""
    law = loss_law(GaussianPair(0.3), span=6.0, points=1024)
    fast, slow = transformed(law, 5), convolved(law, 5)
    start = round((fast.first - slow.first) / law.width)
    assert np.abs(fast.masses - slow.masses[start : start + 1024]).max() < 1e-13
    assert fast.infinite == pytest.approx(slow.infinite)


def test_many_steps_cost_what_the_audit_says() -> None:
    """Section 2.7: 0.293 against (9.63, 1.01e-3); 25.4 down to 4.44 for noise of 0.5 to 32 sensitivities."""
    found = n_squared_steps()
    assert found.true == pytest.approx(0.293, abs=5e-4)
    assert (found.proved, found.proved_delta) == pytest.approx((9.63, 1.01e-3), abs=5e-3)
    costs = [25.380, 8.157, 5.694, 4.947, 4.644, 4.507, 4.441]
    assert list(against_full_batches().values()) == pytest.approx(costs, abs=5e-3)


@pytest.mark.parametrize(("n", "before", "tightly"), [(10, 0.1, 0.70), (10_000, 1e-4, 0.80)])
def test_clipping_before_averaging_is_best(n: int, before: float, tightly: float) -> None:
    """Section 3's row: about 1/n before, 1 after to [0, 1], 0.70 to 0.80 after to [0, 1/n]; moves 1/n, 1, 1/n."""
    found = clip_before_or_after(n)
    assert (found.before, found.after, found.after_tightly) == pytest.approx((before, 1.0, tightly), rel=1e-3)
    moves = (found.moved_before, found.moved_after, found.moved_after_tightly)
    assert moves == pytest.approx((1 / n, 1.0, 1 / n), rel=1e-6)
