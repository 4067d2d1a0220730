"""Nikolov, CSC2412: how good private descent is (116 and 117)."""

import math
from itertools import product

import numpy as np

from privet.clipping import Declared
from privet.lectures import Finding, check, rule
from privet.lectures.checks.nikolov_descent import LOSS, cube_problem
from privet.lectures.measures import Vector, listed
from privet.lectures.noisy_runs import down_a_slope, largest_slopes, side_by_side, walk
from privet.lectures.toy_problems import average_loss, pointwise
from privet.plan import Meter, gradient_plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers.gradient import PrivateGradient
from privet.theory import estimated_gradient_bound, exact_noise, second_moment


@check("116", mutant={"constant": 0.5})
def accuracy_theorem(constant: float = 1.0, full: bool = False) -> Finding:
    """Descend from the ball's centre with the theorem's step size, without and with noise, on two losses."""
    rng, runs, T, R = np.random.default_rng(116), 200 if full else 10, 64, 2.0
    cube, lowest = cube_problem(50, 4, seed=116, radius=R)
    shares = {}

    def largest(sigma: float, eta: float) -> Vector:
        copies = 10 * runs if sigma else 1
        ends = side_by_side(
            largest_slopes, d=T, copies=copies, radius=R, noise=sigma, steps=T - 1, step_size=eta, seed=116
        )
        return np.asarray(ends.max(axis=1) + R / math.sqrt(T))

    def logistic(sigma: float, eta: float) -> Vector:
        def noisy(w: Vector) -> Vector:
            return cube.plain_gradient(w) + sigma * rng.normal(size=w.size)

        ends = [
            walk(noisy, size=5, steps=T - 1, step_size=eta, domain=cube.domain) for _ in range(runs if sigma else 1)
        ]
        return np.array([average_loss(cube, end) - lowest for end in ends])

    for name, run, G, d in (("largest", largest, 1.0, T), ("logistic", logistic, math.sqrt(5), 5)):
        for sigma in (0.0, 0.3, 1.0):
            moment = second_moment(steps=T, lipschitz=G, d=d, noise_stddev=sigma)
            excess = run(sigma, R / math.sqrt(moment * T))
            claimed = constant * estimated_gradient_bound(steps=T, distance=R, second_moment=moment).value
            shares[f"share_{name}_{sigma:g}".replace(".", "_")] = float(np.mean(excess)) / claimed
    told = f"""The mean excess is {listed(shares.values(), ".3f")} of RB/sqrt(T), for the largest coordinate and a
        logistic loss with noise 0, 0.3, 1; R is the radius, from the ball's centre."""
    return Finding.judged(max(shares.values()) <= 1 + 1e-9, told, table=shares)


def _slide_error(T: int, d: int, n: int, e: float, delta: float) -> tuple[float, float]:
    """RB/sqrt(T) for R = 1, noise by claims 112 and 114, d + 1 for the gradient's part; and the printed order."""
    sigma = rule("rho").multiplier(e, delta, T) * 2 * math.sqrt(d + 1) / n
    return math.sqrt((d + 1) * (1 + sigma**2) / T), math.sqrt(d / T) + d * math.sqrt(math.log(1 / delta)) / (e * n)


@check("117", mutant={"power": 0.0})
def plugging_in(power: float = 2.0, full: bool = False) -> Finding:
    """Draw the library's noisy gradients where the gradient is longest, and average |.|^2; sweep the error's order."""
    d, delta, draws = 9, 1e-5, 4_000 if full else 200
    G, far = math.sqrt(d + 1), np.full(d + 1, -2.0)  # there the gradient is as long as it gets, to 2e-9
    problem = pointwise(LOSS, np.ones((100, d + 1)), np.ones(100))
    shares, over = {}, 0.0
    for e in (0.5, 1.0, 2.0):
        sigma = exact_noise(epsilon=e, delta=delta, sensitivity=2 * G / 100)
        plan = gradient_plan(
            bounding=Declared(lipschitz=G),
            noise_multiplier=sigma * 100 / G,
            steps=draws,
            records=100,
            neighbours="replace_one",
        )
        estimate = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(117)))
        squares = np.array([float((estimate(far) ** 2).sum()) for _ in range(draws)])
        claimed = G * G / e**power + sigma**2 * (d + 1)
        shares[f"share_at_{e:g}".replace(".", "_")] = float(squares.mean()) / claimed
        over = max(over, (float(squares.mean()) - claimed) / (float(squares.std()) / math.sqrt(draws)))
    swept = product((100, 10**5), (3, 300), (10**3, 10**5), (0.1, 1.0), (1e-10, 1e-3))
    errors = [_slide_error(*at) for at in swept]
    ratios = [error / order for error, order in errors]
    # one step with the slope's gradient 1 and noise of that size: how much of RB/sqrt(T) is reached
    moment = 1 + 4.0
    reached, _ = down_a_slope(
        slope=1.0, d=1, noise=2.0, steps=399, step_size=1 / math.sqrt(moment * 400), copies=200, seed=117
    )
    told = f"""For epsilon = 0.5, 1, 2 the second moment is {listed(shares.values(), ".3f")} of the bound with (d +
        1)/epsilon^{power:g}, {over:.1f} standard errors above it at worst. With d + 1 the error is {min(ratios):.2f} to
        {max(ratios):.2f} times the printed order at {len(ratios)} points of T, d, n, epsilon and delta; a run down a
        slope reaches {reached / math.sqrt(moment / 400):.3f} of RB/sqrt(T)."""
    numbers = {"standard_errors_above": over, "least_of_order": min(ratios), "most_of_order": max(ratios)}
    numbers |= {"reached_of_bound": reached / math.sqrt(moment / 400)}
    holds = over < 5 and max(ratios) / min(ratios) < 5 and reached <= math.sqrt(moment / 400)
    return Finding.judged(holds, told, table=numbers | shares)
