"""From a problem and a budget to a run: steps, step sizes and noise by a theorem, with the risk it proves."""

import math
from dataclasses import replace
from typing import get_args

from privet.accounting.numerics import downward, upward
from privet.errors import InvalidParameter
from privet.privacy import Budget, Neighbours, check_neighbours, sensitivity_factor
from privet.theory import descent_bounds as proven
from privet.theory.least_noise import exact_noise
from privet.theory.perturbation_bounds import exponential_mechanism_bound, logistic_lipschitz, output_perturbation_bound
from privet.theory.prescription import Method, Prescription, Schedule
from privet.theory.risk import RiskBound, positive, whole
from privet.theory.setting import MOST_STEPS, Setting, checked_diameter, last_iterate_steps, whole_steps

_SLACK = math.sqrt(2.0) - 1.0


def plan_for(
    *,
    n: int,
    d: int,
    radius: float,
    lipschitz: float | None = None,
    budget: Budget,
    neighbours: Neighbours,
    method: Method = "average",
    diameter: float | None = None,
    rank: int | None = None,
    steps: int | None = None,
    max_steps: int | None = None,
    slack: float = _SLACK,
) -> Prescription:
    """Return steps, step sizes and noise by the theorem of `method`, with the excess risk that it proves.

    Nothing here reads data: every argument is a public constant. The noise is exact (Balle and Wang 2018), rounded
    upwards; `Prescription.event` meets the budget.

    Parameters
    ----------
    n : number of records. Under "add_remove", where that is private, a public number at least as large: sums are
        divided by it, and the risk that is bounded is sum/n
    d : number of parameters; for "nikolov", of features, without the intercept
    radius : of the set about the start: public bound on |w_0 − w*|. For "rank", on |θ_0 − θ*|_M
    lipschitz : G, bound on one record's gradient norm. Not for "nikolov", where it follows from d and radius
    budget, neighbours : what the release shall satisfy
    method :
        "average": mean of w_0, …, w_{T−1}, constant step (Wu, theorem 2.6, claims 31, 34, 35);
        "last": w_T, steps c/√t (Shamir and Zhang 2013, claims 87 to 89);
        "last_linear": w_{T−1}, steps falling linearly (Zamani and Glineur 2023): the bound of the average;
        "rank": as "average" without projection, for a GLM whose records span `rank` dimensions (Brown, claim 49);
        "nikolov": logistic regression on [−1, 1]^d with intercept (claims 114 to 117);
        "output_perturbation": regularised minimiser plus noise (claim 77);
        "exponential": one exact draw, pure epsilon (claim 32)
    diameter : of the set, for "last", "output_perturbation" and "exponential"; twice the radius unless known better
    rank : for "rank", public bound on the rank of the records
    steps : T, if you want to fix it; else the least T within a factor 1 + `slack` of the bound's limit, or the best T
    max_steps : no more than this; the bound is for the T that is returned
    slack : √2 − 1 by default, which is T = n²μ²/(4d) under "replace_one"

    Examples
    --------
    >>> from privet import Budget
    >>> known = dict(n=1000, d=10, radius=1.0, lipschitz=1.0, budget=Budget(epsilon=1, delta=1e-5),
    ...              neighbours="replace_one")
    >>> for method in ("average", "last_linear", "last", "output_perturbation", "exponential"):
    ...     print(f"{method:20} {plan_for(**known, method=method).excess_risk:.4f}")
    average              0.0334
    last_linear          0.0334
    last                 1.1475
    output_perturbation  0.2172
    exponential          0.0400
    >>> capped = plan_for(**known, max_steps=100)
    >>> capped.steps, f"{capped.excess_risk:.4f}"
    (100, '0.1027')
    """
    if method not in get_args(Method):
        raise InvalidParameter(f"""Expected a method among {", ".join(get_args(Method))}, got {method!r}: no theorem is
            known by that name.""")
    features = whole("d", d)
    radius = positive("radius", radius)
    if method == "nikolov":
        if lipschitz is not None:
            raise InvalidParameter(f"""Expected no lipschitz for 'nikolov', got {lipschitz!r}: there it follows from d
                and radius. Leave it out, or use 'average' with d + 1 parameters.""")
        lipschitz, features = logistic_lipschitz(d=d, radius=radius), d + 1
    elif lipschitz is None:
        raise InvalidParameter(f"""Expected lipschitz for {method!r}, got None: without a bound on one record's gradient
            no noise is enough. Pass the loss's constant, or the clip.""")
    problem = Setting(
        n=whole("n", n),
        d=_effective(method, features, rank),
        radius=radius,
        diameter=checked_diameter(radius, diameter),
        lipschitz=positive("lipschitz", lipschitz),
        budget=budget,
        neighbours=check_neighbours(neighbours),
    )
    limit = MOST_STEPS if max_steps is None else whole("max_steps", max_steps)
    if steps is not None and whole("steps", steps) > limit:
        raise InvalidParameter(f"""Expected at most {limit} steps, got {steps!r}: they contradict each other. Leave one
            of the two out.""")
    if steps is not None and method in ("output_perturbation", "exponential"):
        raise InvalidParameter(f"""Expected no steps for {method!r}, got {steps!r}: nothing is iterated in its theorem.
            Leave them out.""")
    if method == "output_perturbation":
        return _output_perturbation(problem)
    if method == "exponential":
        return _exponential(problem)
    if method == "last":
        return _last(problem, steps, limit)
    return _falling(problem, method, steps, limit, positive("slack", slack))


