"""What is particular to balls, boxes, half-spaces and products: closed forms, edges, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from privet.errors import InvalidParameter
from privet.geometry import ConvexSet, box, half_space, l2_ball, product, simplex, whole_space


def test_ball_of_the_lecture() -> None:
    """About 0 the projection is θ / max(1, ‖θ‖/R), as the lectures write it."""
    rng = np.random.default_rng(0)
    for theta in rng.normal(size=(50, 4)) * 3:
        expected = theta / max(1.0, np.linalg.norm(theta) / 2.5)
        np.testing.assert_allclose(l2_ball(radius=2.5).project(theta), expected, rtol=1e-14)


@pytest.mark.parametrize("d", [1, 3, 1_000_000])
def test_ball_is_feasible_to_the_last_bit_in_any_dimension(d: int) -> None:
    """The norm of the projection, as NumPy computes it, is at most the radius, and within 1e-14 of it."""
    for radius in (1e-3, 0.1, 1.0, 3.7):
        p = l2_ball(radius=radius).project(np.random.default_rng(d).normal(size=d) * 1e3)
        norm = math.sqrt(float(np.sum(np.square(p))))
        assert radius * (1 - 1e-14) <= norm <= radius


def test_ball_bounds_the_frobenius_norm_of_a_matrix() -> None:
    """Coefficients (d, K) are one point: the whole matrix is shortened, not each row."""
    theta = np.random.default_rng(0).normal(size=(6, 3))
    p = l2_ball(radius=1.0).project(theta)
    np.testing.assert_allclose(p, theta / np.linalg.norm(theta), rtol=1e-14)


def test_points_at_the_edge_of_the_floats_keep_their_direction() -> None:
    """A point whose norm overflows, or whose square vanishes, still goes to the right place."""
    largest = np.finfo(np.float64).max
    for size in (largest, 5e-324):
        p = l2_ball(radius=1e-323 if size < 1 else 1.0).project([size, size, -size, size])
        np.testing.assert_allclose(p, np.array([1, 1, -1, 1]) * (5e-324 if size < 1 else 0.5), rtol=1e-15)


def test_ball_too_small_for_its_centre_still_answers() -> None:
    """Where floats near the centre are farther apart than the radius, the centre is the only point left."""
    ball = l2_ball(radius=0.25, centre=[1e16, 0.0])
    p = ball.project([3e16, 0.0])
    assert ball.contains(p)
    np.testing.assert_array_equal(p, [1e16, 0.0])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1", None, True])
def test_radius_is_checked(bad: float) -> None:
    """A radius that is not positive and finite is refused."""
    with pytest.raises(InvalidParameter, match="Expected radius to be a positive finite number"):
        l2_ball(radius=bad)


@pytest.mark.parametrize("bad", [1.0, [], [[1.0]], [math.nan], [math.inf], ["a"]])
def test_centre_is_checked(bad: ArrayLike) -> None:
    """A centre that is no flat array of finite numbers is refused."""
    with pytest.raises(InvalidParameter, match="Expected centre to be a flat array"):
        l2_ball(radius=1.0, centre=bad)


def test_a_set_does_not_follow_the_array_it_was_made_from() -> None:
    """The centre is copied, and cannot be written through the set."""
    centre = np.zeros(2)
    ball = l2_ball(radius=1.0, centre=centre)
    centre += 9.0
    np.testing.assert_array_equal(ball.centre(2), 0.0)


def test_open_sides_of_a_box() -> None:
    """An infinite side never binds; the centre is the nearest point to 0 there, and nothing is bounded."""
    open_box = box(low=[-math.inf, 1.0, -math.inf], high=[math.inf, math.inf, -2.0])
    np.testing.assert_array_equal(open_box.project([-7.0, -7.0, -7.0]), [-7.0, 1.0, -7.0])
    np.testing.assert_array_equal(open_box.centre(3), [0.0, 1.0, -2.0])
    assert open_box.support([0.0, -2.0, 0.0]) == -2.0
    assert open_box.support([0.0, 0.0, 3.0]) == -6.0
    assert math.isinf(open_box.diameter)
    assert math.isinf(box(low=[-math.inf], high=[-2.0]).radius)


def test_box_may_be_a_point() -> None:
    """low = high is allowed: diameter 0, and everything projects there."""
    point = box(low=[1.0, 5e-324], high=[1.0, 5e-324])
    assert (point.diameter, point.radius) == (0.0, 0.0)
    np.testing.assert_array_equal(point.project([9.0, 9.0]), [1.0, 5e-324])
    assert point.contains(point.centre(2))


def test_scalars_and_arrays_make_the_same_box() -> None:
    """One number stands for all coordinates, if their number is known from the other side or from size."""
    expected = box(low=[0.0, 0.0], high=[1.0, 1.0])
    assert box(low=0.0, high=1.0, size=2) == box(low=0, high=[1, 1]) == box(low=-0.0, high=1, size=2) == expected


@pytest.mark.parametrize(
    ("low", "high", "size", "words"),
    [
        (1.0, 0.0, 2, "low ≤ high"),
        ([0.0, 2.0], [1.0, 1.0], None, "low ≤ high"),
        (math.nan, 1.0, 2, "Expected low"),
        (0.0, [1.0, math.nan], None, "Expected high"),
        (math.inf, math.inf, 2, "low < ∞"),
        (-math.inf, -math.inf, 2, "high > −∞"),
        (0.0, 1.0, None, "Pass size=d"),
        ([0.0], [1.0, 2.0], None, "to agree"),
        ([0.0, 0.0], 1.0, 3, "to agree"),
        (0.0, 1.0, 0, "Expected size"),
        ([[0.0, 0.0]], 1.0, None, "Expected low"),
        ([], [], None, "Expected"),
        ("a", 1.0, 2, "Expected low"),
    ],
)
def test_boxes_that_are_none_are_refused(low: ArrayLike, high: ArrayLike, size: int | None, words: str) -> None:
    """Empty, unreadable or contradictory boxes are errors that say which bound is wrong."""
    with pytest.raises(InvalidParameter, match=words):
        box(low=low, high=high, size=size)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1.0, 1e200, 1e300])
def test_half_space_does_not_depend_on_the_length_of_its_normal(scale: float) -> None:
    """Scaling normal and offset together changes nothing, from subnormal to huge."""
    normal, x = np.array([3.0, -4.0]), np.array([7.0, 1.0])
    got = half_space(normal=normal * scale, offset=5.0 * scale)
    np.testing.assert_allclose(got.project(x), half_space(normal=normal, offset=5.0).project(x), rtol=1e-9)
    assert got.contains(x, tolerance=2.5) is True
    assert got.contains(x, tolerance=2.3) is False


def test_half_space_supports_only_along_its_normal() -> None:
    """The support is t · offset along t times the normal, t ≥ 0, and infinite in every other direction."""
    normal = np.array([0.1, 0.7, -0.3])
    half = half_space(normal=normal, offset=2.0)
    assert half.support(3 * normal) == pytest.approx(6.0)
    assert half.support(-normal) == math.inf
    assert half.support([0.1, 0.7, -0.29]) == math.inf


def test_half_space_refuses_what_bounds_nothing() -> None:
    """A zero or unreadable normal, or an offset that is not finite, is refused."""
    with pytest.raises(InvalidParameter, match="normal that is not 0"):
        half_space(normal=[0.0, -0.0])
    with pytest.raises(InvalidParameter, match="Expected normal"):
        half_space(normal=[math.nan])
    for offset in (math.inf, math.nan, "1", None, True):
        with pytest.raises(InvalidParameter, match="Expected offset"):
            half_space(normal=[1.0], offset=offset)  # type: ignore[arg-type]  # which is the point


def test_product_projects_each_block_by_itself() -> None:
    """Blocks do not see each other; radii and diameters add up as squares, supports as they are."""
    parts: list[ConvexSet] = [l2_ball(radius=3.0), box(low=-4.0, high=4.0, size=1), simplex(size=2)]
    both = product(parts, [2, 1, 2])
    x = np.array([6.0, 8.0, 9.0, 2.0, 0.0])
    blocks = [part.project(block) for part, block in zip(parts, np.split(x, [2, 3]), strict=True)]
    np.testing.assert_array_equal(both.project(x), np.concatenate(blocks))
    assert both.diameter == pytest.approx(math.sqrt(36 + 64 + 2))
    assert both.radius == pytest.approx(math.sqrt(9 + 16 + 0.5))
    assert both.support([0, 1, 2, 3, 4]) == pytest.approx(3.0 + 8.0 + 4.0)
    assert math.isinf(product([whole_space(), simplex()], [1, 2]).diameter)


def test_products_of_sets_that_do_not_fit_are_refused() -> None:
    """As many sizes as sets, each that of its set, all positive."""
    ball = l2_ball(radius=1.0)
    with pytest.raises(InvalidParameter, match="as many sizes as sets"):
        product([ball], [1, 2])
    with pytest.raises(InvalidParameter, match="as many sizes as sets"):
        product([], [])
    with pytest.raises(InvalidParameter, match="Expected size"):
        product([ball], [0])
    with pytest.raises(InvalidParameter, match="Expected 3 coordinates for box"):
        product([box(low=0, high=1, size=3)], [2])
