"""The exponential mechanism: draw a point with density ∝ exp(−β × sum of losses), exactly, or not at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privet.accounting import ExponentialMechanism
from privet.clipping.lattice import MOST_RECORDS
from privet.errors import InvalidParameter
from privet.plan import PERSON
from privet.privacy import Guarantee, Neighbours, Unit, check_epsilon, check_neighbours
from privet.problems import LinearProblem, Problem
from privet.randomness import Random, system_random
from privet.solvers.drawing import exact_choice, exact_fraction, exponential_weights, piece_weights
from privet.solvers.noisy_descent import _lipschitz
from privet.solvers.planning import public_records
from privet.solvers.result import Draw
from privet.theory import exponential_mechanism_bound

__all__ = ["as_candidates", "exponential_mechanism", "penalties", "pure_guarantee", "records_exchanged"]

Vector = NDArray[np.float64]
_BITS = 40  # of the place inside a piece


def exponential_mechanism(
    problem: Problem,
    *,
    epsilon: float,
    candidates: Any = None,
    pieces: int = 1024,
    neighbours: Neighbours = "replace_one",
    lipschitz: float | None = None,
    records: int | None = None,
    random: Random | None = None,
) -> Draw:
    """Draw θ with density ∝ exp(−β Σ losses), β the largest that is epsilon-private: pure, no delta.

    With `candidates`, one of that finite set in any dimension; without, a point of an interval, in one dimension,
    where the sum of losses is taken at `pieces` + 1 public knots and is linear between them. In more dimensions no
    sampler of ours has a proof that can be paid for, so it is refused.

    Promise: the law is exact for ideal random words, so the release is ExponentialMechanism(epsilon): epsilon-private,
    and of epsilon-bounded range. On an interval `result.bound` bounds the excess risk over it, for a convex loss;
    with `candidates`, over those only, whatever the loss.
    Theorem: McSherry and Talwar 2007; lecture 13 (Wu), after theorem 2.6 (row 32): β = εn/(2GD) on the average loss,
    for one record exchanged. Proof: docs/proofs/drawing.md.
    Time: `pieces` (or as many as there are candidates) passes over the records, whatever the data; the comparison at
    the end takes a time that depends on the scores, some milliseconds: do not let strangers measure it.

    Parameters
    ----------
    problem : what is minimised; its domain must be bounded
    epsilon : positive
    candidates : (m, ...) finite points of the domain, m ≥ 2; public: chosen without the data, or released already
    pieces : of the interval; the interpolation costs at most G h/2, or curvature × h²/8, h = length ÷ pieces
    neighbours : "replace_one" by default
    lipschitz : a bound G on gradient norms, if none is proven, or a smaller one; enforced by cutting
    records : under "add_remove" with a ridge, a public guess of the number of records
    random : the operating system's by default; a fixed seed voids the guarantee

    Examples
    --------
    >>> from privet import box, glm
    >>> from privet.solvers import exponential_mechanism
    >>> problem = glm("absolute", [[1.0]] * 1000, [0.3] * 1000, row_norm=1.0, domain=box(low=[0.0], high=[1.0]))
    >>> result = exponential_mechanism(problem, epsilon=1.0)
    >>> bool(abs(result.coef[0] - 0.3) < 0.1), round(result.bound, 5), result.guarantee.delta
    (True, 0.00249, 0.0)
    """
    check_neighbours(neighbours)
    if check_epsilon(epsilon) == 0:
        raise InvalidParameter(
            "Expected a positive epsilon, got 0: the draw would not look at the records. Use a small one, e.g. 0.1."
        )
    random = random if random is not None else system_random()
    slope = _lipschitz(problem, lipschitz)
    points = _knots(problem, pieces) if candidates is None else _in_domain(problem, as_candidates(problem, candidates))
    most = MOST_RECORDS if neighbours == "add_remove" else problem.records
    scores = (_climbed if candidates is None else _compared)(problem, points, slope, most)
    rate = Fraction(epsilon) / (records_exchanged(neighbours) * scores.width)
    values = [
        a + b for a, b in zip(scores.values, penalties(problem, points, scores.unit, neighbours, records), strict=True)
    ]
    if candidates is None:
        piece = exact_choice(random, piece_weights(values, rate))
        part = exact_fraction(random, values[piece + 1] - values[piece], rate, _BITS)
        coef = points[piece] + float(part) * (points[piece + 1] - points[piece])
    else:
        coef = points[exact_choice(random, exponential_weights(values, rate))]
    proven = problem.lipschitz is not None and slope >= problem.lipschitz
    bound = None
    if proven and problem.ridge.alpha == 0 and neighbours != "add_remove":  # then all of this is public
        exponent = float(rate / Fraction(scores.unit)) * max(problem.records, 1)
        bound = (_interval_bound if candidates is None else _finite_bound)(
            problem, points, slope, exponent, scores.unit
        )
    guarantee = pure_guarantee(
        epsilon, neighbours, f"losses no steeper than {slope:g}, enforced by cutting", random, problem.unit
    )
    return Draw(coef=coef, guarantee=guarantee, bound=bound)


class _Scores(NamedTuple):
    """Sums of losses in whole units, up to a constant, and how far one record's share can range; values are private."""

    values: list[int]
    unit: float
    width: int


