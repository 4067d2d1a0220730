"""Wu, lecture 13, section 1: gradient estimates, noisy descent, releases, sensitivity (06 to 11)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Clip
from privet.geometry import l2_ball, whole_space
from privet.lectures.claim import Finding
from privet.lectures.noisy_runs import noisy_run
from privet.lectures.registry import check
from privet.lectures.toy_problems import linear
from privet.noise import add_gaussian
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import FixedSize, OneRecord
from privet.solvers import GradientStep
from privet.solvers.descent import ReleaseRule, descend
from privet.sums import record_sum

Vector = NDArray[np.float64]


@check("06", mutant={"bias": 0.05})
def noisy_gradients(bias: float = 0.0) -> Finding:
    """Draw 200,000 noisy copies of one number from the library, and test mean and variance at five standard errors."""
    n, sigma, value = 200_000, 0.75, 3.25
    units = np.full(n, round(value * 4096), dtype=np.int64)
    random = fixed_seed_invalidates_guarantee(6)
    drawn = add_gaussian(units, step=2.0**-12, noise_stddev=sigma, random=random)
    mean_off = abs(float(drawn.mean()) - value - bias * sigma) / (sigma / math.sqrt(n))
    variance_off = abs(float(drawn.var()) / sigma**2 - 1.0) * math.sqrt(n / 2)
    return Finding.judged(
        mean_off < 5 and variance_off < 5,
        f"Mean {drawn.mean():.5f} of {value} and variance {drawn.var():.5f} of {sigma**2}: {mean_off:.1f} and "
        f"{variance_off:.1f} standard errors off.",
        mean=drawn.mean(),
        variance=drawn.var(),
        mean_standard_errors=mean_off,
        variance_standard_errors=variance_off,
    )


@check("07", mutant={"scale": 2.0})
def one_record_is_unbiased(scale: float = 1.0, full: bool = False) -> Finding:
    """Draw single records with the library's sampler; compare their mean gradient at five standard errors."""
    rng, random = np.random.default_rng(7), fixed_seed_invalidates_guarantee(7)
    rows, draws = rng.normal(size=(20, 3)), 200_000 if full else 4_000
    drawn = np.array([OneRecord().indices(20, step, random)[0] for step in range(draws)])  # type: ignore[index]
    standard_error = rows.std(axis=0) / math.sqrt(draws)
    off = float((np.abs(rows[drawn].mean(axis=0) - scale * rows.mean(axis=0)) / standard_error).max())
    return Finding.judged(
        off < 5,
        f"The mean of {draws:,} single-record gradients is {off:.1f} standard errors from the full gradient, at most.",
        draws=draws,
        standard_errors=off,
    )


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
    return Finding.judged(
        worst < 6,  # the means' kurtosis is below 3 plus a little: 6 standard errors of a normal's variance
        f"Variances of batch means of 1, 4, 16 and 64 records: {', '.join(f'{v:.5f}' for v in seen.values())}; within "
        f"{worst:.1f} standard errors of S²/m (1 − m/n).",
        standard_errors=worst,
        table=seen,
    )


def _residuals(release: ReleaseRule) -> tuple[Vector, Vector | None, Vector, float]:
    """Noise that the library put into 100 steps in 50 dimensions, with what it released."""
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(40, 50)) / 20
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
    deviation = float(np.sqrt(np.mean(drawn**2)))
    off = abs(deviation / (noise * sigma) - 1.0) * math.sqrt(2 * drawn.size)
    apart = float(np.abs(points.mean(axis=0) - average).max())
    return Finding.judged(
        off < 5 and apart < 1e-9,
        f"The noise in {drawn.size} coordinates has standard deviation {deviation:.6f} of {noise * sigma:.6f} "
        f"({off:.1f} standard errors), and the output is the mean of w_0 to w_{len(points) - 1} to {apart:.1e}.",
        noise_stddev=deviation,
        standard_errors=off,
        average_apart=apart,
    )


@check("10", mutant={"factor": 0.9})
def releasing_less_costs_no_more(factor: float = 1.0) -> Finding:
    """Find how the library's average and last iterate respond to each gradient, hence their μ against that of all."""
    T = 100

    def mu(release: ReleaseRule, steps: int) -> float:
        """μ of a linear image of `steps` gradients, in units of Δ/σ: |Σ weights| ÷ their l2 norm."""
        impulses = iter(np.eye(steps))
        path = descend(
            lambda _: next(impulses),
            start=np.zeros(steps),
            steps=steps,
            update=GradientStep(step_size=1.0),
            domain=whole_space(),
            release=release,
        )
        return float(abs(path.released.sum()) / np.linalg.norm(path.released))

    whole = math.sqrt(T)
    average, last = mu("average", T - 1) / whole, mu("last", T) / whole
    closed = math.sqrt(3 * (T - 1) / (2 * (2 * T - 1)))
    return Finding.judged(
        average <= factor and last <= factor * (1 + 1e-12) and abs(average - closed) < 1e-12,
        f"For a linear loss and T = {T} the last iterate has {last:.6f} of the transcript's μ, the average "
        f"{average:.6f}: never more than all of it.",
        last_of_all=last,
        average_of_all=average,
    )


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
    return Finding.judged(
        0.99 * claimed < max(moves) <= claimed and 0.99 * claimed < stacked / math.sqrt(T) <= claimed,
        f"Of 500 replacements of one of {n} records the worst moves the average by {max(moves):.6f}, where "
        f"2G/n = {2 * G / n:.6f}; {T} gradients together move by {stacked:.6f}, √T times that.",
        largest_move=max(moves),
        claimed=claimed,
        largest_move_of_all_steps=stacked,
    )
