"""Brown, lecture 4, section 3: how far to clip, tuning the clip, stability, and clipping after averaging (61 to 64)."""

from __future__ import annotations

import math

import numpy as np

from privet.accounting import Gaussian, epsilon
from privet.clipping import Adaptive, Clip
from privet.lectures.claim import Finding
from privet.lectures.examples.clip_before_averaging import clip_before_or_after
from privet.lectures.registry import check
from privet.lectures.toy_problems import linear, pointwise
from privet.losses import LogisticLoss, SquaredLoss
from privet.noise import add_laplace
from privet.plan import Meter, gradient_plan
from privet.privacy import Budget
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import GradientStep, follow
from privet.solvers.gradient import PrivateGradient
from privet.solvers.plain_descent import projected_gradient_descent


@check("61", mutant={"sign": -1.0})
def bias_against_noise(sign: float = 1.0) -> Finding:
    """Descend on clipped gradients of nine 0s to each 10, without noise, with clips of 1 to 100; account for each."""
    labels = np.tile([0.0] * 9 + [10.0], 100)
    problem = pointwise(SquaredLoss(), np.ones((1000, 1)), labels)
    clips, bias, noise, ends = (1.0, 3.0, 9.0, 18.0, 40.0, 100.0), [], [], {}
    for clip in clips:
        path = projected_gradient_descent(problem, steps=80, step_size=0.4, bounding=Clip(clip=clip), release="last")
        ends[f"end_at_{clip:g}"] = float(path.released[0])
        bias.append(abs(float(path.released[0]) - 1.0))
        plan = gradient_plan(bounding=Clip(clip=clip), steps=10, records=1000, neighbours="replace_one")
        plan = plan.calibrated(Budget(epsilon=1.0, delta=1e-5))
        noise.append(PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(61))).noise_stddev)
    both = np.hypot(bias, noise)
    sweet = clips[int(np.argmin(both))]
    return Finding.judged(
        bool((sign * np.diff(bias) <= 1e-6).all() and (np.diff(noise) > 0).all()) and clips[0] < sweet < clips[-1],
        f"Descent should end at 1. Clipped at 1 it ends at {ends['end_at_1']:.4f}, at 9 {ends['end_at_9']:.4f}, from "
        f"18 on at {ends['end_at_18']:.4f}; noise grows from {noise[0]:.4f} to {noise[-1]:.3f} meanwhile, and both "
        f"together are least at {sweet:g}.",
        sweet_spot=sweet,
        noise_at_1=noise[0],
        noise_at_100=noise[-1],
        table=ends,
    )


@check("62", mutant={"paid": 0.0})
def tuned_clips_are_paid_for(paid: float = 1.0) -> Finding:
    """Compare gradient and count with one release, then learn a clip that starts 100 times too large."""
    steps, gradient, count = 100, 1.5, 10.0
    together = Gaussian(noise_multiplier=gradient) * steps + Gaussian(noise_multiplier=2 * count) * steps
    s = 1 / math.sqrt(1 / gradient**2 + paid / (2 * count) ** 2)
    costs = [
        epsilon(run, delta=1e-5, neighbours="zero_out") for run in (together, Gaussian(noise_multiplier=s) * steps)
    ]
    learns = Adaptive(clip=100.0, count_noise=count)
    rng = np.random.default_rng(62)
    rows = rng.normal(size=(400, 5)) * rng.uniform(0.1, 1.0, size=(400, 1))
    median = float(np.median(np.linalg.norm(rows, axis=1)))
    plan = gradient_plan(bounding=learns, noise_multiplier=s, steps=steps, records=400, neighbours="zero_out")
    meter = Meter(plan, random=fixed_seed_invalidates_guarantee(62))
    estimate = PrivateGradient(linear(rows), meter)
    for _ in range(steps):
        estimate(np.zeros(5))
    own, learnt = plan["gradients"].sum_multiplier, meter.rule("gradients").clip
    return Finding.judged(
        abs(costs[1] / costs[0] - 1) < 1e-6 and abs(own / gradient - 1) < 1e-9 and abs(learnt / median - 1) < 0.2,
        f"{steps} gradients with multiplier {gradient:g} and counts with {2 * count:g} cost epsilon {costs[0]:.6f}, "
        f"one release with {s:.6f} each {costs[1]:.6f}. The clip goes from 100 to {learnt:.3f}, where the "
        f"median norm is {median:.3f}.",
        epsilon_of_both=costs[0],
        epsilon_of_one=costs[1],
        learnt_clip=learnt,
        median_norm=median,
    )


