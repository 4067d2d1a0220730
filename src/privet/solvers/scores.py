"""Sums of losses at public points, in whole units: what the exponential mechanism weighs. Private."""

import math
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from privet._checks import whole
from privet.arrays import Vector
from privet.errors import InvalidParameter
from privet.problems import Problem


class Scores(NamedTuple):
    """Sums of losses in whole units, up to a constant, and how far one record's share can range; values are private."""

    values: list[int]
    unit: float
    width: int


def compared(problem: Problem, points: Vector, slope: float, most: int) -> Scores:
    """Half the losses' differences to those at the mean point, each record's cut to ±slope × reach ÷ 2."""
    middle = points.mean(axis=0)
    reach = max(float(np.linalg.norm(point - middle)) for point in points)
    if not reach > 0:
        raise InvalidParameter(
            "Expected at least two different candidates, got copies of one: there is nothing to choose. Drop the draw."
        )
    sums = [
        problem.slope_sum((point + middle) / 2, (point - middle) / 2, clip=slope * reach / 2, max_records=most)
        for point in points
    ]
    return Scores([int(total.units) for total in sums], 2 * sums[0].step, 2 * math.floor(sums[0].clip / sums[0].step))


def climbed(problem: Problem, knots: Vector, slope: float, most: int) -> Scores:
    """Half the losses' differences from knot to knot, each record's cut to ±slope × length ÷ 2, added up."""
    length = float(np.ravel(knots)[1] - np.ravel(knots)[0])
    sums = [
        problem.slope_sum((left + right) / 2, (right - left) / 2, clip=slope * length / 2, max_records=most)
        for left, right in pairwise(knots)
    ]
    heights = list(accumulate((int(total.units) for total in sums), initial=0))
    return Scores(heights, 2 * sums[0].step, len(sums) * math.floor(sums[0].clip / sums[0].step))


def knots_of(problem: Problem, pieces: int) -> Vector:
    """Evenly spaced public points of the interval, of so few bits that no arithmetic on them is rounded."""
    low, high = interval(problem)
    pieces = whole("pieces", pieces, most=2**20, because="each costs a pass over the records", use="Use 1024.")
    grid = math.ldexp(1.0, math.frexp(max(abs(low), abs(high)))[1] - 35)
    first = math.ceil(low / grid)
    length = math.floor((math.floor(high / grid) - first) / pieces)
    if length < 2**8:
        raise InvalidParameter(
            f"Expected an interval that {pieces:,} pieces can divide, got one that is too narrow for its distance from "
            "0: the pieces would be of uneven length. Use fewer, or move the labels so that 0 is nearer."
        )
    return np.array([(first + length * k) * grid for k in range(pieces + 1)]).reshape(-1, *problem.shape)


def net_of(problem: Problem, most: int) -> tuple[Vector, float]:
    """At most `most` public points of a bounded domain in several dimensions, and how far any other may be from them.

    The domain lies in a box, the box is cut into equal cells, and the middle of each cell that comes near enough is
    projected. A point of the domain is within half a diagonal of the middle of its cell, so also of its projection,
    which is nearer to every point of a convex set (lecture 13, Wu, lemma 2.2).
    """
    dimension, domain = math.prod(problem.shape), problem.domain
    most = whole("pieces", most, most=2**20, because="each costs a pass over the records", use="Use 1024.")
    side = next(k for k in range(round(most ** (1 / dimension)) + 1, 0, -1) if k**dimension <= most)
    ends = [(-domain.support(-axis), domain.support(axis)) for axis in np.eye(dimension)]
    if side < 2 or not all(math.isfinite(low) and math.isfinite(high) for low, high in ends):
        raise InvalidParameter(
            f"Expected a bounded domain and at least 2^{dimension} pieces, got {domain!r} and {most}: an exact draw "
            "looks at a public grid, two cells a side at least. Pass more pieces, or candidates=...; or use "
            "noisy_gradient_descent, whose noise is exact in every dimension."
        )
    steps = np.array([(high - low) / side for low, high in ends])
    reach = float(np.linalg.norm(steps)) / 2 * (1 + 2.0**-40)
    axes = [low + (np.arange(side) + 0.5) * step for (low, _), step in zip(ends, steps, strict=True)]
    middles = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension)
    near = [(middle, domain.project(middle)) for middle in middles]
    points = np.unique([point for middle, point in near if np.linalg.norm(point - middle) <= reach], axis=0)
    return points.reshape(-1, *problem.shape), reach


def interval(problem: Problem) -> tuple[float, float]:
    """The ends of the bounded interval that the domain is; public."""
    dimension = math.prod(problem.shape)
    if dimension > 1:
        raise InvalidParameter(
            f"Expected one dimension, got {dimension} dimensions: a set in several has no two ends. Draw from a net."
        )
    domain = problem.domain
    low, high = -domain.support(np.array([-1.0])), domain.support(np.array([1.0]))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidParameter(
            f"Expected a bounded interval as domain, got {domain!r}: on another the density has no finite integral, or "
            "there is nothing to draw. Use domain=box(low=[...], high=[...])."
        )
    return low, high
