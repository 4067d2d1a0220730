"""Wu, lecture 13, section 1: projected descent, gradient estimates, noisy descent, sensitivity (01 to 11)."""

import math
from functools import partial
from typing import Any

import numpy as np

from privet.clipping import Clip
from privet.geometry import box, l2_ball
from privet.lectures import Finding, check
from privet.lectures.measures import Vector, apart, listed, measured_noise
from privet.lectures.noisy_runs import noisy_run, walk
from privet.lectures.toy_problems import Inner, average_loss, linear, pointwise
from privet.losses import AbsoluteLoss, CustomLoss, HingeLoss, Loss, QuantileLoss, SquaredLoss
from privet.losses.loss import Array
from privet.noise import add_gaussian
from privet.problems import per_record
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import FixedSize, OneRecord
from privet.solvers.descent import ReleaseRule
from privet.solvers.plain_descent import projected_gradient_descent
from privet.sums import record_sum


@check("01", mutant={"factor": 0.5})
def algorithm_1(factor: float = 1.0) -> Finding:
    """Run algorithm 1 on a quadratic in a box, step by step against the library."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    T, eta, domain = 40, 0.3, box(low=-0.2, high=0.2, size=3)
    problem = pointwise(SquaredLoss(factor=1.0), X, y, domain=domain)
    w, visited = np.zeros(3), []
    for _ in range(T):
        visited.append(w)
        w = np.clip(w - factor * eta * X.T @ (X @ w - y) / 30, -0.2, 0.2)
    by_hand = np.mean(visited, axis=0)
    by_library = projected_gradient_descent(problem, steps=T - 1, step_size=eta).released
    off = apart(by_hand, by_library)
    start, end = average_loss(problem, np.zeros(3)), average_loss(problem, by_library)
    told = f"""Algorithm 1 by hand and by the library are {off:.1e} apart after {T} iterates; the loss goes from
        {start:.4f} to {end:.4f}."""
    return Finding.judged(off < 1e-12 and end < start, told, apart=off, loss_at_start=start, loss_of_average=end)


def _slope(z: Any, y: Any, at_kink: float) -> Array:
    """A subgradient of |z − y|: any number from −1 to 1 where z = y."""
    return np.where(np.asarray(z) == y, at_kink, np.sign(np.asarray(z) - y))


@check("02", mutant={"factor": 2.0})
def subgradients(factor: float = 1.0) -> Finding:
    """Hold the derivative of losses with kinks under every chord, then descend with each subgradient at a kink."""
    losses: list[tuple[Loss, float]] = [(HingeLoss(), 1.0), (AbsoluteLoss(), 0.0), (QuantileLoss(level=0.3), 0.0)]
    z = np.linspace(-2.0, 2.0, 81)  # kinks included
    worst = -math.inf
    for loss, label in losses:
        value, slope = loss.value(z, np.full(81, label)), factor * loss.derivative(z, np.full(81, label))
        worst = max(worst, float((value[:, None] + slope[:, None] * (z - z[:, None]) - value).max()))
    excess = []
    for at_kink in (-1.0, 0.0, 1.0):
        loss = CustomLoss(
            value=lambda z, y: np.abs(np.asarray(z) - y),
            derivative=partial(_slope, at_kink=at_kink),
            curvature=lambda z, y: np.zeros_like(np.asarray(z)),
            lipschitz_constant=1.0,
            convex=True,
        )
        problem = pointwise(loss, [[1.0]] * 3, [-1.0, 0.0, 1.0], domain=l2_ball(radius=2.0))
        found = projected_gradient_descent(problem, steps=399, step_size=2.0 / 20.0, start=np.array([-2.0]))
        excess.append(average_loss(problem, found.released) - 2.0 / 3.0)
    told = f"""No tangent rises above its loss (by {max(worst, 0.0):.1e} at most), and three choices at the kink of a
        median end within {max(excess):.4f} of the optimum, where 0.2 is promised."""
    holds = worst <= 1e-12 and max(excess) <= 4.0 / 20.0
    return Finding.judged(holds, told, tangent_above_loss=worst, largest_excess=max(excess))


class _Counted(Inner):
    """Counts the numbers that gradients are made of."""

    def __init__(self) -> None:
        self.numbers = 0

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        found = super().gradients(theta, X, y)
        self.numbers += found.size
        return found


@check("03", mutant={"power": 1.5})
def running_time(power: float = 1.0) -> Finding:
    """Count the gradient entries that descent reads, and double n, T and d in turn."""

    def counted(n: int, T: int, d: int) -> int:
        loss = _Counted()
        projected_gradient_descent(per_record(loss, np.ones((n, d)), shape=d), steps=T, step_size=0.01)
        return loss.numbers

    base = counted(50, 20, 4)
    growth = [counted(100, 20, 4) / base, counted(50, 40, 4) / base, counted(50, 20, 8) / base]
    told = f"""50 records, 20 steps and 4 parameters take {base} numbers, and doubling n, T or d takes {growth[0]:g},
        {growth[1]:g} and {growth[2]:g} times as many."""
    numbers = {"numbers_read": base, "growth_with_n": growth[0], "growth_with_steps": growth[1]}
    numbers |= {"growth_with_d": growth[2]}
    return Finding.judged(base == 50 * 20 * 4 and all(ratio == 2.0**power for ratio in growth), told, table=numbers)


@check("04", mutant={"barrier": 0.0})
def local_minima(barrier: float = 1.0) -> Finding:
    """Descend in a double well and in a bowl from both sides."""

    def ends(wall: float) -> list[float]:
        loss = CustomLoss(
            value=lambda z, y: np.asarray(z) ** 4 - 2 * wall * np.asarray(z) ** 2 + 0.3 * np.asarray(z),
            derivative=lambda z, y: 4 * np.asarray(z) ** 3 - 4 * wall * np.asarray(z) + 0.3,
            curvature=lambda z, y: 12 * np.asarray(z) ** 2 - 4 * wall,
            convex=wall == 0,
        )
        problem = pointwise(loss, [[1.0]], [0.0], domain=l2_ball(radius=2.0))
        paths = [
            projected_gradient_descent(problem, steps=300, step_size=0.04, release="last", start=np.array([w]))
            for w in (-1.5, 1.5)
        ]
        return [average_loss(problem, path.released) for path in paths]

    well, bowl = ends(barrier), ends(0.0)
    stuck = well[1] - well[0]
    told = f"""From the right, descent in a double well stops {stuck:.3f} above its minimum; in a convex bowl the side
        does not matter ({abs(bowl[1] - bowl[0]):.1e})."""
    holds = stuck > 0.1 and abs(bowl[1] - bowl[0]) < 1e-6
    return Finding.judged(holds, told, excess_of_local_minimum=stuck, excess_in_bowl=abs(bowl[1] - bowl[0]))


@check("05", mutant={"divisor": 2.0})
def decomposable(divisor: float = 1.0) -> Finding:
    """Compare the gradient of the average loss with the average of gradients, and with a difference quotient."""
    rng, loss = np.random.default_rng(5), SquaredLoss(factor=1.0)
    X, y, w, u = rng.normal(size=(25, 4)), rng.normal(size=25), rng.normal(size=4), rng.normal(size=4)
    problem = pointwise(loss, X, y)
    one_by_one = sum(pointwise(loss, X[[i]], y[[i]]).plain_gradient(w) for i in range(25)) / (25 * divisor)
    quotient = (average_loss(problem, w + 1e-4 * u) - average_loss(problem, w - 1e-4 * u)) / 2e-4
    off = apart(problem.plain_gradient(w), one_by_one)
    slope = abs(float(one_by_one @ u) - quotient)
    told = f"""The average of 25 gradients is the gradient of the average loss to {off:.1e}, and the slope of that loss
        to {slope:.1e}."""
    return Finding.judged(off < 1e-12 and slope < 1e-8, told, apart=off, slope_error=slope)


@check("06", mutant={"bias": 0.05})
def noisy_gradients(bias: float = 0.0) -> Finding:
    """Draw 200,000 noisy copies of one number from the library, and test mean and variance at five standard errors."""
    n, sigma, value = 200_000, 0.75, 3.25
    units = np.full(n, round(value * 4096), dtype=np.int64)
    drawn = add_gaussian(units, step=2.0**-12, noise_stddev=sigma, random=fixed_seed_invalidates_guarantee(6))
    mean_off = abs(float(drawn.mean()) - value - bias * sigma) / (sigma / math.sqrt(n))
    variance_off = abs(float(drawn.var()) / sigma**2 - 1.0) * math.sqrt(n / 2)
    told = f"""Mean {drawn.mean():.5f} of {value} and variance {drawn.var():.5f} of {sigma**2}: {mean_off:.1f} and
        {variance_off:.1f} standard errors off."""
    numbers = {"mean": drawn.mean(), "variance": drawn.var(), "mean_standard_errors": mean_off}
    numbers |= {"variance_standard_errors": variance_off}
    return Finding.judged(mean_off < 5 and variance_off < 5, told, table=numbers)


@check("07", mutant={"scale": 2.0})
def one_record_is_unbiased(scale: float = 1.0, full: bool = False) -> Finding:
    """Draw single records with the library's sampler; compare their mean gradient at five standard errors."""
    rng, random = np.random.default_rng(7), fixed_seed_invalidates_guarantee(7)
    rows, draws = rng.normal(size=(20, 3)), 200_000 if full else 4_000
    drawn = np.array([OneRecord().indices(20, step, random)[0] for step in range(draws)])  # type: ignore[index]
    standard_error = rows.std(axis=0) / math.sqrt(draws)
    off = float((np.abs(rows[drawn].mean(axis=0) - scale * rows.mean(axis=0)) / standard_error).max())
    told = f"""The mean of {draws:,} single-record gradients is {off:.1f} standard errors from the full gradient, at
        most."""
    return Finding.judged(off < 5, told, draws=draws, standard_errors=off)


