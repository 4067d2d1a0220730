"""The sorted projections onto the simplex and the l1 ball, against slow bisection and on large inputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from privet.errors import InvalidParameter
from privet.geometry import l1_ball, simplex
from privet.geometry.simplex import onto_simplex

Floats = NDArray[np.float64]
vectors = st.integers(1, 12).flatmap(
    lambda d: arrays(np.float64, d, elements=st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1.0, -1.0, 2.0])))
)


def by_bisection(x: Floats, total: float) -> Floats:
    """The slow obvious way: the sum of max(x − τ, 0) falls with τ, so halve the interval that holds the right one."""
    low, high = float(x.min()) - total, float(x.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(x - middle, 0).sum() > total else (low, middle)
    return np.maximum(x - low, 0.0)


@given(x=vectors, total=st.floats(0.01, 100))
def test_simplex_agrees_with_bisection(x: Floats, total: float) -> None:
    """Sorting finds the threshold that bisection finds, ties and all."""
    np.testing.assert_allclose(onto_simplex(x, total), by_bisection(x, total), atol=1e-13 * (total + 5))


@given(x=vectors, radius=st.floats(0.01, 100))
def test_l1_ball_agrees_with_bisection(x: Floats, radius: float) -> None:
    """Outside the ball the magnitudes are soft-thresholded, inside nothing moves; signs never change."""
    p = l1_ball(radius=radius).project(x)
    outside = np.abs(x).sum() > radius
    expected = np.sign(x) * by_bisection(np.abs(x), radius) if outside else x
    np.testing.assert_allclose(p, expected, atol=1e-13 * (radius + 5))
    assert np.all(p * x >= 0)


@pytest.mark.medium
@pytest.mark.parametrize("d", [1, 2, 1000, 1_000_000])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e12])
def test_large_dimensions_stay_feasible(d: int, scale: float) -> None:
    """Up to a million coordinates the sum is right to the promised rounding, whatever the size of the point."""
    x = np.random.default_rng(0).normal(size=d) * scale
    p = simplex().project(x)
    assert simplex().contains(p)
    assert math.fsum(p) == pytest.approx(1.0, rel=1e-14)
    q = l1_ball(radius=0.5).project(x + scale)
    assert l1_ball(radius=0.5).contains(q)
    assert math.fsum(np.abs(q)) == pytest.approx(min(0.5, math.fsum(np.abs(x + scale))), rel=1e-14)


@pytest.mark.parametrize("radius", [0.1, 1.0, 3.7])
def test_l1_ball_is_feasible_to_the_last_bit(radius: float) -> None:
    """The sum of magnitudes, as NumPy computes it, is at most the radius, on a thousand points of all dimensions."""
    rng = np.random.default_rng(0)
    for _ in range(1000):
        x = rng.choice([-1.0, 1.0], rng.integers(1, 200)) * (4.0 + rng.exponential(10.0))
        p = l1_ball(radius=radius).project(x + rng.uniform(-0.1, 0.1, x.size))
        assert radius * (1 - 1e-14) <= float(np.sum(np.abs(p))) <= radius


def test_near_ties_far_from_zero_keep_their_digits() -> None:
    """A point of size 1e20 with two equal largest entries goes to the middle of an edge, not to 0."""
    np.testing.assert_array_equal(simplex().project([1e20, 1e20, -1e20]), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(l1_ball(radius=1.0).project([-1e20, 1e20, 3.0]), [-0.5, 0.5, 0.0])


def test_rounding_of_a_sum_is_forgiven_and_nothing_more() -> None:
    """A sum that is off by 1e-15 is on the simplex, one that is off by 1e-12 is not; nor is any negative entry."""
    assert simplex().contains([0.5, 0.5 + 1e-15])
    assert not simplex().contains([0.5, 0.5 + 1e-12])
    assert not simplex().contains([1.0, -5e-324])
    assert simplex().contains([1.0, -1e-9], tolerance=1e-8)


def test_simplex_in_one_dimension_is_a_point() -> None:
    """Its diameter and radius are 0 once the dimension is declared."""
    point = simplex(total=3.0, size=1)
    assert (point.diameter, point.radius) == (0.0, 0.0)
    np.testing.assert_array_equal(point.project([-8.0]), [3.0])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "1", None, True])
def test_sizes_of_sets_are_checked(bad: float) -> None:
    """A radius or a total that is not positive and finite is refused by name."""
    with pytest.raises(InvalidParameter, match="Expected radius"):
        l1_ball(radius=bad)
    with pytest.raises(InvalidParameter, match="Expected total"):
        simplex(total=bad)
    if bad is not None:
        with pytest.raises(InvalidParameter, match="Expected size"):
            simplex(size=bad)  # type: ignore[arg-type]  # which is the point
