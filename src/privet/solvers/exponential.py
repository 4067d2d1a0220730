"""The exponential mechanism: draw a point with density ∝ exp(−β × sum of losses), exactly, or not at all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet._pages import page
from privet.accounting import ExponentialMechanism
from privet.arrays import Vector
from privet.clipping.lattice import MOST_RECORDS, check_clip
from privet.errors import InvalidParameter
from privet.plan import Bounded, Meter, Plan, Release
from privet.plan.plan import PERSON, check_budget
from privet.privacy import Budget, Guarantee, Neighbours, check_epsilon, sensitivity_factor
from privet.problems import Facts, LinearProblem, Problem, facts_of
from privet.problems.facts import public_count
from privet.problems.protocol import assumed
from privet.randomness import Random
from privet.solvers.drawing import exact_choice, exact_fraction, exponential_weights, piece_weights
from privet.solvers.gradient import check_problem
from privet.solvers.noisy_descent import proven_lipschitz
from privet.solvers.scores import climbed, compared, interval, knots_of
from privet.solvers.solver import Releases, Result, epsilon_beside, ready
from privet.theory import exponential_mechanism_bound

DRAW = "draw"
_BITS = 40  # of the place inside a piece


@dataclass(frozen=True, kw_only=True, slots=True)
class Exponential:
    """Draw θ with density ∝ exp(−β Σ losses), β the largest that is epsilon-private: pure, no delta.

    With candidates, passed to `run`, one of that finite set in any dimension; without, a point of an interval, in one
    dimension, where the sum of losses is taken at `pieces` + 1 public knots and is linear between them. In more
    dimensions no sampler of ours has a proof that can be paid for, so it is refused.

    Promise: the law is exact for ideal random words, so the release is ExponentialMechanism(epsilon): epsilon-private,
    and of epsilon-bounded range. On an interval `result.bound` bounds the excess risk over it, for a convex loss;
    with candidates, over those only, whatever the loss.
    Theorem: McSherry and Talwar 2007; lecture 13 (Wu), after theorem 2.6 (claim 32): β = εn/(2GD) on the average loss,
    for one record replaced. Proof: docs/proofs/drawing.md.
    Time: `pieces` (or as many as there are candidates) passes over the records, whatever the data; the comparison at
    the end takes a time that depends on the scores, some milliseconds: do not let strangers measure it.

    Parameters
    ----------
    pieces : of the interval; the interpolation costs at most G h/2, or curvature × h²/8, h = length ÷ pieces
    lipschitz : a bound G on gradient norms, if none is proven, or a smaller one; enforced by cutting

    Examples
    --------
    >>> from privet import Budget, box
    >>> from privet.losses import AbsoluteLoss
    >>> from privet.problems import Facts
    >>> facts = Facts(records=1000, shape=(1,), neighbours="replace_one", loss=AbsoluteLoss(), row_norm=1.0,
    ...               domain=box(low=[0.0], high=[1.0]))
    >>> Exponential().plan(facts, Budget(epsilon=1, delta=1e-6)).event
    ExponentialMechanism(epsilon=1.0).under('replace_one')
    """

    pieces: int = 1024
    lipschitz: float | None = None

    def draw(self, facts: Facts, epsilon: float) -> Release:
        """The release by itself, of a known epsilon."""
        slope = check_clip(proven_lipschitz(facts, self.lipschitz))
        return Release(
            name=DRAW,
            of="losses at public points, in a random choice among them",
            bound=Bounded(clip=slope, how=f"losses no steeper than {slope:g}, enforced by cutting"),
            mechanism=ExponentialMechanism(epsilon=epsilon),
        )

    def plan(self, facts: Facts, budget: Budget, *, before: Releases = (), after: Releases = ()) -> Plan:
        check_budget(budget)

        def planned(epsilon: float) -> Plan:
            return Plan.of(facts, (*before, self.draw(facts, epsilon), *after), budget)

        if not before and not after:
            return planned(float(budget.epsilon))
        return planned(epsilon_beside(planned, budget, facts.neighbours))

    def run(
        self,
        plan: Plan,
        problem: Problem,
        *,
        candidates: Any = None,
        meter: Meter | None = None,
        random: Random | None = None,
    ) -> Result:
        """Draw one of the `candidates`, which must be public, or without them a point of the domain."""
        meter = ready(plan, meter, random)
        check_problem(plan, problem)
        epsilon = mechanism_epsilon(plan, DRAW)
        slope = plan[DRAW].bound.clip  # type: ignore[union-attr]  # Bounded
        chosen = candidates is not None
        points = as_candidates(problem, candidates, inside=True) if chosen else knots_of(problem, self.pieces)
        most = MOST_RECORDS if plan.neighbours == "add_remove" else problem.records
        pure = plan.budget is None
        guarantee = pure_guarantee(meter, problem) if pure else meter.guarantee(assumptions=assumed(problem))
        meter.open(DRAW, count=problem.records)
        scores = (compared if chosen else climbed)(problem, points, slope, most)
        rate = Fraction(epsilon) / (sensitivity_factor(plan.neighbours) * scores.width)
        extras = penalties(problem, points, scores.unit, plan.count)
        values = [a + b for a, b in zip(scores.values, extras, strict=True)]
        chance = meter.draw(DRAW)
        if chosen:
            coef = points[exact_choice(chance, exponential_weights(values, rate))]
        else:
            piece = exact_choice(chance, piece_weights(values, rate))
            part = exact_fraction(chance, values[piece + 1] - values[piece], rate, _BITS)
            coef = points[piece] + float(part) * (points[piece + 1] - points[piece])
        proven = problem.lipschitz is not None and slope >= problem.lipschitz
        bound = None
        if proven and problem.ridge.alpha == 0 and plan.neighbours != "add_remove":  # then all of this is public
            exponent = float(rate / Fraction(scores.unit)) * max(problem.records, 1)
            bound = (_finite_bound if chosen else _interval_bound)(problem, points, slope, exponent, scores.unit)
        return Result(coef=coef, guarantee=guarantee, plan=plan, bound=bound)


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
) -> Result:
    """Run `Exponential` on a problem, with a guarantee whose delta is 0.

    Parameters
    ----------
    problem : what is minimised; its domain must be bounded
    epsilon : positive
    candidates : (m, ...) finite points of the domain, m ≥ 2; public: chosen without the data, or released already
    neighbours : "replace_one" by default
    records : under "add_remove" with a ridge, a public guess of the number of records
    random : the operating system's by default; a fixed seed invalidates the guarantee
    pieces, lipschitz : as in `Exponential`

    Examples
    --------
    >>> from privet import box, glm
    >>> from privet.solvers import exponential_mechanism
    >>> problem = glm("absolute", [[1.0]] * 1000, [0.3] * 1000, row_norm=1.0, domain=box(low=[0.0], high=[1.0]))
    >>> result = exponential_mechanism(problem, epsilon=1.0)
    >>> bool(abs(result.coef[0] - 0.3) < 0.1), round(result.bound, 5), result.guarantee.delta
    (True, 0.00249, 0.0)
    """
    if check_epsilon(epsilon) == 0:
        raise InvalidParameter(
            "Expected a positive epsilon, got 0: the draw would not look at the records. Use a small one, e.g. 0.1."
        )
    facts = drawing_facts(problem, neighbours, records)
    solver = Exponential(pieces=pieces, lipschitz=lipschitz)
    plan = Plan.of(facts, (solver.draw(facts, float(epsilon)),))
    meter = Meter(plan, random=random)
    result = solver.run(plan, problem, candidates=candidates, meter=meter)
    meter.finish()
    return result


def drawing_facts(problem: Problem, neighbours: Neighbours, records: int | None) -> Facts:
    """The public side of a problem for a draw, where the number of records scales the penalty and nothing else."""
    if records is None and neighbours == "add_remove" and problem.ridge.alpha == 0:
        records = 1  # nothing asks for it
    return facts_of(problem, neighbours, public_count(problem.records, neighbours, records))


def mechanism_epsilon(plan: Plan, name: str) -> float:
    """The epsilon of a planned draw."""
    mechanism = plan[name].mechanism
    if not isinstance(mechanism, ExponentialMechanism):
        raise InvalidParameter(
            f"Expected a plan in which {name!r} is an exponential mechanism, got {mechanism!r}: nothing else is drawn "
            "here. Make the plan with the solver's .plan(...)."
        )
    return mechanism.epsilon


def _interval_bound(problem: Problem, knots: Vector, slope: float, exponent: float, unit: float) -> float | None:
    """Proof: docs/proofs/drawing.md, section 4."""
    if not (isinstance(problem, LinearProblem) and problem.loss.convex):
        return None
    low, high = interval(problem)
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


def as_candidates(problem: Problem, candidates: Any, *, inside: bool = False) -> Vector:
    """Return public candidates as an array of finite points, at least two; `inside` the domain, if so asked."""
    points = np.array(candidates, dtype=np.float64)
    if points.ndim < 1 or points.shape[1:] != problem.shape or len(points) < 2 or not np.isfinite(points).all():
        raise InvalidParameter(
            f"Expected at least two finite candidates of shape {problem.shape}, got an array of shape {points.shape}: "
            "one of them is to be chosen. Stack them along the first axis, e.g. a result's iterates."
        )
    if inside and not all(problem.domain.contains(point.reshape(-1), tolerance=1e-9) for point in points):
        raise InvalidParameter(
            "Expected candidates in the domain, got some outside: the loss may be steeper there. Project them first."
        )
    return points


def penalties(problem: Problem, points: Vector, unit: float, count: int) -> Sequence[int]:
    """The penalty's share of the sum at each point, in whole units; public, so it costs nothing."""
    if problem.ridge.alpha == 0:
        return [0] * len(points)
    return [round(count * Fraction(problem.ridge.value(point)) / Fraction(unit)) for point in points]


def pure_guarantee(meter: Meter, problem: Problem) -> Guarantee:
    """The statement of a plan of one exact draw, with a delta of 0; invalidated if somebody may predict it."""
    plan = meter.plan
    (release,) = plan.releases
    epsilon, how = mechanism_epsilon(plan, release.name), release.bound.describe()
    found = Guarantee(
        epsilon=epsilon,
        delta=0.0,
        neighbours=plan.neighbours,
        accountant="closed",
        theorem=f"McSherry and Talwar 2007; {page('docs/proofs/drawing.md')}",
        lower=0.0,  # what the draw costs on one pair of tables is not computed
        sampling=f"1 release of {release.mechanism!r}",
        releases="1 release of the exponential mechanism",
        assumptions=(how, *((PERSON,) if plan.unit == "person" else ()), *assumed(problem)),
        unit=plan.unit,
    )
    return meter.stated(found)
