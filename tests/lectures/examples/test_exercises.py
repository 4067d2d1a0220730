from __future__ import annotations

import numpy as np
import pytest

from privet.accounting.theorems.gaussian_profile import profile
from privet.geometry import box, l1_ball, l2_ball
from privet.lectures.examples.distance import comes_nearer, distances, short_enough
from privet.lectures.examples.lopsided_valley import PRINTED, mean_iterate, simulated_excess, valley, valley_excess
from privet.lectures.examples.projections import is_nearest, on_ball, on_cross, on_cube, threshold
from privet.lectures.examples.rank_and_projection import allowed, excess
from privet.lectures.examples.unbounded_gradient import outlier_epsilon, outlier_move


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4, 1e8])
def test_no_noise_is_enough_for_all_labels(size: float) -> None:
    """A label moves the average gradient by 2|y|/n, and what that costs is the exact epsilon of that move."""
    assert outlier_move(size) == pytest.approx(2 * size / 100, rel=1e-12)
    found = outlier_epsilon(size, noise_stddev=3.0)
    assert profile(outlier_move(size) / 3.0, found) <= 1e-5 * (1 + 1e-6)
    assert profile(outlier_move(size) / 3.0, found * 0.99) > 1e-5
    assert outlier_epsilon(size, clip=0.5) <= outlier_epsilon(1e9, clip=0.5)


def test_a_clip_bounds_what_any_label_costs() -> None:
    """With gradients clipped at 1 the cost no longer grows with the label."""
    costs = [outlier_epsilon(size, clip=1.0) for size in (1.0, 1e3, 1e9)]
    assert costs == pytest.approx([costs[0]] * 3, rel=1e-6)


def test_projections_agree_with_the_library_and_are_nearest() -> None:
    """On 100 points all three are the library's; no corner, and no random feasible point, is nearer."""
    rng = np.random.default_rng(0)
    corners = np.vstack([np.eye(4), -np.eye(4)])
    for _ in range(100):
        v = 3 * rng.normal(size=4)
        ball, cube, cross = on_ball(v, 1.5), on_cube(v, 1.5), on_cross(v, 1.5)
        assert ball == pytest.approx(l2_ball(radius=1.5).project(v), abs=1e-12)
        assert cube == pytest.approx(box(low=-1.5, high=1.5, size=4).project(v), abs=1e-12)
        assert cross == pytest.approx(l1_ball(radius=1.5).project(v), abs=1e-12)
        assert is_nearest(cross, v, 1.5 * corners)
        assert is_nearest(cube, v, 1.5 * np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T)
        others = rng.dirichlet(np.ones(8), size=50) @ (1.5 * corners)
        assert np.linalg.norm(others - v, axis=1).min() >= np.linalg.norm(cross - v)


def test_points_inside_stay() -> None:
    """A point of the set is its own projection, and its threshold is 0."""
    inside = np.array([0.1, -0.2, 0.3])
    for project in (on_ball, on_cube, on_cross):
        assert project(inside, 1.0).tolist() == inside.tolist()
    assert threshold(inside, 1.0) == 0.0


def test_distance_may_grow_but_not_for_short_steps() -> None:
    """From 0.1 to 0.9 with a step of 1; never where claim 2.4's condition holds, and its factor 2 is exact."""
    assert distances(0.1, step_size=1.0, steps=1).tolist() == pytest.approx([0.1, 0.9])
    for start in (0.3, -0.8, 2.0):
        for step in np.linspace(0.05, 4.5, 30).tolist():
            assert comes_nearer(start, step_size=step) == (step < 2 * abs(start))
            assert short_enough(start, step_size=step) == (step < 2 * abs(start))


def test_the_valley_is_what_theorem_4_1_asks_for() -> None:
    """Convex, differentiable, of Lipschitz constant 1, at its minimum one unit from the start."""
    loss, z, h = valley(), np.linspace(-1.2, 0.5, 20_001), 1e-6
    slope = loss.derivative(z, 0.0)
    assert (np.diff(slope) >= 0).all()
    assert np.abs(slope).max() <= 1.0
    quotient = (loss.value(z + h, 0.0) - loss.value(z - h, 0.0)) / (2 * h)
    assert np.abs(quotient - slope).max() < 1e-4
    assert z[np.argmin(loss.value(z, 0.0))] == pytest.approx(-1.0, abs=1e-4)
    assert (PRINTED.steps, PRINTED.noise_rule) == (2500, "claim_3_2")


def test_the_mean_iterate_agrees_with_simulation_and_a_finer_grid() -> None:
    """On the grid, on one twice as fine, and in 2,000 simulated copies (five standard errors, rate 6e-7)."""
    coarse, fine = valley_excess(1.2), valley_excess(1.2, fineness=0.5)
    assert coarse == pytest.approx(fine, rel=0.02)
    mean, error = simulated_excess(1.2, copies=2000, seed=1)
    assert abs(mean - fine) < 5 * error
    assert fine > 1.1 * PRINTED.printed_risk


def test_the_mean_iterate_of_few_steps_is_known() -> None:
    """Far from the bend every step goes down by 0.3η: the average of T points by 0.15η(T − 1)."""
    found = mean_iterate(valley(), step_size=0.01, noise_stddev=1.0, steps=5)
    assert found == pytest.approx(-0.15 * 0.01 * 4, rel=1e-6)


def test_projection_costs_the_rank_bound_its_flatness() -> None:
    """From 5 to 200 dimensions the free excess stays, that of projected descent grows; one seed each."""
    assert excess(200, projected=False) < 1.2 * excess(5, projected=False) < allowed()
    assert excess(200, projected=True) > 1.25 * excess(200, projected=False)
