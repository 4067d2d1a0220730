"""Figures of the lectures' pages that show runs: proven bounds beside them, rank, and what clipping does.

Each is computed when it is drawn, by the library and by the functions that the checks of `privet.lectures` call. The
house style is that of `privet.report.canvas`. Needs the extra `privet[plot]`.
"""

import math
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from privet.lectures.examples.clip_before_averaging import clip_before_or_after
from privet.lectures.examples.rank_and_projection import allowed, excess
from privet.lectures.noisy_runs import clipped_mean, noisy_run
from privet.lectures.toy_problems import average_loss, logistic_in_ball
from privet.privacy import Budget
from privet.problems import glm
from privet.report.canvas import FAINT, INK, canvas, styles
from privet.theory import average_iterate_bound, exact_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (6.2, 4.6)  # small paper, so that letters can be read on a phone


def risk_against_steps_figure(*, n: int = 1000, d: int = 10, max_steps: int = 3000, seeds: int = 3) -> "Figure":
    """Draw the excess risk of noisy descent against T, all runs (1, 1e-5)-private: the bound, its floor, and runs.

    Promise: the curve is `average_iterate_bound` with `exact_noise`, for radius and gradient bound 1; the dots are
    runs of a logistic regression in the unit ball, seeds fixed.

    >>> risk_against_steps_figure(n=100, d=2, max_steps=30, seeds=1).axes[0].get_xlabel()
    'T, iterates averaged'
    """
    budget, sensitivity = Budget(epsilon=1.0, delta=1e-5), 2.0 / n

    def noise(steps: int) -> float:
        return exact_noise(epsilon=budget.epsilon, delta=budget.delta, steps=max(1, steps - 1), sensitivity=sensitivity)

    def bound(steps: int) -> float:
        return average_iterate_bound(
            steps=steps, distance=1.0, lipschitz=1.0, d=d, noise_stddev=noise(steps), noisy_steps=steps - 1
        ).value

    exact, best = logistic_in_ball(n, d, seed=13)
    problem = glm("logistic", exact.X, exact.y, row_norm=1.0, domain=exact.domain)
    least = average_loss(exact, best)
    counts = sorted({round(float(t)) for t in np.geomspace(2, max_steps, 9)})
    runs = []
    for steps in counts:
        sigma, eta = noise(steps), 1 / math.sqrt(steps * (1 + d * noise(steps) ** 2))
        for seed in range(seeds):
            found = noisy_run(problem, noise_multiplier=sigma * n, steps=steps - 1, step_size=eta, seed=seed).coef
            runs.append((steps, average_loss(exact, found) - least))
    at = sorted({round(float(t)) for t in np.geomspace(2, 60 * max_steps, 80)})
    floor = math.sqrt(d) * exact_noise(epsilon=1.0, delta=1e-5, steps=1, sensitivity=sensitivity)
    subtitle = f"n = {n:,}, d = {d}, ε = 1, δ = 1e-5; R = G = 1"
    with canvas("More steps help, up to a floor", subtitle, size=SIZE) as (figure, axes):
        first, second = islice(styles(), 2)
        axes.plot(at, [bound(t) for t in at], label="proven, lemma 2.7", **first)
        axes.plot(*zip(*runs, strict=True), "o", color=second["color"], label="runs, logistic loss")
        axes.axhline(floor, color=FAINT, linewidth=1.4)
        axes.annotate("floor: R G √d · 2/(nμ)", (at[0], floor), (0, 5), textcoords="offset points", color="#555555")
        lectures = round(n * n / d)
        if at[0] < lectures < at[-1]:
            axes.plot(lectures, bound(lectures), marker="D", color=first["color"], linestyle="none")
            axes.annotate(
                "T of theorem 2.6,\nε²n²/d", (lectures, bound(lectures)), (-4, 12), textcoords="offset points",
                ha="right", color=INK,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="T, iterates averaged", ylabel="excess risk (loss units)")
        axes.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
        axes.minorticks_off()
        axes.legend(loc="upper right")
    return figure


