from __future__ import annotations

import math

import pytest

from privet.lectures import rule
from privet.lectures.grid import DELTAS, EPSILONS, PAIRS, exact_ratio, false_points, first_false
from privet.theory import exact_noise


def test_the_grid_is_the_audits() -> None:
    """34 epsilons from 0.01 to 10, 22 of them at most 1, and 12 deltas."""
    assert (len(EPSILONS), sum(e <= 1 for e in EPSILONS), len(DELTAS), len(PAIRS)) == (34, 22, 12, 408)
    assert (min(EPSILONS), max(EPSILONS)) == (0.01, 10.0)


@pytest.mark.parametrize(("name", "false"), [("claim_3_2", 276), ("classical", 14), ("rho", 0), ("lemma_1_1", 18)])
def test_false_points_agree_with_the_rules_themselves(name: str, false: int) -> None:
    """What is certainly false is what the rule does not claim as certainly true."""
    known = rule(name)
    found = false_points(lambda e, d: known.multiplier(e, d, 1))
    assert len(found) == false
    assert found == tuple(pair for pair in PAIRS if not known.is_true(epsilon=pair[0], delta=pair[1]))


def test_first_false_is_the_frontier() -> None:
    """Two ways to the same number; infinite where a rule never fails."""
    known = rule("classical")
    assert first_false(lambda e, d: known.multiplier(e, d, 1), 1e-5) == pytest.approx(
        known.frontier(delta=1e-5), rel=1e-8
    )
    assert first_false(lambda e, d: rule("rho").multiplier(e, d, 1), 1e-5) == math.inf


def test_exact_noise_has_ratio_one() -> None:
    """The least private noise is its own measure."""
    assert exact_ratio(lambda e, d: exact_noise(epsilon=e, delta=d, sensitivity=1.0), 1.0, 1e-5) == pytest.approx(1.0)