def _compared(problem: Problem, points: Vector, slope: float, most: int) -> _Scores:
    """Half the losses' differences to those at the mean point, each record's cut to ±slope × reach ÷ 2."""
    middle = points.mean(axis=0)
    reach = max(float(np.linalg.norm(point - middle)) for point in points)
    if not reach > 0:
        raise InvalidParameter(
            "Expected at least two different candidates, got copies of one: there is nothing to choose. Drop the draw."
        )
    sums = [
        problem.slope_sum((point + middle) / 2, (point - middle) / 2, clip=slope * reach / 2, most_records=most)
        for point in points
    ]
    return _Scores([int(total.units) for total in sums], 2 * sums[0].step, 2 * math.floor(sums[0].clip / sums[0].step))


def _climbed(problem: Problem, knots: Vector, slope: float, most: int) -> _Scores:
    """Half the losses' differences from knot to knot, each record's cut to ±slope × length ÷ 2, added up."""
    length = float(np.ravel(knots)[1] - np.ravel(knots)[0])
    sums = [
        problem.slope_sum((left + right) / 2, (right - left) / 2, clip=slope * length / 2, most_records=most)
        for left, right in pairwise(knots)
    ]
    heights = list(accumulate((int(total.units) for total in sums), initial=0))
    return _Scores(heights, 2 * sums[0].step, len(sums) * math.floor(sums[0].clip / sums[0].step))


def _knots(problem: Problem, pieces: int) -> Vector:
    """Evenly spaced public points of the interval, of so few bits that no arithmetic on them is rounded."""
    low, high = _ends(problem)
    if not (isinstance(pieces, int) and not isinstance(pieces, bool) and 1 <= pieces <= 2**20):
        raise InvalidParameter(
            f"Expected pieces to be a whole number from 1 to 2**20, got {pieces!r}: each costs a pass over the "
            "records. Use 1024."
        )
    grid = math.ldexp(1.0, math.frexp(max(abs(low), abs(high)))[1] - 35)
    first = math.ceil(low / grid)
    length = math.floor((math.floor(high / grid) - first) / pieces)
    if length < 2**8:
        raise InvalidParameter(
            f"Expected an interval that {pieces:,} pieces can divide, got one that is too narrow for its distance from "
            "0: the pieces would be of uneven length. Use fewer, or move the labels so that 0 is nearer."
        )
    return np.array([(first + length * k) * grid for k in range(pieces + 1)]).reshape(-1, *problem.shape)