def rank_figure(*, dimensions: tuple[int, ...] = (5, 10, 20, 50, 100, 200, 500, 1000, 2000), runs: int = 4) -> "Figure":
    """Draw the excess on 300 records of rank 5 laid into more and more dimensions, with projection and without.

    Promise: the points are `rank_and_projection.excess`, means of runs with fixed seeds; the line is `rank_bound`.

    >>> rank_figure(dimensions=(5, 50), runs=1).axes[0].get_xlabel()
    'd, dimensions'
    """
    subtitle = "records of rank 5, n = 300, ε = 1, δ = 1e-5"
    with canvas("Rank counts, unless one projects", subtitle, size=SIZE) as (figure, axes):
        for style, projected in zip(styles(), (False, True), strict=False):
            values = [excess(d, projected=projected, runs=runs) for d in dimensions]
            name = "projected on a ball" if projected else "not projected"
            axes.plot(dimensions, values, marker="o", label=name, **style)
        axes.axhline(allowed(), color=FAINT, linewidth=1.4)
        axes.annotate(
            "proven without projection, for every d", (dimensions[0], allowed()), (0, -14), textcoords="offset points",
            color="#555555",
        )  # fmt: skip
        axes.set(xscale="log", xlabel="d, dimensions", ylabel="excess risk (loss units)", ylim=(0, 1.08 * allowed()))
        axes.legend(loc="center right")
    return figure


def clip_figure(*, points: int = 25) -> "Figure":
    """Draw bias, noise and both together against the clip, on nine 0s to each 10 whose mean is 1.

    Promise: the points are `clipped_mean`, its end less 1, and its noise, for (1, 1e-5) and 1,000 records.

    >>> clip_figure(points=2).axes[0].get_xlabel()
    'clip (norm of a gradient)'
    """
    clips = np.geomspace(1.0, 100.0, points).tolist()
    ends, noise = np.transpose([clipped_mean(clip) for clip in clips])
    bias = np.abs(ends - 1.0)
    curves = {"bias": bias, "noise": noise, "both (root of squares)": np.hypot(bias, noise)}
    subtitle = "900 records of 0, 100 of 10: the mean is 1; ten steps at ε = 1"
    with canvas("Too low a clip is wrong, too high is noisy", subtitle, size=SIZE) as (figure, axes):
        for style, (name, values) in zip(styles(), curves.items(), strict=False):
            axes.plot(clips, values, label=name, **style)
        axes.set(xscale="log", xlabel="clip (norm of a gradient)", ylabel="error of the mean", ylim=(0, 1.6))
        axes.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
        axes.minorticks_off()
        axes.legend(loc="upper center")
    return figure


def averaging_figure() -> "Figure":
    """Draw the error of a private mean of 0.8 against n: numbers clipped before averaging, or their average after.

    Promise: the values are those of `clip_before_or_after`, exact, at epsilon = 1.

    >>> len(averaging_figure().axes[0].lines)
    3
    """
    sizes = sorted({5 * round(float(n) / 5) for n in np.geomspace(10, 10_000, 25)})
    found = [clip_before_or_after(n) for n in sizes]
    ways = {
        "each clipped, then averaged": [way.before for way in found],
        "averaged, then clipped to [0, 1]": [way.after for way in found],
        "averaged, then clipped to [0, 1/n]": [way.after_tightly for way in found],
    }
    with canvas("Clip before averaging", "a mean of 0.8 with Laplace noise, ε = 1", size=SIZE) as (figure, axes):
        for style, (name, values) in zip(styles(), ways.items(), strict=False):
            axes.plot(sizes, values, label=name, **style)
        axes.set(xscale="log", yscale="log", xlabel="n, records", ylabel="expected error", ylim=(5e-5, 3))
        axes.legend(loc="lower left")
    return figure
