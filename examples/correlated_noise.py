"""Independent against correlated noise at equal budgets, on made-up data: excess loss of ten passes of private SGD.

Logistic regression on 20,000 made-up records of 50 columns, 1,000 steps of 200 records, the last iterate; the best of
four step sizes, the mean over eight seeds. Prints the table of docs/correlated-noise.md in some four minutes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privet import Budget, follow, glm
from privet.clipping import Clip
from privet.noise import Strategy, banded_inverse_square_root, optimised_bands
from privet.plan import gradient_plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import CyclicPoisson, Poisson, Sampling, Strided
from privet.solvers import GradientStep

RECORDS, COLUMNS, BATCH, STEPS, SEEDS = 20_000, 50, 200, 1_000, 8
RATE, BANDS = BATCH / RECORDS, RECORDS // BATCH
WAYS: dict[str, tuple[Sampling, Strategy | None]] = {
    "independent, in turn": (Strided(batch=BATCH), None),
    "independent, Poisson": (Poisson(sampling_rate=RATE), None),
    "BISR, in turn": (Strided(batch=BATCH), banded_inverse_square_root(BANDS)),
    "optimised, in turn": (Strided(batch=BATCH), optimised_bands(BANDS, steps=STEPS)),
    "10 bands, cyclic Poisson": (
        CyclicPoisson(sampling_rate=10 * RATE, groups=10),
        optimised_bands(10, steps=STEPS),
    ),
}
Matrix = NDArray[np.float64]


def made_up() -> tuple[Matrix, Matrix]:
    """Rows on the unit sphere, labels of a logistic model."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(RECORDS, COLUMNS))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    truth = 3 * rng.normal(size=COLUMNS)
    return rows, (rng.random(RECORDS) < 1 / (1 + np.exp(-rows @ truth))).astype(float)


def loss(theta: Matrix, rows: Matrix, labels: Matrix) -> float:
    """The mean logistic loss."""
    scores = rows @ theta
    return float(np.mean(np.logaddexp(0.0, scores) - labels * scores))


def least(rows: Matrix, labels: Matrix) -> float:
    """The least loss, by Newton's method, without privacy."""
    theta = np.zeros(COLUMNS)
    for _ in range(20):
        chances = 1 / (1 + np.exp(-rows @ theta))
        curvature = (rows * (chances * (1 - chances))[:, None]).T @ rows
        theta -= np.linalg.solve(curvature, rows.T @ (chances - labels))
    return loss(theta, rows, labels)


def main() -> None:
    """Print the table."""
    rows, labels = made_up()
    problem, best = glm("logistic", rows, labels, row_norm=1.0), least(rows, labels)
    for epsilon in (1.0, 4.0, 8.0):
        for name, (sampling, strategy) in WAYS.items():
            plan = gradient_plan(
                bounding=Clip(clip=1.0),
                steps=STEPS,
                records=RECORDS,
                neighbours="zero_out",
                sampling=sampling,
                correlation=strategy,
            ).calibrated(Budget(epsilon=epsilon, delta=1e-6))
            found = []
            for step_size in (1.0, 2.0, 4.0, 8.0):
                update = GradientStep(step_size=step_size)
                runs = [
                    follow(
                        plan,
                        problem,
                        delta=1e-6,
                        update=update,
                        release="last",
                        random=fixed_seed_invalidates_guarantee(seed),
                    )
                    for seed in range(SEEDS)
                ]
                found.append(np.mean([loss(run.coef, rows, labels) - best for run in runs]))
            noise = plan["gradients"].noise_multiplier
            print(f"epsilon {epsilon:g}  {name:<25} noise {noise:6.3f}  excess loss {min(found):.5f}", flush=True)


if __name__ == "__main__":
    main()