@check("08", mutant={"power": 0.5})
def batches_trade_time_for_variance(power: float = 1.0, full: bool = False) -> Finding:
    """Draw batches of 1 to 64 of 128 records, and compare the variance of their means with S²/m (1 − m/n)."""
    rng, random = np.random.default_rng(8), fixed_seed_invalidates_guarantee(8)
    values, draws, worst, seen = rng.normal(size=128), 20_000 if full else 600, 0.0, {}
    for m in (1, 4, 16, 64):
        means = [values[FixedSize(batch=m).indices(128, step, random)].mean() for step in range(draws)]
        seen[f"variance_of_{m}"] = float(np.var(means))
        claimed = values.var(ddof=1) / m**power * (1 - m / 128)
        worst = max(worst, abs(seen[f"variance_of_{m}"] / claimed - 1.0) * math.sqrt(draws / 2))
    told = f"""Variances of batch means of 1, 4, 16 and 64 records: {listed(seen.values(), ".5f")}; within {worst:.1f}
        standard errors of S²/m (1 − m/n)."""
    # the means' kurtosis is below 3 plus a little: 6 standard errors of a normal's variance
    return Finding.judged(worst < 6, told, standard_errors=worst, table=seen)


def _residuals(release: ReleaseRule) -> tuple[Vector, Vector | None, Vector, float]:
    """Noise that the library put into 100 steps in 50 dimensions, with what it released."""
    rows = np.random.default_rng(9).normal(size=(40, 50)) / 20
    problem = linear(rows, domain=l2_ball(radius=50.0))
    found = noisy_run(problem, noise_multiplier=2.0, steps=100, step_size=0.5, seed=9, release=release)
    return found.coef, found.iterates, rows.mean(axis=0), 2.0 / 40


