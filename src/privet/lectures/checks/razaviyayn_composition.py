"""Razaviyayn, lecture 11, recap of composition: groups, basic, advanced, and tighter notions (72 to 75)."""

from __future__ import annotations

import math
from itertools import pairwise, product

from privet.accounting import Approximate, Gaussian, RandomizedResponse, compare, delta, epsilon
from privet.accounting.theorems.composition import Cost, advanced, basic, optimal_delta, optimal_epsilon
from privet.accounting.theorems.conversions import group, group_mu
from privet.accounting.theorems.gaussian_profile import delta_bounds, epsilon_bounds, largest_mu, profile
from privet.lectures import Finding, check
from privet.lectures.grid import DELTAS, PAIRS


@check("72", mutant={"constant": 0.5})
def group_privacy(constant: float = 1.0) -> Finding:
    """Compare the group's delta with the exact one of Gaussian noise, at 408 pairs and groups of 2, 3, 5 and 10."""
    ratios = {}
    for e, d in PAIRS:
        mu = largest_mu(e, d)
        for k in (2, 3, 5, 10):
            claimed = constant * group(e, d, k)[1]
            ratios[e, d, k] = claimed / profile(group_mu(mu, k), k * e) if claimed < 1 else math.inf
    false = sum(ratio < 1 - 1e-9 for ratio in ratios.values())
    claimed, true = constant * group(1.0, 1e-6, 10)[1], profile(group_mu(largest_mu(1.0, 1e-6), 10), 10.0)
    return Finding.judged(
        not false,
        f"False at {false} of {len(ratios)} points; nearly an equality where epsilon is small (claimed is "
        f"{min(ratios.values()):.7f} of the truth), but for (1, 1e-6) and 10 records it says {claimed:.3g} where "
        f"Gaussian noise gives {true:.2g}.",
        points=len(ratios),
        false_points=false,
        least_ratio=min(ratios.values()),
        claimed_for_10=claimed,
        true_for_10=true,
    )


@check("73", mutant={"factor": 0.9})
def basic_composition(factor: float = 1.0) -> Finding:
    """Compose worst-case steps of unlike epsilons exactly, and look up delta at the sum of the epsilons."""
    mixed = [Cost(0.1, 1e-6, 5), Cost(0.5, 0.0, 2), Cost(1.0, 1e-5)]
    gaps, worst = [], 0.0
    for run in (mixed, [Cost(1.0, 0.0, 3)], [Cost(0.5, 1e-3, 4), Cost(2.0, 1e-3)]):
        total, spent = basic(run)
        parts = [Approximate(epsilon=c.epsilon, delta=c.delta) * c.times for c in run]
        exact = delta(sum(parts[1:], start=parts[0]), epsilon=factor * total, neighbours="replace_one")
        gaps.append(exact - spent)
        worst = max(worst, exact)
    answers = epsilon(RandomizedResponse(epsilon=0.5) * 4, delta=1e-300, neighbours="replace_one")
    told = (
        f"At the sum of the epsilons three mixed runs have a delta of at most {worst:.6g}, {max(gaps):+.2g} over the "
        f"sum of their deltas; four answers of 0.5 cost {answers:.9f} in all."
    )
    # the Fourier accountant's bracket
    return Finding.judged(max(gaps) <= 1e-9, told, largest_excess=max(gaps), four_answers=answers)


@check("74", mutant={"in_exponent": 0.0, "beside": 1.0})
def advanced_composition(in_exponent: float = 1.0, beside: float = 0.0) -> Finding:
    """Look up the exact delta of randomised response at the formula's epsilon, for 480 steps, counts and deltas."""

    def total(e: float, t: int, d: float) -> float:
        return e * math.sqrt(2 * t * math.log(1 / d)) + t * e * math.expm1(e) / (math.exp(e + in_exponent) + beside)

    steps = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 5.0)
    grid = list(product(steps, (1, 10, 1_000, 100_000), DELTAS))
    false = [(e, t, d) for e, t, d in grid if optimal_delta(e, 0.0, t, epsilon=total(e, t, d)) > d * (1 + 1e-9)]
    said, large = total(0.3, 1000, 1e-5), total(1.0, 1000, 1e-5)
    return Finding.judged(
        not false,
        f"False at {len(false)} of {len(grid)} points. 1,000 steps of 0.3 at 1e-5: it says {said:.1f}, where delta is "
        f"{optimal_delta(0.3, 0.0, 1000, epsilon=said):.2g}; the optimum is "
        f"{optimal_epsilon(0.3, 0.0, 1000, delta=1e-5):.1f}, and with e^epsilon + 1 the formula says "
        f"{advanced([Cost(0.3, 0.0, 1000)], slack=1e-5)[0]:.1f}.",
        points=len(grid),
        false_points=len(false),
        least_false_epsilon_at_1000=min((e for e, t, _ in false if t == 1000), default=math.inf),
        least_false_epsilon_at_100000=min((e for e, t, _ in false if t == 100_000), default=math.inf),
        said=said,
        delta_there=optimal_delta(0.3, 0.0, 1000, epsilon=said),
        optimum=optimal_epsilon(0.3, 0.0, 1000, delta=1e-5),
        corrected=advanced([Cost(0.3, 0.0, 1000)], slack=1e-5)[0],
        said_for_1=large,
        delta_there_for_1=optimal_delta(1.0, 0.0, 1000, epsilon=large),
        optimum_for_1=optimal_epsilon(1.0, 0.0, 1000, delta=1e-5),
    )


@check("75", mutant={"sign": -1.0})
def tighter_notions(sign: float = 1.0) -> Finding:
    """Let all accountants account for the same Gaussian runs, and order them."""
    order = ("closed", "renyi", "zcdp", "advanced", "optimal")
    gaps, shown = list[float](), dict[str, float]()
    for noise, steps in ((5.0, 10), (20.0, 100), (50.0, 1_000)):
        found = compare(Gaussian(noise_multiplier=noise) * steps, delta=1e-5, neighbours="replace_one")
        shown = {name: float(found[name].epsilon or math.nan) for name in order}
        *costs, optimal = shown.values()
        gaps += [sign * (b - a) for a, b in pairwise(costs)] + [sign * (costs[-1] - optimal)]
    mu = 2 * math.sqrt(1_000) / 50
    off = abs(shown["closed"] / epsilon_bounds(mu, 1e-5)[1] - 1)
    return Finding.judged(
        min(gaps) >= 0 and off < 1e-9 and delta_bounds(mu, shown["closed"])[0] <= 1e-5,
        f"1,000 Gaussian steps cost {', '.join(f'{cost:.3f} ({name})' for name, cost in shown.items())}: each theorem "
        "is looser than the one before, and optimal composition is a little tighter than advanced.",
        least_gap=min(gaps),
        table={f"epsilon_{name}": cost for name, cost in shown.items()},
    )
