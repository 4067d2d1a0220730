"""Objective perturbation: tilt the objective by Gaussian noise, solve it once, and blur what the solver left over."""

from __future__ import annotations

import math

import numpy as np

from privet.accounting.numerics import downward, upward
from privet.accounting.theorems.gaussian_profile import largest_mu
from privet.errors import InvalidParameter
from privet.geometry.whole_space import WholeSpace
from privet.noise import add_gaussian, rounded_gaussian
from privet.plan import Plan, check_budget
from privet.privacy import Budget, Neighbours, check_neighbours
from privet.problems import LinearProblem, Problem
from privet.randomness import Random, system_random
from privet.solvers.descent import guaranteed
from privet.solvers.minimise import Minimiser
from privet.solvers.perturbed_output import lattice_of, on_lattice, slack_of
from privet.solvers.result import Result
from privet.solvers.smooth import bounded_records, default_reach, linear_problem, smoothness
from privet.solvers.tilt import InsideObjective, Tilted, tilt_multiplier

__all__ = ["objective_perturbation"]

_BLUR_EPSILON = 0.02  # of epsilon, for the noise that hides the solver's tolerance
_BLUR_DELTA = 0.01  # of delta
_CURVATURE = 0.1  # of epsilon, what the default penalty lets the Jacobian cost at most; log 2 at the very most
_TILT_BITS = 45  # of the tilt's standard deviation
_FAR = 40.0  # standard deviations that no draw reaches: probability below 1e-300
_BLUR = 0.05  # the blur aimed at, as a part of the least noise that the tilt can cause


def objective_perturbation(
    problem: Problem,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    regularisation: float | None = None,
    clip: float | None = None,
    radius: float | None = None,
    records: int | None = None,
    most_records: int | None = None,
    random: Random | None = None,
) -> Result:
    """argmin of Σ ℓ(w) + (Λ/2)‖w‖² + ⟨b, w⟩ with b Gaussian, and a little noise for what the solver left over.

    Promise: `result.guarantee` meets `budget`. The proof is for the exact minimiser; the one that is computed is
    within a certified tolerance of it, and noise hides the difference, charged to the same budget (approximate minima
    perturbation, Iyengar et al. 2019). Whether there is a result never depends on the data. `result.bound` is the
    proven excess risk over the points within `radius`, if that is given and no ridge was asked for.
    Theorem: `tilt_epsilon`; docs/proofs/perturbation.md, sections 3 to 5. Lecture: Razaviyayn, objective perturbation
    (rows 80 to 82). The clipped loss need not be twice differentiable, but a kink is refused: see the median in
    docs/perturbation.md.

    Parameters
    ----------
    problem : a generalised linear model on the whole space, with a convex, smooth loss of one output
    budget : the (epsilon, delta) to meet
    neighbours : which data sets must look alike
    regularisation : λ = Λ/records, beside the problem's ridge. By default the larger of what lets the Jacobian cost a
        tenth of epsilon and, with a `radius`, what the utility theorem asks for
    clip : bound on a record's gradient norm, enforced; the proven Lipschitz constant by default
    radius : public bound on ‖minimiser‖, for the default λ and the bound
    records : under "add_remove", a public guess of the number of records
    most_records : under "add_remove", a public bound on it, 2^27 by default; the smaller, the less blur
    random : the operating system's by default; a fixed seed voids the guarantee

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Budget, glm
    >>> from privet.solvers import objective_perturbation
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)) / 4
    >>> problem = glm("logistic", X, X @ [2.0, -1.0, 0.5] > 0, row_norm=1.0)
    >>> result = objective_perturbation(problem, budget=Budget(epsilon=1, delta=1e-6), radius=5.0)
    >>> result.coef.shape, result.guarantee.epsilon <= 1, round(result.bound, 3)
    ((3,), True, 0.042)
    >>> result.plan.event
    Approximate(epsilon=0.99999..., delta=9.99999...e-07)
    """
    check_budget(budget)
    check_neighbours(neighbours)
    model, gradient_clip = _tiltable(problem, clip)
    _check_radius(radius)
    count, most = bounded_records(model, neighbours, records, most_records)
    bend = smoothness(model) * model.row_norm**2
    # A hair less than the budget, so that sums of the parts stay within it.
    epsilon, delta = budget.epsilon * (1 - 2.0**-40), budget.delta * (1 - 2.0**-30)
    blur_epsilon, blur_delta = epsilon * _BLUR_EPSILON, delta * _BLUR_DELTA
    left, left_delta = epsilon - blur_epsilon, delta - blur_delta
    strength, noise = _tilt(model, regularisation, gradient_clip, bend, radius, count, left, left_delta, neighbours)
    stddev = upward(noise * gradient_clip)
    d = math.prod(model.shape)
    solver = Minimiser(
        problem=model,
        clip=gradient_clip,
        strength=strength,
        centre=np.zeros(model.shape),
        reach=default_reach(model, gradient_clip, radius),
    )
    # Whatever two data sets left over must be hidden: 2 × (tolerance + rounding of the tilt and of the result).
    unit = math.ldexp(1.0, math.frexp(stddev)[1] - _TILT_BITS)
    allowed = largest_mu(blur_epsilon, blur_delta)
    aim = _BLUR * stddev / (strength + most * bend)
    tolerance = max(
        allowed * max(aim, 2.0**-44 * solver.reach) / 4.0,
        solver.least_tolerance(records=most, tilt=_FAR * math.sqrt(d) * stddev),
    )
    left_over = tolerance + math.sqrt(d) * unit / strength
    step = lattice_of(2.0 * left_over / allowed, solver)
    blur = upward(upward(2.0 * (left_over + slack_of(step, solver))) / downward(allowed))
    plan = Plan(
        bounding=Tilted(clip=gradient_clip, strength=strength, tolerance=tolerance, blur=blur),
        sampling=InsideObjective(
            jacobian=_jacobian(bend, strength), delta=left_delta, blur_epsilon=blur_epsilon, blur_delta=blur_delta
        ),
        steps=1,
        records=count,
        neighbours=neighbours,
        noise_multiplier=noise,
    )
    random = random if random is not None else system_random()
    guarantee = guaranteed(plan, budget.delta, random)
    tilt = rounded_gaussian(random, stddev / unit, model.shape).astype(np.float64) * unit  # whole, below 2^53: exact
    found = solver.solve(tolerance, tilt=tilt)
    coef = add_gaussian(on_lattice(found, step, solver), step=step, noise_stddev=blur, random=random)
    bound = None
    if radius is not None and model.ridge.strength == 0:
        bound = _bound(gradient_clip, radius, d, count, strength, stddev, blur, left_over)
    return Result(coef=coef, guarantee=guarantee, plan=plan, bound=bound)