@check("09", mutant={"noise": 0.5})
def algorithm_2(noise: float = 1.0) -> Finding:
    """Run algorithm 2 with the library, recover the noise from all iterates, and test it at five standard errors."""
    average, _, gradient, sigma = _residuals("average")
    _, iterates, _, _ = _residuals("all")
    points = np.asarray(iterates)
    drawn = (points[:-1] - points[1:]) / 0.5 - gradient
    deviation, off = measured_noise(drawn, noise * sigma)
    from_mean = apart(points.mean(axis=0), average)
    told = f"""The noise in {drawn.size} coordinates has standard deviation {deviation:.6f} of {noise * sigma:.6f}
        ({off:.1f} standard errors), and the output is the mean of w_0 to w_{len(points) - 1} to {from_mean:.1e}."""
    holds = off < 5 and from_mean < 1e-9
    return Finding.judged(holds, told, noise_stddev=deviation, standard_errors=off, average_apart=from_mean)


@check("10", mutant={"factor": 0.9})
def releasing_less_costs_no_more(factor: float = 1.0) -> Finding:
    """Find how the library's average and last iterate respond to each gradient, hence their μ against that of all."""
    T = 100

    def mu(release: ReleaseRule, steps: int) -> float:
        """μ of a linear image of `steps` gradients, in units of Δ/σ: |Σ weights| ÷ their l2 norm."""
        impulses = iter(np.eye(steps))
        weights = walk(lambda _: next(impulses), size=steps, steps=steps, step_size=1.0, release=release)
        return float(abs(weights.sum()) / np.linalg.norm(weights))

    average, last = mu("average", T - 1) / math.sqrt(T), mu("last", T) / math.sqrt(T)
    closed = math.sqrt(3 * (T - 1) / (2 * (2 * T - 1)))
    told = f"""For a linear loss and T = {T} the last iterate has {last:.6f} of the transcript's μ, the average
        {average:.6f}: never more than all of it."""
    holds = average <= factor and last <= factor * (1 + 1e-12) and abs(average - closed) < 1e-12
    return Finding.judged(holds, told, last_of_all=last, average_of_all=average)


