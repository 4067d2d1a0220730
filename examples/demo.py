"""Price one DP-SGD run from end to end: what it costs, what noise a target needs, what the number means.

Run with `make demo`. Figures go to build/demo if matplotlib is installed.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

from privet.accounting import Event, Gaussian, calibrate, compare, epsilon, guarantee
from privet.privacy import Neighbours
from privet.report import comparison_figure, meaning, profile_figure, save, steps_figure, tradeoff_figure

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


def main() -> None:
    """Tell the story in four parts, then draw it."""
    run = training(noise_multiplier=1.1)
    print(f"The run: {run}")

    heading("1. What it costs")
    print(guarantee(run, delta=DELTA, neighbours=NEIGHBOURS))
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
        "profile": profile_figure(runs, neighbours=NEIGHBOURS),
        "tradeoff": tradeoff_figure(runs, neighbours=NEIGHBOURS),
        "steps": steps_figure(training(1.1, steps=1), steps=STEPS, delta=DELTA, neighbours=NEIGHBOURS),
        "comparison": comparison_figure(run, delta=DELTA, neighbours=NEIGHBOURS),
    }
    for name, figure in figures.items():
        print(save(figure, OUT / f"{name}.png"))


if __name__ == "__main__":
    main()
