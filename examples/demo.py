"""Train private models on real data, then price a DP-SGD run: what it costs, what noise a target needs, what it means.

Run with `make demo`. Figures go to build/demo if matplotlib is installed.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from privet.accounting import Event, Gaussian, calibrate, compare, epsilon, guarantee
from privet.estimators import LogisticRegression
from privet.privacy import Neighbours
from privet.report import (
    accuracy_figure,
    comparison_figure,
    meaning,
    profile_figure,
    save,
    steps_figure,
    tradeoff_figure,
)

RECORDS, BATCH, EPOCHS, DELTA = 60_000, 256, 60, 1e-5
STEPS = EPOCHS * RECORDS // BATCH
NEIGHBOURS: Neighbours = "add_remove"
OUT = Path("build") / "demo"


def training(noise_multiplier: float, steps: int = STEPS) -> Event:
    """DP-SGD: `steps` noisy sums of clipped gradients, each over a Poisson batch of about BATCH records."""
    return Gaussian(noise_multiplier=noise_multiplier).poisson(rate=BATCH / RECORDS) * steps


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def digits() -> tuple[dict[float, list[float]], float, float]:
    """Accuracy on digits that scikit-learn ships, by epsilon; without privacy; of always guessing the commonest."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:1400], order[1400:]
    scores: dict[float, list[float]] = {}
    print("epsilon   accuracy on 397 digits kept apart (3 runs)")
    for budget in (0.5, 1.0, 2.0, 4.0, 8.0):
        # public facts: a pixel is 0 to 16, a label 0 to 9, and there are 1,400 rows
        models = [
            LogisticRegression(epsilon=budget, delta=DELTA, neighbours="zero_out", bounds=(0, 16), classes=range(10))
            for _ in range(3)
        ]
        scores[budget] = [model.fit(X[train], y[train]).score(X[test], y[test]) for model in models]
        print(f"{budget:7g}   {' '.join(f'{score:.3f}' for score in scores[budget])}")
        if budget == 1.0:
            statement = models[0].guarantee_
    plain = PlainLogisticRegression(max_iter=2000).fit(X[train] / 16, y[train]).score(X[test] / 16, y[test])
    floor = float(np.bincount(y[test]).max() / len(test))
    print(f"without   {plain:.3f}\nguessing  {floor:.3f}\n\nAt epsilon = 1:\n{statement}")
    return scores, plain, floor


def main() -> None:
    """Tell the story in five parts, then draw it."""
    heading("0. Private models of handwritten digits")
    scores, plain, floor = digits()

    run = training(noise_multiplier=1.1)
    print(f"\nNow a run of another library, to price: {run}")

    heading("1. What it costs")
    print(guarantee(run, delta=DELTA, neighbours=NEIGHBOURS).details)
    start = time.perf_counter()
    epsilon(run, delta=DELTA * 0.99, neighbours=NEIGHBOURS)  # another delta, so that no cache can answer
    print(f"(A second such question took {1e3 * (time.perf_counter() - start):.1f} ms.)")

    heading("2. What noise would reach epsilon = 1")
    noise = calibrate(training, epsilon=1.0, delta=DELTA, neighbours=NEIGHBOURS)
    reached = epsilon(training(noise), delta=DELTA, neighbours=NEIGHBOURS)
    print(f"A noise multiplier of {noise:.6f}; it costs epsilon = {reached:.9f}, on the safe side of 1.")

    heading("3. What other accountants would say of the same run")
    print(compare(run, delta=DELTA, neighbours=NEIGHBOURS))

    heading("4. What it means")
    print(meaning(run, delta=DELTA, neighbours=NEIGHBOURS))

    heading("Figures")
    if importlib.util.find_spec("matplotlib") is None:
        print('matplotlib is not installed: pip install "privet[plot]" to draw the figures.')
        return
    OUT.mkdir(parents=True, exist_ok=True)
    runs = {"noise 1.1": run, f"noise {noise:.2f}": training(noise)}
    figures = {
        "accuracy": accuracy_figure(
            scores, plain=plain, floor=floor, title="Handwritten digits", subtitle="1,400 private rows, 10 classes"
        ),
        "profile": profile_figure(runs, neighbours=NEIGHBOURS),
        "tradeoff": tradeoff_figure(runs, neighbours=NEIGHBOURS),
        "steps": steps_figure(training(1.1, steps=1), steps=STEPS, delta=DELTA, neighbours=NEIGHBOURS),
        "comparison": comparison_figure(run, delta=DELTA, neighbours=NEIGHBOURS),
    }
    for name, figure in figures.items():
        print(save(figure, OUT / f"{name}.png"))


if __name__ == "__main__":
    main()
