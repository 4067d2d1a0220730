"""The exponential mechanism in several dimensions: a public net, an exact draw from it, and what the net misses."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet import box, glm, l2_ball
from privet.errors import InvalidParameter
from privet.geometry import simplex
from privet.privacy import sensitivity_factor
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import exponential_mechanism
from privet.solvers.drawing import exponential_weights
from privet.solvers.scores import compared, net_of

DOMAINS: dict[str, tuple[Any, int]] = {
    "disc": (l2_ball(radius=2.0), 2),
    "ball": (l2_ball(radius=0.5), 3),
    "flat box": (box(low=[-1.0, 0.0], high=[3.0, 0.01]), 2),
    "simplex": (simplex(total=1.0), 3),
}


def medians(domain: Any, d: int, n: int = 30, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return glm("absolute", X, rng.uniform(-1, 1, size=n), row_norm=1.0, domain=domain)


def odds(problem: Any, points: Any, epsilon: float, relation: Any = "replace_one") -> Any:
    """The exact law of the draw, from the weights it is made with."""
    scores = compared(problem, points, 1.0, problem.records)
    rate = Fraction(epsilon) / (sensitivity_factor(relation) * scores.width)
    weights = exponential_weights(scores.values, rate)(60)
    return np.array([float(Fraction(w, sum(weights))) for w in weights])


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("most", [8, 50, 300])
def test_every_point_of_the_domain_is_near_the_net(name: str, most: int) -> None:
    """400 points of the domain, drawn by projection: each within the stated distance of a net point, all inside.

    Half of the distance (a mutant) would be false for the coarse nets.
    """
    domain, d = DOMAINS[name]
    points, gap = net_of(medians(domain, d), most)
    assert 2 <= len(points) <= most
    assert all(domain.contains(point) for point in points)
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(400):
        inside = domain.project(domain.centre(d) + 3 * rng.normal(size=d) * rng.random())
        worst = max(worst, float(np.linalg.norm(points - inside, axis=1).min()))
    assert worst <= gap
    assert most > 8 or name == "simplex" or worst > 0.5 * gap


@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
def test_no_point_of_the_net_is_likelier_by_more_than_epsilon(relation: Any) -> None:
    """Exact laws on two neighbours whose records pull to opposite ends: ratios within epsilon, a third of it used."""
    domain, ours, theirs = l2_ball(radius=1.0), np.array([[1.0, 0.0]] * 3), np.array([[1.0, 0.0]] * 3)
    labels, others = [1.0, -1.0, 1.0], [1.0, -1.0, -1.0]
    if relation == "zero_out":
        theirs[2] = math.nan
    laws = []
    for X, y in ((ours, labels), (theirs, others)):
        problem = glm("absolute", X, y, row_norm=1.0, domain=domain)
        points, _ = net_of(problem, 64)
        laws.append(odds(problem, points, 2.0, relation))
    ratios = np.log(laws[0] / laws[1])
    assert np.abs(ratios).max() <= 2.0
    assert ratios.max() - ratios.min() <= 2.0 + 1e-9
    assert ratios.max() - ratios.min() >= 2.0 / 3


@pytest.mark.parametrize("n", [30, 1000])
@pytest.mark.parametrize("name", ["disc", "ball"])
def test_the_mean_excess_is_within_the_bound(name: str, n: int) -> None:
    """By the exact law, no chance involved: E excess over the *domain* is at most `result.bound`.

    The least risk is that of 4,000 points of the domain and of the net. With few records the draw is what costs, and
    0.03 of the bound is reached; with many the net's coarseness, of which the medians need little.
    """
    domain, d = DOMAINS[name]
    problem = medians(domain, d, n)
    result = exponential_mechanism(problem, epsilon=1.0, pieces=200, random=fixed_seed_invalidates_guarantee(3))
    points, _ = net_of(problem, 200)
    X, y = problem.table.units * problem.table.step, problem.labels
    rng = np.random.default_rng(2)
    many = rng.normal(size=(4_000, d))
    many *= domain.radius * rng.random((4_000, 1)) ** (1 / d) / np.linalg.norm(many, axis=1, keepdims=True)
    least = np.abs(many @ X.T - y).mean(axis=1).min()
    risks = np.abs(points @ X.T - y).mean(axis=1)
    excess = float(odds(problem, points, 1.0) @ risks - min(least, risks.min()))
    assert result.bound is not None
    assert (0.03 if n == 30 else 0.01) * result.bound <= excess <= result.bound
    assert result.guarantee.delta == 0.0
    assert domain.contains(result.coef)


def test_a_finer_net_is_worth_its_points() -> None:
    """More pieces lower the bound while the net is coarse; it tends to the draw's own price."""
    problem = medians(l2_ball(radius=1.0), 2, 3000)
    bounds = [
        exponential_mechanism(problem, epsilon=1.0, pieces=m, random=fixed_seed_invalidates_guarantee(1)).bound
        for m in (16, 100, 900)
    ]
    assert bounds[0] > bounds[1] > bounds[2] > 0  # type: ignore[operator]


def test_too_many_dimensions_or_no_end_is_refused() -> None:
    """Eleven dimensions with 1,024 pieces, or the whole plane: refused on public facts, before a record is read."""
    with pytest.raises(InvalidParameter, match="2\\^11"):
        exponential_mechanism(medians(l2_ball(radius=1.0), 11), epsilon=1.0)
    with pytest.raises(InvalidParameter, match="bounded domain"):
        exponential_mechanism(medians(None, 2), epsilon=1.0)