def _jacobian(bend: float, strength: float) -> float:
    return upward(math.log1p(upward(bend / strength)))


def _tilt(
    problem: LinearProblem,
    regularisation: float | None,
    clip: float,
    bend: float,
    radius: float | None,
    count: int,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
) -> tuple[float, float]:
    """Λ, of the sum of losses, and the noise multiplier of the tilt."""
    own = problem.ridge.strength
    if regularisation is not None and not (math.isfinite(regularisation) and regularisation >= 0):
        raise InvalidParameter(
            f"Expected regularisation to be a number of at least 0, got {regularisation!r}: the penalty must be "
            "convex. Leave it out for the default."
        )

    def multiplier(strength: float) -> float:
        return tilt_multiplier(epsilon=epsilon, jacobian=_jacobian(bend, strength), delta=delta, neighbours=neighbours)

    if regularisation is not None:
        strength = (own + regularisation) * count
        noise = multiplier(strength) if strength > 0 else math.inf
        if not math.isfinite(noise):
            least = bend / math.expm1(min(epsilon, 700.0)) / count
            raise InvalidParameter(
                f"Expected regularisation and ridge together above {least:g}, got {own + regularisation:g}: with so "
                "little strong convexity the change of variables alone costs more than epsilon. Pass more, or leave "
                "regularisation out."
            )
        return strength, noise
    least = bend / math.expm1(min(_CURVATURE * epsilon, math.log(2.0)))
    strength = max(own * count, least if bend > 0 else clip)
    noise = multiplier(strength)
    if radius is not None and own == 0:
        strength = max(strength, math.sqrt(math.prod(problem.shape)) * noise * clip / radius)
        noise = multiplier(strength)
    return strength, noise


def _bound(
    clip: float, radius: float, d: int, count: int, strength: float, stddev: float, blur: float, left_over: float
) -> float:
    """Excess risk d σ²/(2Λn) + Λ R²/(2n) of the exact minimiser; section 5 of the proof; and what was added to it."""
    exact = (d * stddev * stddev / strength + strength * radius * radius) / (2.0 * count)
    root = math.sqrt(d)
    room = 7.0 * radius * strength / stddev - root  # until the pull to within eight radii does anything
    pulled = stddev / strength * (math.exp(-room * room / 2.0) / room if room >= 1.0 else root)
    return upward(exact + clip * (blur * root * (1 + 2.0**-20) + left_over + pulled))


def _tiltable(problem: Problem, clip: float | None) -> tuple[LinearProblem, float]:
    """Refuse, on public facts, what the theorem does not cover."""
    model, found = linear_problem(problem, clip)
    if model.loss.outputs > 1:
        raise InvalidParameter(
            f"Expected a loss with one output, got {model.loss!r}: with several, one record changes the Jacobian by "
            "more than a matrix of rank one, and nothing is proven. Use output_perturbation or dp_gd."
        )
    if not isinstance(model.domain, WholeSpace):
        raise InvalidParameter(
            f"Expected the whole space, got {model.domain!r}: on its border the minimiser has no density, and the "
            "proof compares densities. Leave the domain out, and project the result yourself; that costs nothing."
        )
    return model, found


def _check_radius(radius: float | None) -> None:
    if radius is not None and not (math.isfinite(radius) and radius > 0):
        raise InvalidParameter(
            f"Expected radius to be a positive finite number, got {radius!r}: the theorem balances noise and penalty "
            "with it. Pass a public bound on the norm of the minimiser, or leave it out."
        )
