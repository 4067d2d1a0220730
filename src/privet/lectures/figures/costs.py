"""Figures of the lectures' pages that show costs: what a rule gives, a secret batch saves, and composition adds up.

Each is computed when it is drawn, by the library and by the functions that the checks of `privet.lectures` call. The
house style is that of `privet.report.canvas`. Needs the extra `privet[plot]`.
"""

import math
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.theorems.gaussian_profile import epsilon_bounds
from privet.accounting.theorems.subsampling import amplified, shortcut_limit
from privet.lectures import rule
from privet.lectures.examples.one_record_a_step import against_full_batches
from privet.lectures.examples.privacy_loss import delta_of, loss_law, transformed
from privet.report.canvas import INK, canvas, styles
from privet.theory import exact_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DANGER = "#b3261e"
SIZE = (6.2, 4.6)  # small paper, so that letters can be read on a phone


def one_record_figure() -> "Figure":
    """Draw what one record a step costs, for noise of 0.5 to 8 sensitivities, where full batches cost the same.

    Promise: the points are `against_full_batches`, upper bounds of the contour accountant.

    >>> one_record_figure().axes[0].get_ylabel()
    'ε at δ = 1e-5 (nats)'
    """
    noises = [float(s) for s in np.geomspace(0.5, 8.0, 17)]
    costs, full = against_full_batches(noises), epsilon_bounds(1.0, 1e-5)[1]
    subtitle = "200 records; (noise · n)² steps of either kind"
    with canvas("One record a step, or all of them?", subtitle, size=SIZE) as (figure, axes):
        first, second = islice(styles(), 2)
        axes.plot(noises, list(costs.values()), marker="o", markersize=4, label="one record a step", **first)
        axes.axhline(full, label="all records in each step", **second)
        axes.set(xscale="log", yscale="log", xlabel="noise ÷ sensitivity of one record")
        axes.set(ylabel="ε at δ = 1e-5 (nats)")
        axes.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
        axes.set_yticks([5, 10, 20], ["5", "10", "20"])
        axes.minorticks_off()
        axes.legend()
    return figure


def asked_and_given_figure(*, delta: float = 1e-5) -> "Figure":
    """Draw the epsilon that three noise rules really give against the one they are asked for.

    Promise: every curve is `Rule.true_epsilon`, exact up to rounding. Above the diagonal a rule is not private.

    >>> [line.get_label() for line in asked_and_given_figure().axes[0].lines][1:]
    ['claim 3.2', 'with its √2 (lemma 1.1)', 'ρ by a quadratic equation']
    """
    at = np.geomspace(0.1, 20.0, 60)
    names = {"claim_3_2": "claim 3.2", "lemma_1_1": "with its √2 (lemma 1.1)", "rho": "ρ by a quadratic equation"}
    with canvas(
        "What is asked for, and what is given", f"one run at δ = {delta:.0e}".replace("e-0", "e-"), size=(6.2, 5.4)
    ) as (figure, axes):
        ends = (float(at[0]), float(at[-1]))
        axes.plot(ends, ends, color=INK, linewidth=1.2)
        axes.fill_between(ends, ends, (60.0, 60.0), color=DANGER, alpha=0.08, linewidth=0)
        axes.text(0.115, 25.0, "gives away more than asked:\nnot private", color=DANGER, va="top")
        for style, (key, label) in zip(styles(), names.items(), strict=False):
            given = [rule(key).true_epsilon(epsilon=float(e), delta=delta, steps=1) for e in at]
            axes.plot(at, given, label=label, **style)
        axes.set(xscale="log", yscale="log", xlabel="ε asked for (nats)", ylabel="ε given (nats)")
        axes.set(xlim=ends, ylim=(0.05, 45.0))
        axes.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        axes.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
        axes.legend(loc="lower right")
    return figure


