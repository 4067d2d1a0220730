"""Votes of classes: permute-and-flip has its law, rates and votes find what stands out."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from privet.plan import Meter, Plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers.class_choice import ClassVote
from privet.solvers.class_rates import ClassRates, expected_rate


def planned(release: Any, neighbours: Any = "replace_one") -> Plan:
    return Plan(releases=(release,), records=100, neighbours=neighbours)


def law(scores: list[float]) -> list[float]:
    """Permute-and-flip's probabilities, over all orders by hand; `scores` are ρ (f − min f)."""
    found = [0.0] * len(scores)
    for order in permutations(range(len(scores))):
        left = 1 / math.factorial(len(scores))
        for each in order:
            found[each] += left * math.exp(-scores[each])
            left *= 1 - math.exp(-scores[each])
    return found


@pytest.mark.medium
def test_a_vote_is_permute_and_flip() -> None:
    """3,000 votes of three classes by their law; each share within 4.5 sd (5e-5 for all), which sees 4 points."""
    labels = np.repeat([0.0, 1.0, 2.0], [40, 36, 24])
    vote = ClassVote(name="constant", classes=3)
    random, epsilon, runs = fixed_seed_invalidates_guarantee(3), 0.2, 3_000
    plan = planned(vote.release(epsilon))
    found = np.zeros(3)
    for _ in range(runs):
        found[int(vote.run(labels, Meter(plan, random=random)).argmax())] += 1
    expected = np.array(law([epsilon / 2 * (40 - each) for each in (40, 36, 24)]))
    assert expected.sum() == pytest.approx(1)
    assert np.all(np.abs(found / runs - expected) < 4.5 * np.sqrt(expected * (1 - expected) / runs))


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("classes", [2, 3])
def test_rates_are_those_of_the_labels_where_noise_is_small(classes: int, neighbours: Any) -> None:
    """At epsilon 100 within 2 points, missing labels aside, and 1 together."""
    labels = np.append(np.repeat([0.0, 1.0], [70, 30]), np.nan)
    rates = ClassRates(classes=classes, neighbours=neighbours)
    meter = Meter(planned(rates.release(100.0), neighbours), random=fixed_seed_invalidates_guarantee(1))
    found = rates.run(labels, meter)
    assert found[:2] == pytest.approx([0.7, 0.3], abs=0.02)
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()


@pytest.mark.parametrize(("noisy", "scale"), [(0.3, 0.02), (-0.1, 0.03), (0.02, 0.03), (1.2, 0.1)])
def test_a_rate_is_the_mean_after_its_noise(noisy: float, scale: float) -> None:
    """As by quadrature over the rate itself, of half a uniform and half a Beta(0.2, 0.2) law, within 1 part in 100."""
    law = beta(0.2, 0.2)
    ends = np.concatenate([np.geomspace(1e-18, 0.5, 8_000), 1 - np.geomspace(1e-12, 0.5, 4_000)[::-1]])
    middles, widths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    weight = (1 + law.pdf(middles)) * np.exp(-np.abs(noisy - middles) / scale) * widths
    assert expected_rate(noisy, scale) == pytest.approx(float(weight @ middles / weight.sum()), rel=0.01)


def test_a_buried_rate_is_a_part_of_what_buries_it() -> None:
    """Where nothing is seen, the rate is below a half of the noise's scale, and it rises with what is seen."""
    found = [expected_rate(noisy, 0.03) for noisy in (0.0, 0.03, 0.06, 0.3)]
    assert 0 < found[0] < 0.015 < found[1] < found[2] < found[3] < 0.31
