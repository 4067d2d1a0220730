"""Nikolov, CSC2412: private gradient descent in a ball, and how near the optimum it comes (110, 116, 117)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Declared
from privet.geometry import l2_ball
from privet.lectures.claim import Finding
from privet.lectures.registry import check
from privet.lectures.toy_problems import average_loss, largest_coordinate, pointwise
from privet.losses import LogisticLoss, append_one
from privet.plan import Meter, gradient_plan
from privet.privacy import Budget
from privet.problems import RecordProblem, glm
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import GradientStep, noisy_gradient_descent
from privet.solvers.descent import descend
from privet.solvers.gradient import PrivateGradient
from privet.solvers.plain_descent import projected_gradient_descent
from privet.theory import estimated_gradient_bound, exact_noise, nikolov_bound, second_moment

Vector = NDArray[np.float64]

LOSS = LogisticLoss(labels="plus_minus_one")
BUDGET = Budget(epsilon=1.0, delta=1e-5)


def _cube(n: int, d: int, *, seed: int, radius: float) -> tuple[RecordProblem, float]:
    """Rows of [−1, 1]^d with a 1 appended, labels −1 and +1, in a ball about 0; and the least risk there."""
    rng = np.random.default_rng(seed)
    X = append_one(rng.uniform(-1, 1, size=(n, d)))
    y = np.where(X @ rng.normal(size=d + 1) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = pointwise(LOSS, X, y, domain=l2_ball(radius=radius))
    best = projected_gradient_descent(problem, steps=400, step_size=2.0, release="last").released
    return problem, average_loss(problem, best)


@check("110", mutant={"power": 0.0})
def private_descent_in_a_ball(power: float = 1.0) -> Finding:
    """Run the slide's loop by hand and by the library on the same noise, then recover the library's own noise."""
    rng, T, eta, R = np.random.default_rng(110), 60, 0.3, 0.5
    problem, _ = _cube(80, 3, seed=110, radius=R)
    noise = rng.normal(size=(T - 1, 4))
    theta, visited, scaled_back = np.zeros(4), [np.zeros(4)], 0
    for z in noise:
        moved = theta - eta * problem.plain_gradient(theta) - eta**power * z
        theta = moved / max(1.0, float(np.linalg.norm(moved)) / R)
        scaled_back += float(np.linalg.norm(moved)) > R
        visited.append(theta)
    drawn = iter(noise)
    by_library = descend(
        lambda w: problem.plain_gradient(w) + next(drawn),
        start=np.zeros(4),
        steps=T - 1,
        update=GradientStep(step_size=eta),
        domain=problem.domain,
        release="average",
    ).released
    apart = float(np.abs(np.mean(visited, axis=0) - by_library).max())
    private = glm(LOSS, problem.X, problem.y, row_norm=2.0, domain=l2_ball(radius=1e3))
    found = noisy_gradient_descent(
        private, budget=BUDGET, steps=T - 1, step_size=eta, release="all", random=fixed_seed_invalidates_guarantee(110)
    )
    points = np.asarray(found.iterates)
    moves = points[1:] - points[:-1] + eta * np.array([problem.plain_gradient(point) for point in points[:-1]])
    claimed = eta**power * exact_noise(epsilon=1.0, delta=1e-5, steps=T - 1, sensitivity=2 * 2.0 / 80)
    deviation = float(np.sqrt(np.mean(moves**2)))
    off = abs(deviation / claimed - 1.0) * math.sqrt(2 * moves.size)
    return Finding.judged(
        apart < 1e-12 and off < 5,
        f"By hand and by the library the average of {T} iterates is {apart:.1e} apart, {scaled_back} of {T - 1} steps "
        f"scaled back to the ball. Each step of the library's own run has noise {deviation:.4f}, of eta sigma = "
        f"{claimed:.4f} ({off:.1f} standard errors).",
        apart=apart,
        scaled_back=scaled_back,
        noise_of_a_step=deviation,
        claimed=claimed,
        standard_errors=off,
    )


@check("116", mutant={"constant": 0.5})
def accuracy_theorem(constant: float = 1.0, full: bool = False) -> Finding:
    """Descend from the ball's centre with the theorem's step size, without and with noise, on two losses."""
    rng, runs, T, R = np.random.default_rng(116), 200 if full else 10, 64, 2.0
    largest, least = largest_coordinate(T, radius=R)
    cube, lowest = _cube(50, 4, seed=116, radius=R)
    shares = {}
    for name, problem, best, G, d in (("largest", largest, least, 1.0, T), ("logistic", cube, lowest, math.sqrt(5), 5)):
        for sigma in (0.0, 0.3, 1.0):

            def noisy(w: Vector, at: RecordProblem = problem, s: float = sigma) -> Vector:
                return at.plain_gradient(w) + s * rng.normal(size=w.size)

            moment = second_moment(steps=T, lipschitz=G, d=d, noise_stddev=sigma)
            excess = []
            for _ in range(runs if sigma else 1):
                average = descend(
                    noisy,
                    start=np.zeros(d),
                    steps=T - 1,
                    update=GradientStep(step_size=R / math.sqrt(moment * T)),
                    domain=problem.domain,
                    release="average",
                ).released
                excess.append(average_loss(problem, average) - best)
            claimed = constant * estimated_gradient_bound(steps=T, distance=R, second_moment=moment).value
            shares[f"share_{name}_{sigma:g}".replace(".", "_")] = float(np.mean(excess)) / claimed
    return Finding.judged(
        max(shares.values()) <= 1 + 1e-9,
        "The mean excess is " + ", ".join(f"{share:.3f}" for share in shares.values()) + " of RB/sqrt(T), for the "
        "largest coordinate and a logistic loss with noise 0, 0.3, 1; R is the radius, from the ball's centre.",
        table=shares,
    )


@check("117", mutant={"power": 0.0})
def plugging_in(power: float = 2.0, full: bool = False) -> Finding:
    """Draw the library's noisy gradients where the gradient is longest, for epsilon 0.5, 1 and 2, and average |.|^2."""
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
    n, T = 1000, 100
    sigma = exact_noise(epsilon=1.0, delta=delta, steps=T, sensitivity=2 * G / n)
    explicit = nikolov_bound(steps=T, radius=1.0, d=d, noise_stddev=sigma).value
    order = math.sqrt(d / T) + d * math.sqrt(math.log(1 / delta)) / n
    cube, least = _cube(200, 4, seed=117, radius=1.0)
    private = glm(LOSS, cube.X, cube.y, row_norm=math.sqrt(5), domain=cube.domain)
    results = [
        noisy_gradient_descent(private, budget=BUDGET, steps=63, random=fixed_seed_invalidates_guarantee(seed))
        for seed in range(50 if full else 3)
    ]
    excess = float(np.mean([average_loss(cube, result.coef) - least for result in results]))
    noise = exact_noise(epsilon=1.0, delta=delta, steps=63, sensitivity=2 * math.sqrt(5) / 200)
    allowed = nikolov_bound(steps=64, radius=1.0, d=4, noise_stddev=noise).value
    return Finding.judged(
        over < 5 and excess <= allowed,
        f"For epsilon = 0.5, 1, 2 the second moment is {', '.join(f'{share:.3f}' for share in shares.values())} of the "
        f"bound with (d + 1)/epsilon^{power:g}, {over:.1f} standard errors above it at worst. The explicit error is "
        f"{explicit / order:.2f} times the printed order; a run of 63 steps is {excess:.4f} above the least, of "
        f"{allowed:.3f}.",
        standard_errors_above=over,
        explicit_of_order=explicit / order,
        excess=excess,
        allowed=allowed,
        table=shares,
    )