def amplification_figure() -> "Figure":
    """Draw the amplified epsilon ÷ (rate × epsilon) against epsilon, by the lemma, with the lecture's shortcut of 2.

    Promise: the curves are `amplified`, which is tight; a dot is where the shortcut stops being true.

    >>> amplification_figure().axes[0].get_ylabel()
    'amplified ε ÷ (rate · ε)'
    """
    at = np.linspace(0.01, 5.0, 200)
    subtitle = "by the lemma, which is tight; dots: where the shortcut ends"
    with canvas("A secret batch costs rate · ε, nearly", subtitle, size=SIZE) as (figure, axes):
        axes.axhspan(2.0, 3.6, color=DANGER, alpha=0.08, linewidth=0)
        axes.axhline(2.0, color=INK, linewidth=1.2)
        axes.text(4.93, 3.5, "the shortcut 2 · rate · ε\npromises too little", color=DANGER, va="top", ha="right")
        for style, rate in zip(styles(), (0.001, 0.1, 0.25, 0.4, 0.8), strict=False):
            axes.plot(at, [amplified(float(e), 0.0, rate)[0] / (rate * e) for e in at], label=f"rate {rate:g}", **style)
            limit = shortcut_limit(rate)
            if limit < at[-1]:
                axes.plot(limit, 2.0, marker="o", color=style["color"], linestyle="none", zorder=3)
        axes.set(xlabel="ε of the step on its own batch (nats)", ylabel="amplified ε ÷ (rate · ε)")
        axes.set(xlim=(0, 5), ylim=(0.0, 3.6))
        axes.legend(loc="lower center", ncols=3)
    return figure


def privacy_loss_figure(*, rate: float = 0.1, noise: float = 2.0, epsilon: float = 1.0) -> "Figure":
    """Draw the density of the privacy loss after 10, 30 and 100 sampled steps, by FFT; in the legend, delta.

    Promise: the laws are `privacy_loss.transformed`, losses rounded to the nearest lattice point; add or remove.

    >>> privacy_loss_figure().axes[0].get_xlabel()
    'privacy loss (nats)'
    """
    pair = MixturePair(rate, 1.0 / noise, "remove")
    law = loss_law(pair, span=12.0, points=2**14, rounding="nearest")
    subtitle = f"batches at rate {rate:g}, noise multiplier {noise:g}; shaded: beyond ε = {epsilon:g}"
    with canvas("The privacy loss adds up", subtitle, size=SIZE) as (figure, axes):
        for style, steps in zip(styles(), (10, 30, 100), strict=False):
            total = transformed(law, steps)
            found = f"{steps} steps: δ = {delta_of(total, epsilon):.2g}"
            shown = (total.losses > -3) & (total.losses < 3)
            losses, density = total.losses[shown], total.masses[shown] / total.width
            axes.plot(losses, density, label=found, **style)
            axes.fill_between(losses, density, where=losses >= epsilon, color=style["color"], alpha=0.18, linewidth=0)
        axes.axvline(epsilon, color=INK, linewidth=1.2)
        axes.annotate("ε", (epsilon, axes.get_ylim()[1]), (4, -12), textcoords="offset points", color=INK)
        axes.set(xlabel="privacy loss (nats)", ylabel="density", xlim=(-3, 3))
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left")
    return figure


def variance_rule_figure(*, points: int = 60) -> "Figure":
    """Draw where, in (epsilon, delta), two printed noise rules are not private: rho as an equality, and 4d + 1.

    Promise: a point is shaded where the rule's noise is below `exact_noise`.

    >>> variance_rule_figure(points=8).axes[0].get_yscale()
    'log'
    """
    epsilons, deltas = np.geomspace(0.01, 10.0, points), np.geomspace(1e-12, 0.5, points)
    least = np.array([[_least(float(e), float(d)) for e in epsilons] for d in deltas])
    equality = np.array([[rule("rho_as_equality").multiplier(float(e), float(d), 1) for e in epsilons] for d in deltas])
    rho = np.array([[rule("rho").multiplier(float(e), float(d), 1) for e in epsilons] for d in deltas])
    regions = {
        "ρ = ε²/(k ln(1/δ)), claim 113": equality,
        "variance (4d + 1)/(n²ρ), d = 1, claim 115": math.sqrt(5 / 8) * rho,
        "the same, d = 2": math.sqrt(9 / 12) * rho,
    }
    subtitle = "shaded: the rule is not (ε, δ)-private"
    with canvas("Where the printed noise is too little", subtitle, size=SIZE) as (figure, axes):
        for style, (name, noise) in zip(styles(), regions.items(), strict=False):
            ratio = noise / least
            axes.contourf(epsilons, deltas, ratio, levels=[0.0, 1.0], colors=[style["color"]], alpha=0.16)
            axes.contour(
                epsilons, deltas, ratio, levels=[1.0], colors=[style["color"]], linestyles=[style["linestyle"]]
            )
            axes.plot([], [], label=name, **style)
        axes.set(xscale="log", yscale="log", xlabel="ε (nats)", ylabel="δ (probability)")
        axes.set_xticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
        axes.legend(loc="upper left", fontsize=9.5)
    return figure


def _least(epsilon: float, delta: float) -> float:
    return exact_noise(epsilon=epsilon, delta=delta, steps=1, sensitivity=1.0)