def _interval_bound(problem: Problem, knots: Vector, slope: float, exponent: float, unit: float) -> float | None:
    """Proof: docs/proofs/drawing.md, section 4."""
    if not (isinstance(problem, LinearProblem) and problem.loss.convex):
        return None
    low, high = _ends(problem)
    span, pieces = float(np.ravel(knots)[-1] - np.ravel(knots)[0]), len(knots) - 1
    found = exponential_mechanism_bound(diameter=span, lipschitz=slope, d=1, exponent=exponent).value
    smooth = problem.loss.smoothness(problem.prediction_bound)
    length = span / pieces
    bent = math.inf if smooth is None else smooth * problem.row_norm**2 * length**2 / 8
    rounding = pieces * unit
    missed = slope * (high - low - span + length * 2.0**-_BITS)
    risk = found * math.exp(min(exponent * rounding, 700.0)) + min(slope * length / 2, bent) + rounding + missed
    return min(risk, slope * (high - low)) * (1 + 2.0**-40)


def _finite_bound(problem: Problem, points: Vector, slope: float, exponent: float, unit: float) -> float:
    """Proof: docs/proofs/drawing.md, section 3."""
    rounding = unit + slope * 2.0**-33 * float(np.abs(points).sum(axis=tuple(range(1, points.ndim))).max())
    return (math.log(len(points)) / exponent + rounding) * (1 + 2.0**-40)


def _ends(problem: Problem) -> tuple[float, float]:
    dimension = math.prod(problem.shape)
    if dimension > 1:
        raise InvalidParameter(
            f"Expected one dimension, or candidates, got {dimension} dimensions: an exact draw from a density in "
            "several is not known, and an approximate one would break the guarantee. Pass candidates=..., a public "
            "grid of points; or use noisy_gradient_descent, whose noise is exact in every dimension."
        )
    domain = problem.domain
    low, high = -domain.support(np.array([-1.0])), domain.support(np.array([1.0]))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidParameter(
            f"Expected a bounded interval as domain, got {domain!r}: on another the density has no finite integral, or "
            "there is nothing to draw. Use domain=box(low=[...], high=[...])."
        )
    return low, high


def _in_domain(problem: Problem, points: Vector) -> Vector:
    if not all(problem.domain.contains(point.reshape(-1), tolerance=1e-9) for point in points):
        raise InvalidParameter(
            "Expected candidates in the domain, got some outside: the loss may be steeper there. Project them first."
        )
    return points


def as_candidates(problem: Problem, candidates: Any) -> Vector:
    """Return public candidates as an array of finite points, at least two."""
    points = np.array(candidates, dtype=np.float64)
    if points.ndim < 1 or points.shape[1:] != problem.shape or len(points) < 2 or not np.isfinite(points).all():
        raise InvalidParameter(
            f"Expected at least two finite candidates of shape {problem.shape}, got an array of shape {points.shape}: "
            "one of them is to be chosen. Stack them along the first axis, e.g. a result's iterates."
        )
    return points


def records_exchanged(neighbours: Neighbours) -> int:
    """How many records' scores differ between neighbours: the old and the new one, or one."""
    return 2 if neighbours == "replace_one" else 1


def penalties(
    problem: Problem, points: Vector, unit: float, neighbours: Neighbours, records: int | None
) -> Sequence[int]:
    """The penalty's share of the sum at each point, in whole units; public, so it costs nothing."""
    if problem.ridge.alpha == 0:
        return [0] * len(points)
    count = public_records(problem, neighbours, records)
    return [round(count * Fraction(problem.ridge.value(point)) / Fraction(unit)) for point in points]


def pure_guarantee(
    epsilon: float, neighbours: Neighbours, bounding: str, random: Random, unit: Unit = "record"
) -> Guarantee:
    """The statement of one exact draw; void if the randomness is a fixed seed's."""
    found = Guarantee(
        epsilon=float(epsilon),
        delta=0.0,
        neighbours=neighbours,
        accountant="closed",
        theorem="McSherry and Talwar 2007; docs/proofs/drawing.md",
        lower=float(epsilon),
        sampling=f"1 release of {ExponentialMechanism(epsilon=epsilon)!r}",
        assumptions=(bounding,) if unit == "record" else (bounding, PERSON),
        unit=unit,
    )
    return found.invalidate("fixed seed: whoever knows it can repeat the draw") if random.void else found
