"""Brown, lecture 13, section 3: three ways to bound gradients, and the noise of claim 3.2 (45 to 48)."""

from __future__ import annotations

import math

import numpy as np

from privet.accounting.theorems.gaussian_profile import epsilon_bounds, largest_mu, profile
from privet.clipping import Clip, Declared
from privet.lectures import Finding, check
from privet.lectures.grid import (
    PAIRS,
    exact_ratio,
    false_points,
    first_false_by_delta,
    least_ratio,
    scaled,
)
from privet.lectures.measures import Vector, apart, longest
from privet.lectures.noisy_runs import walk
from privet.lectures.toy_problems import pointwise
from privet.losses import HuberLoss, LinearRecords, LogisticLoss, SquaredLoss, gradient_bound, prediction_bound
from privet.problems import glm
from privet.sums import record_sum


@check("45", mutant={"power": 2.0})
def clipping(power: float = 1.0) -> Finding:
    """Clip vectors of all lengths, zero among them, with the library, and compare with the formula."""
    rng, L = np.random.default_rng(45), 1.5
    rows = rng.normal(size=(200, 4)) * np.geomspace(1e-3, 1e3, 200)[:, None]
    rows[0] = 0.0
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    formula = np.minimum(1.0, (L / np.maximum(norms, 1e-100)) ** power) * rows
    found = np.array([record_sum(row[None], rule=Clip(clip=L), max_records=1).value for row in rows])
    off, length = apart(found, formula), longest(found)
    told = (
        f"200 vectors of length 0 to {norms.max():.0f} are clipped as the formula says, to {off:.1e}; none is longer "
        f"than {L:g}, and 0 stays 0."
    )
    return Finding.judged(off < 1e-9 and length <= L and not found[0].any(), told, apart=off, longest=length)


@check("46", mutant={"factor": 2.0})
def bounded_data(factor: float = 1.0) -> Finding:
    """Search a regression's gradients over bounded records and parameters; halve the Lipschitz constant."""
    rng, X, Y, Theta = np.random.default_rng(46), 2.0, 3.0, 0.5
    x = rng.normal(size=(4000, 3))
    x *= X * rng.uniform(size=(4000, 1)) ** 0.2 / np.linalg.norm(x, axis=1, keepdims=True)
    x[0], theta = np.array([X, 0.0, 0.0]), np.array([Theta, 0.0, 0.0])
    y = rng.uniform(-Y, Y, size=4000)
    y[0] = -Y  # the worst corner: parallel, and the label on the other side
    length = longest(LinearRecords(loss=SquaredLoss()).gradients(theta, x, y))
    reach = prediction_bound(row_norm=X, coefficient_norm=Theta)
    proven = gradient_bound(SquaredLoss(label_bound=Y), row_norm=X, prediction_bound=reach)
    claimed = factor * X * (Y + X * Theta)
    mu = largest_mu(1.0, 1e-5) * length / claimed
    return Finding.judged(
        length <= claimed * (1 + 1e-12) and proven is not None and proven <= claimed * (1 + 1e-12),
        f"The longest gradient is {length:g}, where {claimed:g} is claimed. Noise calibrated with the claim for "
        f"(1, 1e-5) gives epsilon {epsilon_bounds(mu, 1e-5)[1]:.3f}, and delta {profile(mu, 1.0):.2g} at epsilon 1.",
        longest=length,
        claimed=claimed,
        true_epsilon=epsilon_bounds(mu, 1e-5)[1],
        true_delta=profile(mu, 1.0),
    )