def _falling(problem: Setting, method: Method, steps: int | None, limit: int, slack: float) -> Prescription:
    """Plan the methods whose bound is R G √(1/T + a ((T − 1)/T)²): at T = 1 it is that of the start."""
    a = problem.ratio
    if steps is None:
        steps = whole_steps(1.0 / (a * slack * (2.0 + slack)) if a > 0.0 else math.inf, limit)
        if 1.0 / steps + a * (1.0 - 1.0 / steps) ** 2 >= 1.0:
            steps = 1
    sigma = problem.noise(steps - 1)
    moment = proven.second_moment(
        steps=steps, lipschitz=problem.lipschitz, d=problem.d, noise_stddev=sigma, noisy_steps=steps - 1
    )
    eta = problem.radius / math.sqrt(steps * moment)
    schedule: Schedule = "linear_decay" if method == "last_linear" else "constant"
    bound = proven.estimated_gradient_bound(steps=steps, distance=problem.radius, second_moment=moment)
    floor = math.sqrt(a) * problem.trivial
    return _descent(problem, method, proven.restated(bound, method), steps, steps - 1, eta, schedule, floor)


def _last(problem: Setting, steps: int | None, limit: int) -> Prescription:
    """Plan Shamir and Zhang's last iterate; the bound has two low ends, at T = 1 and at Lambert's T."""
    a = problem.ratio

    def shape(t: int) -> float:
        return (2.0 + math.log(t)) * math.sqrt(1.0 / t + a)

    if steps is None:
        above = whole_steps(last_iterate_steps(a) if a > 0.0 else math.inf, limit)
        steps = min((1, max(1, above - 1), above), key=shape)
    sigma = problem.noise(steps)
    moment = proven.second_moment(steps=steps, lipschitz=problem.lipschitz, d=problem.d, noise_stddev=sigma)
    bound = proven.last_iterate_bound(
        steps=steps, diameter=problem.diameter, lipschitz=problem.lipschitz, d=problem.d, noise_stddev=sigma
    )
    return _descent(problem, "last", bound, steps, steps, problem.diameter / math.sqrt(moment), "inverse_sqrt", None)


def _prescription(problem: Setting, method: Method, bound: RiskBound) -> Prescription:
    """What every method prescribes."""
    return Prescription(
        method=method,
        budget=problem.budget,
        neighbours=problem.neighbours,
        bound=problem.stated(bound),
        trivial=problem.trivial,
        clip=problem.lipschitz,
        divisor=problem.n,
    )


def _descent(
    problem: Setting,
    method: Method,
    bound: RiskBound,
    steps: int,
    noisy: int,
    step_size: float,
    schedule: Schedule,
    floor: float | None,
) -> Prescription:
    sigma = problem.noise(noisy)
    return replace(
        _prescription(problem, method, bound),
        floor=floor,
        steps=steps,
        noisy_steps=noisy,
        step_size=step_size,
        schedule=schedule,
        noise_multiplier=upward(sigma * problem.n / problem.lipschitz),
        noise_stddev=sigma,
    )


def _output_perturbation(problem: Setting) -> Prescription:
    """Balance the noise G σ √d = G² s √d/(λnμ) against the regulariser λR²/2: λ = (G/R) √(2 s √d/(nμ))."""
    s = sensitivity_factor(problem.neighbours)
    relative = math.sqrt(problem.ratio)  # s √d/(nμ)
    strength = problem.lipschitz / problem.radius * math.sqrt(2.0 * relative)
    multiplier = exact_noise(epsilon=problem.budget.epsilon, delta=problem.budget.delta, steps=1, sensitivity=float(s))
    sigma = upward(multiplier * problem.lipschitz / (strength * problem.n))
    bound = output_perturbation_bound(
        distance=problem.radius,
        diameter=problem.diameter,
        lipschitz=problem.lipschitz,
        d=problem.d,
        regularisation=strength,
        noise_stddev=sigma,
    )
    planned = _prescription(problem, "output_perturbation", bound)
    return replace(planned, noise_multiplier=multiplier, noise_stddev=sigma, regularisation=strength)


def _exponential(problem: Setting) -> Prescription:
    """Sharpen as far as epsilon allows: log densities of neighbours differ by at most β s G D/n."""
    epsilon = positive("epsilon of the exponential mechanism", problem.budget.epsilon)
    range_ = sensitivity_factor(problem.neighbours) * problem.lipschitz * problem.diameter
    exponent = downward(epsilon * problem.n / range_)
    bound = exponential_mechanism_bound(
        diameter=problem.diameter, lipschitz=problem.lipschitz, d=problem.d, exponent=exponent
    )
    return replace(_prescription(problem, "exponential", bound), exponent=exponent)


def _effective(method: Method, d: int, rank: int | None) -> int:
    if (method == "rank") != (rank is not None):
        raise InvalidParameter(f"""Expected rank for the method 'rank' and for no other, got {rank!r} for {method!r}:
            the rank bound holds without projection only. Pass both or neither.""")
    if rank is None:
        return d
    if whole("rank", rank) > d:
        raise InvalidParameter(f"""Expected rank to be at most d = {d}, got {rank!r}: no records span more. Pass the
            smaller number.""")
    return int(rank)