@check("11", mutant={"constant": 0.5})
def sensitivity_of_averages(constant: float = 1.0) -> Finding:
    """Replace a record at random and at worst, and see how far the library's bounded average moves."""
    rng, G, n, T = np.random.default_rng(11), 1.5, 10, 16
    moves = []
    for trial in range(500):
        rows = rng.normal(size=(n, 3)) * 2.0
        other = rows.copy()
        other[0] = -5.0 * rows[0] if trial % 2 else rng.normal(size=3) * 2.0
        sums = [record_sum(table, rule=Clip(clip=G)).value for table in (rows, other)]
        moves.append(float(np.linalg.norm(sums[0] - sums[1])) / n)
    turns = rng.normal(size=(T, 1, 3)) * 10.0  # a record that points elsewhere at each step, and its opposite
    rest = rng.normal(size=(T, n - 1, 3))
    runs = [
        [record_sum(np.concatenate([sign * turns[t], rest[t]]), rule=Clip(clip=G)).value for t in range(T)]
        for sign in (1.0, -1.0)
    ]
    stacked = float(np.linalg.norm(np.subtract(runs[0], runs[1]))) / n
    claimed = constant * 2 * G / n
    told = f"""Of 500 replacements of one of {n} records the worst moves the average by {max(moves):.6f}, where 2G/n =
        {2 * G / n:.6f}; {T} gradients together move by {stacked:.6f}, √T times that."""
    holds = 0.99 * claimed < max(moves) <= claimed and 0.99 * claimed < stacked / math.sqrt(T) <= claimed
    return Finding.judged(holds, told, largest_move=max(moves), claimed=claimed, largest_move_of_all_steps=stacked)
