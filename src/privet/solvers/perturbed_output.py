"""Output perturbation: solve a strongly convex problem to a certified tolerance, then add Gaussian noise once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Event, Gaussian, calibrate
from privet.accounting.numerics import upward
from privet.accounting.theorems.gaussian_profile import largest_mu
from privet.clipping.rules import FloatArray
from privet.errors import InvalidParameter
from privet.noise import add_gaussian
from privet.plan import Plan, check_budget
from privet.privacy import Budget, Neighbours
from privet.problems import LinearProblem, Problem
from privet.randomness import Random, system_random
from privet.solvers.descent import guaranteed, project
from privet.solvers.minimise import Minimiser
from privet.solvers.result import Result
from privet.solvers.smooth import bounded_records, default_reach, linear_problem
from privet.theory import output_perturbation_bound, plan_for

__all__ = ["SolvedTo", "lattice_of", "on_lattice", "output_perturbation", "slack_of"]

Vector = NDArray[np.float64]

_FINE = 2.0**-16  # the tolerance aimed at, as a part of the sensitivity
_LATTICE = 40  # bits of the noise's standard deviation


@dataclass(frozen=True, kw_only=True, slots=True)
class SolvedTo:
    """How one record's influence on a minimiser is bounded: by strong convexity, a clip, and a certified solver.

    Promise: emptying, adding or removing a record moves the computed minimiser by at most `clip`, exchanging one by
    at most 2 × `clip`: gradient_clip/strength for the exact one, and 2 × `tolerance` for what was computed.

    Examples
    --------
    >>> SolvedTo(gradient_clip=1.0, strength=100.0, tolerance=1e-7).clip
    0.0100002...
    """

    gradient_clip: float
    strength: float
    tolerance: float

    @property
    def clip(self) -> float:
        return upward(upward(self.gradient_clip / self.strength) + 2.0 * self.tolerance)

    def factor(self, norms: FloatArray) -> FloatArray | None:
        return None

    def describe(self) -> str:
        return (
            "the loss is convex and as smooth as it declares, each gradient is clipped to norm "
            f"{self.gradient_clip:g}, the sum of losses has a penalty of strength {self.strength:g}, and the minimiser "
            f"is computed to within {self.tolerance:.3g}, which is certified and counted in the sensitivity"
        )


def output_perturbation(
    problem: Problem,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    regularisation: float | None = None,
    clip: float | None = None,
    radius: float | None = None,
    records: int | None = None,
    most_records: int | None = None,
    also: tuple[Event, ...] = (),
    random: Random | None = None,
) -> Result:
    """argmin over the domain of L(w) + (λ/2)‖w − centre‖², plus Gaussian noise, projected back.

    Promise: `result.guarantee` meets `budget`, however well or badly the problem is conditioned: the minimiser is
    computed to a certified tolerance, which is part of the sensitivity. Whether there is a result never depends on the
    data. `result.bound` is the proven excess risk over the points within `radius`, if no ridge was asked for.
    Theorem: the minimiser of a sum with penalty strength Λ = λ · records moves by at most clip/Λ when a record is
    emptied, added or removed, by twice that when it is exchanged; docs/proofs/perturbation.md, section 1. Lecture:
    Razaviyayn, output perturbation (rows 76 to 79).

    Parameters
    ----------
    problem : a generalised linear model with a convex, smooth loss
    budget : the (epsilon, delta) to meet
    neighbours : which data sets must look alike
    regularisation : λ; by default the problem's own ridge, or the theorem's λ if it has none. It must not come from
        the data
    clip : bound on a record's gradient norm, enforced; the proven Lipschitz constant by default
    radius : public bound on ‖centre − minimiser‖; the domain's radius by default; needed on an unbounded domain
    records : under "add_remove", a public guess of the number of records
    most_records : under "add_remove", a public bound on it; 2^27 by default
    also : releases made before, e.g. of feature ranges, that the same budget has to cover
    random : the operating system's by default; a fixed seed voids the guarantee

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Budget, glm, l2_ball
    >>> from privet.solvers import output_perturbation
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)) / 4
    >>> problem = glm("logistic", X, X @ [2.0, -1.0, 0.5] > 0, domain=l2_ball(radius=5), row_norm=1.0)
    >>> result = output_perturbation(problem, budget=Budget(epsilon=1, delta=1e-6))
    >>> result.coef.shape, result.guarantee.epsilon <= 1, round(result.bound, 3)
    ((3,), True, 0.601)
    >>> result.plan.event
    Gaussian(noise_multiplier=8.44...) * 1
    """
    check_budget(budget)
    model, gradient_clip = linear_problem(problem, clip)
    count, most = bounded_records(model, neighbours, records, most_records)
    distance = _distance(model, radius)
    strength = _strength(model, regularisation, count, distance, gradient_clip, budget, neighbours)
    moves = 2.0 if neighbours == "replace_one" else 1.0
    noise = upward(moves / largest_mu(budget.epsilon, budget.delta))
    if also:
        noise = calibrate(
            lambda s: sum(also, start=Gaussian(noise_multiplier=s)),
            epsilon=budget.epsilon,
            delta=budget.delta,
            neighbours=neighbours,
        )
    random = random if random is not None else system_random()
    own = model.ridge.strength
    centre = np.asarray(model.domain.centre(math.prod(model.shape))).reshape(model.shape)
    solver = Minimiser(
        problem=model,
        clip=gradient_clip,
        strength=strength,
        centre=centre * (1.0 - own * count / strength),  # of ridge and λ together
        reach=default_reach(model, gradient_clip, distance),
    )
    sensitivity = gradient_clip / strength
    step = lattice_of(noise * sensitivity, solver)
    tolerance = max(_FINE * sensitivity, solver.least_tolerance(records=most))
    solved = SolvedTo(
        gradient_clip=gradient_clip, strength=strength, tolerance=upward(tolerance + slack_of(step, solver))
    )
    plan = Plan(bounding=solved, steps=1, records=count, neighbours=neighbours, noise_multiplier=noise, also=also)
    guarantee = guaranteed(plan, budget.delta, random)
    stddev = upward(noise * solved.clip)
    found = solver.solve(tolerance)
    noisy = add_gaussian(on_lattice(found, step, solver), step=step, noise_stddev=stddev, random=random)
    bound = None
    if own == 0 and distance is not None:
        bound = _bound(model, gradient_clip, distance, strength / count, stddev, solved)
    return Result(coef=project(model.domain, noisy), guarantee=guarantee, plan=plan, bound=bound)


def lattice_of(stddev: float, solver: Minimiser) -> float:
    """The power of two on whose multiples a minimiser is put: far finer than the noise, and within 2^61 of them."""
    furthest = solver.reach + float(np.linalg.norm(solver.start))
    step = math.ldexp(1.0, max(math.frexp(stddev)[1] - 1 - _LATTICE, math.frexp(furthest)[1] - 61))
    if not 2.0**11 * step <= stddev < 2.0**400:
        raise InvalidParameter(
            f"Expected noise that is within 2^50 of the largest coefficients, got a standard deviation of {stddev:g} "
            f"and coefficients up to {furthest:g}: floats cannot hold both. Ask for a smaller epsilon, or bound the "
            "domain."
        )
    return step


def slack_of(step: float, solver: Minimiser) -> float:
    """How far `on_lattice` and the pull towards the start may round a minimiser; public."""
    furthest = solver.reach + float(np.linalg.norm(solver.start))
    return math.sqrt(math.prod(solver.problem.shape)) * step + 2.0**-48 * furthest


def on_lattice(w: Vector, step: float, solver: Minimiser) -> NDArray[np.int64]:
    """`w` in whole steps, each coordinate within reach, so that nothing overflows; private."""
    furthest = solver.reach + float(np.linalg.norm(solver.start))
    return np.rint(np.clip(w, -furthest, furthest) / step).astype(np.int64)


def _distance(problem: LinearProblem, radius: float | None) -> float | None:
    found = radius if radius is not None else problem.domain.radius
    if not math.isfinite(found):
        return None
    if not found > 0:
        raise InvalidParameter(
            f"Expected radius to be a positive number, got {radius!r}: the theorem balances noise and penalty with it. "
            "Pass a public bound on the distance of the minimiser from the centre."
        )
    return found


def _strength(
    problem: LinearProblem,
    regularisation: float | None,
    count: int,
    radius: float | None,
    clip: float,
    budget: Budget,
    neighbours: Neighbours,
) -> float:
    """Λ, of the sum of losses: ridge and regularisation together, or the theorem's."""
    own = problem.ridge.strength
    if regularisation is not None:
        total = own + regularisation
        if not (math.isfinite(total) and regularisation >= 0 and total > 0):
            raise InvalidParameter(
                f"Expected a positive regularisation, got {regularisation!r} and a ridge of {own:g}: without strong "
                "convexity one record can move the minimiser anywhere, and no noise hides it. Pass regularisation > 0, "
                "or leave it out."
            )
        return total * count
    if own > 0:
        return own * count
    if radius is None:
        raise InvalidParameter(
            "Expected regularisation, a ridge, or a radius, got none on an unbounded domain: without strong convexity "
            "one record can move the minimiser anywhere, and the theorem's λ needs a radius. Pass one of them, chosen "
            "without the data."
        )
    found = plan_for(
        n=count,
        d=math.prod(problem.shape),
        radius=radius,
        lipschitz=clip,
        budget=budget,
        neighbours=neighbours,
        method="output_perturbation",
    ).regularisation
    return count * found  # type: ignore[operator]  # this method has one


def _bound(
    problem: LinearProblem, clip: float, distance: float, strength: float, stddev: float, solved: SolvedTo
) -> float:
    """Row 77 with the noise that was drawn and the tolerance that was allowed."""
    diameter = problem.domain.diameter  # of no use if the noise may leave every set
    found = output_perturbation_bound(
        distance=distance,
        diameter=diameter if math.isfinite(diameter) else 2.0**200,
        lipschitz=clip,
        d=math.prod(problem.shape),
        regularisation=strength,
        noise_stddev=stddev * (1 + 2.0**-20),
    )
    return found.value + clip * solved.tolerance