@check("63", mutant={"noise": 0.0})
def stability(noise: float = 1.0, full: bool = False) -> Finding:
    """Learn labels that mean nothing, with noise and without, and compare errors on records seen and unseen."""
    rng, n, d, trials = np.random.default_rng(63), 20, 60, 200 if full else 25
    blank = gradient_plan(bounding=Clip(clip=1.0), steps=20, records=n, neighbours="replace_one")
    plan = blank.calibrated(Budget(epsilon=0.2, delta=1e-5))
    update = GradientStep(step_size=5.0)
    gaps = np.empty((trials, 2))
    for trial in range(trials):
        X, y = rng.normal(size=(n, d)) / math.sqrt(d), rng.integers(0, 2, size=n)
        problem, random = pointwise(LogisticLoss(), X, y), fixed_seed_invalidates_guarantee(trial)
        noisy = follow(plan, problem, delta=1e-5, update=update, release="last", random=random).coef
        plain = projected_gradient_descent(problem, steps=20, update=update, release="last").released
        for k, coef in enumerate((noisy, plain)):
            gaps[trial, k] = 0.5 - ((X @ coef > 0) != y).mean()  # on unseen records any rule is wrong half of the time
    chosen = gaps[:, 0 if noise > 0 else 1]
    gap, error = float(chosen.mean()), float(chosen.std()) / math.sqrt(trials)
    bound = math.exp(0.2) - 1 + 1e-5
    return Finding.judged(
        gap + 5 * error <= bound,
        f"With {n} records in {d} dimensions and labels at random, errors on seen and unseen records are {gap:.3f} "
        f"apart (standard error {error:.3f}), where epsilon = 0.2 allows {bound:.3f}; without noise they are "
        f"{gaps[:, 1].mean():.3f} apart.",
        gap=gap,
        gap_without_noise=gaps[:, 1].mean(),
        standard_error=error,
        allowed=bound,
    )


@check("64", mutant={"power": 0.5})
def before_or_after_averaging(power: float = 1.0) -> Finding:
    """Release a mean of 0.8 three ways at epsilon = 1, with the noise that the example's sensitivities ask for."""
    sizes, random, draws = (10, 100, 1000, 10_000), fixed_seed_invalidates_guarantee(64), 20_000
    numbers, worst = {}, 0.0
    for n in sizes:
        found = clip_before_or_after(n)
        for name, middle, moved, exact in (
            ("before", 0.8, found.moved_before, found.before),
            ("after", 0.8, found.moved_after, found.after),
            ("after_tightly", 1 / n, found.moved_after_tightly, found.after_tightly),
        ):
            units = np.full(draws, round(middle * 2.0**40), dtype=np.int64)
            released = add_laplace(units, step=2.0**-40, noise_scale=moved, random=random)
            error = float(np.abs(released - 0.8).mean())
            worst = max(
                worst, abs(error - exact) / (moved * math.sqrt(2 / draws))
            )  # |b + noise| has at most its variance
            numbers[f"moved_{name}_{n}"], numbers[f"error_{name}_{n}"] = moved, error
    before, after, tightly = (
        [numbers[f"error_{way}_{n}"] for n in sizes] for way in ("before", "after", "after_tightly")
    )
    falls = math.log(before[0] / before[-1]) / math.log(sizes[-1] / sizes[0])
    return Finding.judged(
        abs(falls - power) < 0.02 and worst < 5 and min(after) > 0.9 and min(tightly) > 0.6,
        f"For 10 to 10,000 records: clipped before averaging the error falls from {before[0]:.4f} to {before[-1]:.6f}, "
        f"like n^-{falls:.3f}; after, to [0, 1], it stays at {after[-1]:.2f}; after, to [0, 1/n], it goes from "
        f"{tightly[0]:.2f} to {tightly[-1]:.2f}.",
        power=falls,
        standard_errors=worst,
        table=numbers,
    )
