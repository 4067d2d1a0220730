"""Theorem 4.1's constant 2 is too small: Brown, lecture 13.

With the noise of claim 3.2 and T = n²ε² the theorem promises an excess of L|θ*|√(1 + 2 rank ln(1/δ))/(εn) for "an
appropriate learning rate". Here is a loss of one parameter, the same for all 50 records, for which no step size does
it. It falls gently, with slope 0.3, from the start at 0 to its minimum at −1, and rises with slope 1 beyond: noise
pushes a point up the gentle side and off the steep one, so that the average stays on the gentle side, about ησ²/2
above the minimum, and has |θ*|²/(2ηT) more for the way there. Both terms of the proof are then nearly equalities, and
it gives 4 rank where 2 rank is printed.

>>> for factor in (0.5, 1.0, 1.3, 2.0, 4.0):
...     print(f"{factor:.1f}  {valley_excess(factor):.3f}")
0.5  0.153
1.0  0.114
1.3  0.113
2.0  0.122
4.0  0.189
>>> f"printed {PRINTED.printed_risk:.4f}, derived {PRINTED.bound.value:.4f}"
'printed 0.0980, derived 0.1372'

Factors below 0.4 do not arrive: the mean moves by at most 0.3η a step, which leaves 0.3 (1 − 0.15 ηT), 0.167 or more.
Larger ones only spread further. The printed 2 rank would follow from noise L√(2T ln(1/δ))/(nε), that of records added
or removed; with one replaced it gives ε = 1.63 when asked for 1 at δ = 1e-5.
"""

import math
from typing import Any

import numpy as np

from privet.lectures import lectures_prescription
from privet.lectures.measures import Vector
from privet.lectures.noisy_runs import walk
from privet.lectures.toy_problems import BUDGET
from privet.losses import CustomLoss
from privet.losses.loss import Array

GENTLE, SOFT = 0.3, 0.002
PRINTED = lectures_prescription("theorem_4_1", n=50, d=1, rank=1, radius=1.0, lipschitz=1.0, budget=BUDGET)
"""The theorem's T = 2500 and noise for 50 records, epsilon 1 and delta 1e-5."""


def valley() -> CustomLoss:
    """A convex loss of slope −1 far left and 0.3 far right, with its minimum at z = −1 and Lipschitz constant 1.

    >>> bottom = valley().derivative(np.array([-1.0]), 0.0)
    >>> bool(abs(bottom[0]) < 1e-12), valley().lipschitz()
    (True, 1.0)
    """
    shift = 1.0 + SOFT * math.log(1 / GENTLE)

    def steepness(z: Any) -> Array:
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip((np.asarray(z) + shift) / SOFT, -700, 700))))

    return CustomLoss(
        value=lambda z, y: (
            SOFT * (1 + GENTLE) * np.logaddexp(0.0, (np.asarray(z) + shift) / SOFT) - (np.asarray(z) + shift)
        ),
        derivative=lambda z, y: (1 + GENTLE) * steepness(z) - 1.0,
        curvature=lambda z, y: (1 + GENTLE) * steepness(z) * (1 - steepness(z)) / SOFT,
        lipschitz_constant=1.0,
        smoothness_constant=(1 + GENTLE) / (4 * SOFT),
        convex=True,
    )


def mean_iterate(
    loss: CustomLoss, *, step_size: float, noise_stddev: float, steps: int, fineness: float = 1.0
) -> float:
    """E θ̄ of algorithm 1 on one parameter, by powers of its transition matrix on a grid of `fineness` × noise.

    >>> round(mean_iterate(valley(), step_size=0.01, noise_stddev=1.0, steps=2), 6)  # half of the first step
    -0.0015
    """
    noise = step_size * noise_stddev
    reach = 9 * noise_stddev * noise / 2  # nine scales of exp(−2 loss/(ησ²)), on either side
    z = np.arange(-1.0 - reach - 8 * noise, reach / GENTLE + 8 * noise, noise * fineness)
    z -= z[np.argmin(np.abs(z))]  # the start is on the grid
    centre = z - step_size * loss.derivative(z, 0.0)
    moves = np.exp(-0.5 * ((z - centre[:, None]) / noise) ** 2)
    moves /= moves.sum(axis=1, keepdims=True)
    total, power = np.zeros(len(z)), np.eye(len(z))  # Σ_{t<k} P^t z and P^k, doubled along the bits of `steps`
    bits = f"{steps:b}"
    for place, bit in enumerate(bits, start=1):
        total = total + power @ total
        power = power @ power if 1 < place < len(bits) else power  # at first it is 1, and after the last not needed
        if bit == "1":
            total = z + moves @ total
            power = moves @ power if place < len(bits) else power
    return float(total[np.argmin(np.abs(z))]) / steps


def step_size(factor: float) -> float:
    """`factor` × R/(σ√T), near which the proof's bound is least."""
    return factor / (PRINTED.noise_stddev * math.sqrt(PRINTED.steps))


def valley_excess(factor: float, *, fineness: float = 1.0) -> float:
    """The least that E loss(θ̄) − loss(θ*) can be at that step size: loss(E θ̄) − loss(θ*), by convexity.

    >>> valley_excess(1.0) > PRINTED.printed_risk
    True
    """
    loss = valley()
    sigma, steps = PRINTED.noise_stddev, PRINTED.steps
    middle = mean_iterate(loss, step_size=step_size(factor), noise_stddev=sigma, steps=steps, fineness=fineness)
    return float(loss.value(middle, 0.0) - loss.value(-1.0, 0.0))


def simulated_excess(factor: float, *, copies: int, seed: int) -> tuple[float, float]:
    """Mean excess of algorithm 1 in independent copies, and its standard error.

    >>> mean, error = simulated_excess(1.0, copies=200, seed=0)
    >>> abs(mean - valley_excess(1.0)) < 5 * error
    True
    """
    loss, rng = valley(), np.random.default_rng(seed)

    def gradient(theta: Vector) -> Vector:
        noise = PRINTED.noise_stddev * rng.standard_normal(copies)
        return np.asarray(loss.derivative(theta, 0.0) + noise, dtype=np.float64)

    averages = walk(gradient, size=copies, steps=PRINTED.steps - 1, step_size=step_size(factor))
    excess = loss.value(averages, 0.0) - loss.value(-1.0, 0.0)
    return float(excess.mean()), float(excess.std()) / math.sqrt(copies)