@check("47", mutant={"constant": 0.5})
def by_fiat(constant: float = 1.0) -> Finding:
    """Declare a Lipschitz constant that is true, and one that is not, and see what the library then sums."""
    rng, n, L = np.random.default_rng(47), 50, constant * 1.0
    X = rng.normal(size=(n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y, theta = np.zeros(n), np.array([4.0, 0.0, 0.0])
    free = pointwise(LogisticLoss(), X, y)
    assumed = free.gradient_sum(theta, rule=Declared(lipschitz=L), max_records=n).value / n
    off = apart(assumed, free.plain_gradient(theta))
    length = longest(LinearRecords(loss=LogisticLoss()).gradients(theta, X, y))
    alone = pointwise(SquaredLoss(), [[1.0]], [1e6]).gradient_sum(np.zeros(1), rule=Declared(lipschitz=L)).value
    forced = float(np.linalg.norm(alone))
    proven = glm("logistic", X, y, row_norm=1.0).lipschitz
    told = (
        f"Logistic gradients of rows of length 1 are at most {length:.4f}; assuming {L:g} changes their average by "
        f"{off:.1e}. Where the assumption is false, a gradient of 2e6 counts as {forced:.6f}: privacy does not hang "
        "on it."
    )
    holds = length <= L and off < 1e-9 and forced <= L and proven == L
    return Finding.judged(holds, told, longest=length, changed_by=off, false_assumption_counts_as=forced)


def _average_of_copies(sign: float, sigma: float, n: int, steps: int, copies: int, rng: np.random.Generator) -> Vector:
    """Algorithm 1 on n − 1 Huber losses and one linear one of slope `sign`, in independent copies; its averages."""
    huber = HuberLoss(threshold=1.0)

    def gradient(theta: Vector) -> Vector:
        noise = sigma * rng.standard_normal(copies)
        return np.asarray(((n - 1) * huber.derivative(theta, 0.0) + sign) / n + noise, dtype=np.float64)

    return walk(gradient, size=copies, steps=steps - 1, step_size=n / (n - 1))


@check("48", mutant={"constant": math.sqrt(2)})
def claim_3_2(constant: float = 1.0, full: bool = False) -> Finding:
    """Hold claim 3.2's noise on 408 pairs against the exact accountant, and attack the average that is released."""
    multiplier = scaled("claim_3_2", constant)
    false = false_points(multiplier)
    below = [pair for pair in false if pair[0] <= 1]
    numbers = first_false_by_delta(multiplier)
    for e, d in ((1.0, 1e-5), (5.0, 1e-5), (10.0, 1e-5), (10.0, 1e-1), (1.0, 1e-12)):
        mu, name = 1.0 / multiplier(e, d), f"of_{e:g}_at_{d:.0e}"
        numbers[f"true_epsilon_{name}"] = epsilon_bounds(mu, d)[1]
        numbers[f"true_delta_{name}"] = profile(mu, e)
        numbers[f"ratio_{name}"] = exact_ratio(multiplier, e, d)
    rng, n, worst, copies = np.random.default_rng(48), 10_000, 0.0, 200_000 if full else 20_000
    for e, T in ((5.0, 50), (1.0, 400)):
        # Every iterate is −η(±1/n + z): nothing of the past is left, and the average is normal with (T − 1)/T of μ².
        predicted = math.sqrt((T - 1) / T) / multiplier(e, 1e-5)
        numbers[f"mu_of_average_{e:g}"] = predicted
        numbers[f"true_epsilon_of_average_{e:g}"] = epsilon_bounds(predicted, 1e-5)[1]
        numbers[f"true_delta_of_average_{e:g}"] = profile(predicted, e)
        if full or T == 50:
            sigma = 2 / n * math.sqrt(T) * multiplier(e, 1e-5)
            down, up = (_average_of_copies(sign, sigma, n, T, copies, rng) for sign in (1.0, -1.0))
            spread = math.sqrt((down.var() + up.var()) / 2)
            measured = float(up.mean() - down.mean()) / spread
            numbers[f"measured_mu_of_average_{e:g}"] = measured
            worst = max(worst, abs(measured - predicted) / math.sqrt((2 + predicted**2 / 4) / copies))
    return Finding.judged(
        not below and worst < 5,
        f"False at {len(false)} of {len(PAIRS)} points, {len(below)} of them with epsilon at most 1. Asked for 1, 5 "
        f"and 10 at delta = 1e-5 it gives {numbers['true_epsilon_of_1_at_1e-05']:.2f}, "
        f"{numbers['true_epsilon_of_5_at_1e-05']:.2f} and {numbers['true_epsilon_of_10_at_1e-05']:.1f}; even the "
        f"average alone gives {numbers['true_epsilon_of_average_5']:.2f} for 5 (its mu, measured: "
        f"{numbers['measured_mu_of_average_5']:.3f}, {worst:.1f} standard errors off).",
        within=bool(false),
        points=len(PAIRS),
        false_points=len(false),
        points_up_to_1=sum(e <= 1 for e, _ in PAIRS),
        false_points_up_to_1=len(below),
        least_ratio=least_ratio(multiplier),
        standard_errors=worst,
        table=numbers,
    )
