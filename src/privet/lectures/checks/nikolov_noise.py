"""Nikolov, CSC2412: composition of Gaussians, sensitivity of logistic gradients, the noise they need (111 to 115)."""

from __future__ import annotations

import math
import statistics
from itertools import product

import numpy as np

from privet.accounting import Gaussian, epsilon
from privet.accounting.theorems.conversions import zcdp_epsilon
from privet.accounting.theorems.gaussian_profile import delta_bounds, epsilon_bounds, largest_mu, profile
from privet.lectures import Finding, check, rule
from privet.lectures.grid import PAIRS, Multiplier, exact_ratio, false_points, first_falses, scaled
from privet.lectures.measures import Vector
from privet.lectures.toy_problems import pointwise
from privet.losses import LogisticLoss, append_one, gradient_bound
from privet.theory import exact_noise, logistic_lipschitz

LOSS = LogisticLoss(labels="plus_minus_one")


@check("111", mutant={"power": 0.4})
def stacking_beats_basic_composition(power: float = 0.5) -> Finding:
    """Account for k releases with noise growing like sqrt(k), and see how fast that of basic composition grows."""
    e, d, ks = 1.0, 1e-5, (1, 10, 100, 10_000, 1_000_000)
    one = exact_noise(epsilon=e, delta=d, sensitivity=1.0)
    spent = [epsilon(Gaussian(noise_multiplier=one * k**power) * k, delta=d, neighbours="zero_out") for k in ks]
    basic = {k: 1 / (largest_mu(e / k, d / k) * one * math.sqrt(k)) for k in ks}  # each (epsilon/k, delta/k)-private
    slide = {k: rule("basic_composition").multiplier(e, d, k) / (one * math.sqrt(k)) for k in ks}
    growth = math.log(basic[10**6] / basic[100]) / math.log(10**4) + 0.5
    told = (
        f"{ks[-1]:,} releases with noise {one:.3f} k^{power:g} cost epsilon {max(spent):.6g} of {e:g}. Basic "
        f"composition takes {slide[100]:.1f} times that noise for k = 100 and {slide[10**6]:,.0f} times for 10^6 by a "
        f"rule with k sqrt(log k), and {basic[100]:.1f} and {basic[10**6]:,.0f} times if calibrated exactly, growing "
        f"like k^{growth:.3f}."
    )
    numbers = {"largest_epsilon": max(spent), "basic_at_100": basic[100], "basic_at_1000000": basic[10**6]}
    numbers |= {"basic_by_rule_at_100": slide[100], "basic_by_rule_at_1000000": slide[10**6], "growth_of_basic": growth}
    holds = max(spent) <= e * (1 + 1e-9) and growth > 0.99 and slide[100] > basic[100]
    return Finding.judged(holds, told, table=numbers)


def _selected(multiplier: Multiplier) -> dict[str, float]:
    """True delta, true epsilon and noise ÷ least noise at the audit's five pairs."""
    table = {}
    for e, d in ((1.0, 1e-5), (5.0, 1e-5), (10.0, 1e-5), (10.0, 0.1), (1.0, 1e-12)):
        mu, at = 1.0 / multiplier(e, d), f"at_{e:g}_{d:.0e}"
        table[f"true_delta_{at}"] = profile(mu, e)
        table[f"true_epsilon_{at}"] = epsilon_bounds(mu, d)[1]
        table[f"ratio_{at}"] = exact_ratio(multiplier, e, d)
    return table


def _counts(multiplier: Multiplier) -> dict[str, float]:
    """How often a rule is false on the audit's grid, and how its noise compares with the least."""
    false = false_points(multiplier)
    ratios = [exact_ratio(multiplier, e, d) for e, d in PAIRS]
    return {
        "points": len(PAIRS),
        "points_up_to_1": sum(e <= 1 for e, _ in PAIRS),
        "false_points": len(false),
        "false_points_up_to_1": sum(e <= 1 for e, _ in false),
        "least_ratio": min(ratios),
        "median_ratio": statistics.median(ratios),
        "largest_ratio": max(ratios),
    }


@check("112", mutant={"constant": 1.0})
def rho_rule(constant: float = 2.0) -> Finding:
    """Solve epsilon = k rho + sqrt(2 k rho ln(1/delta)) for rho, and hold it on 408 pairs, for k up to 100,000."""

    def multiplier(e: float, d: float) -> float:
        linear = math.sqrt(constant * math.log(1 / d))
        return (linear + math.sqrt(linear * linear + 4 * e)) / (2 * e)  # 1/sqrt(k rho)

    counts, shares = _counts(multiplier), []
    for k, (e, d) in product((10, 1000, 100_000), ((0.1, 1e-5), (1.0, 1e-5), (10.0, 1e-2))):
        run = Gaussian(noise_multiplier=math.sqrt(k) * multiplier(e, d)) * k
        shares.append(epsilon(run, delta=d, neighbours="zero_out") / e)
    half = max(zcdp_epsilon(0.5 / multiplier(e, d) ** 2, delta=d) / e for e, d in PAIRS)
    return Finding.judged(
        counts["false_points"] == 0 and max(shares) <= 1,
        f"False at {counts['false_points']} of {counts['points']} points; its noise is {counts['least_ratio']:.3f} to "
        f"{counts['largest_ratio']:.0f} times the least. Composed k times it spends at most {max(shares):.3f} of "
        f"epsilon; zCDP, whose rho is half of this one, proves up to {half:.4f} of it.",
        largest_share_of_epsilon=max(shares),
        largest_share_by_zcdp=half,
        distance_from_rule=max(abs(multiplier(e, d) / rule("rho").multiplier(e, d, 1) - 1) for e, d in PAIRS),
        table=counts | _selected(multiplier),
    )


@check("113", mutant={"constant": 2.0})
def rho_as_an_equality(constant: float = 1.0) -> Finding:
    """Take rho = epsilon^2/(k ln(1/delta)) at its word, and hold it on 408 pairs against the exact accountant."""
    multiplier = scaled("rho_as_equality", math.sqrt(constant))
    counts, truth = _counts(multiplier), _selected(multiplier)
    frontiers = first_falses(multiplier)
    return Finding.judged(
        counts["false_points_up_to_1"] == 0,
        f"False at {counts['false_points']} of {counts['points']} points, {counts['false_points_up_to_1']} of "
        f"{counts['points_up_to_1']} with epsilon up to 1. Asked for (1, 1e-5) it gives epsilon "
        f"{truth['true_epsilon_at_1_1e-05']:.3f}, for (10, 1e-5) {truth['true_epsilon_at_10_1e-05']:.1f}; at "
        f"delta = 1e-5 it is true up to {frontiers['first_false_at_1e-05']:.3g}.",
        within=counts["false_points"] > 0,
        table=counts | truth | frontiers,
    )


@check("114", mutant={"constant": 0.5})
def sensitivity_of_logistic_gradients(constant: float = 1.0) -> Finding:
    """Search for the longest logistic gradient on the cube, and for the replacement that moves the average most."""
    rng, d, n = np.random.default_rng(114), 4, 10
    G = constant * math.sqrt(d + 1)
    corners = append_one(np.array(list(product((-1.0, 1.0), repeat=d))))
    rest = append_one(rng.uniform(-1, 1, size=(n - 1, d)))

    def gradient(rows: Vector, labels: Vector, theta: Vector) -> Vector:
        return pointwise(LOSS, rows, labels).plain_gradient(theta)

    longest = moved = 0.0
    for _ in range(150):
        theta = rng.normal(size=d + 1) * 10.0 ** rng.uniform(-1, 2)
        slopes = np.concatenate([np.abs(LOSS.derivative(corners @ theta, y)) for y in (-1.0, 1.0)])
        longest = max(longest, float(slopes.max()) * math.sqrt(d + 1))
    for gap in (1.0, 0.1, 1e-2, 1e-3, 1e-4):  # nearly opposite rows that both have the wrong sign, far out
        theta = np.zeros(d + 1)
        theta[:2] = -20 / gap, 20 / gap
        one, other = np.ones(d + 1), np.ones(d + 1)
        one[1] -= gap  # y = +1: y<x, theta> = −20
        other[0] -= gap  # y = −1: y<x, theta> = −20, and the gradient points the other way
        runs = [
            gradient(np.vstack([rest, row]), np.append(np.ones(n - 1), y), theta)
            for row, y in ((one, 1.0), (other, -1.0))
        ]
        moved = max(moved, float(np.linalg.norm(runs[0] - runs[1])))
    bounds = (logistic_lipschitz(d=d), gradient_bound(LOSS, row_norm=math.sqrt(d + 1)) or math.inf)
    return Finding.judged(
        longest <= G * (1 + 1e-12) and moved <= 2 * G / n and math.isclose(bounds[0], G) and math.isclose(bounds[1], G),
        f"The longest of 4,800 gradients is {longest / math.sqrt(d + 1):.6f} of sqrt(d + 1), and the worst replacement "
        f"moves the average by {moved * n / (2 * math.sqrt(d + 1)):.6f} of 2 sqrt(d + 1)/n: approached, never passed. "
        f"In a ball of radius 1 the library proves {logistic_lipschitz(d=d, radius=1.0) / bounds[0]:.4f} of it.",
        longest_share=longest / math.sqrt(d + 1),
        largest_move_share=moved * n / (2 * math.sqrt(d + 1)),
        share_in_unit_ball=logistic_lipschitz(d=d, radius=1.0) / bounds[0],
    )


def _first_false(multiplier: Multiplier, delta: float) -> float:
    """The least epsilon in [0.001, 10] at which a rule is false, to 1e-6; infinite if there is none."""
    low = 1e-3
    for high in map(float, np.geomspace(1e-3, 10.0, 161)[1:]):
        if delta_bounds(1 / multiplier(high, delta), high)[0] > delta:
            while high / low > 1 + 1e-6:
                middle = math.sqrt(low * high)
                false = delta_bounds(1 / multiplier(middle, delta), middle)[0] > delta
                low, high = (low, middle) if false else (middle, high)
            return high
        low = high
    return math.inf


@check("115", mutant={"constant": 4.0})
def printed_variance(constant: float = 1.0) -> Finding:
    """Account for noise of variance (4d + 1)/(n^2 rho), rho by claim 112, on 408 pairs for d = 1, 2, 3."""

    def rule_for(d: int) -> Multiplier:
        return scaled("rho", math.sqrt((4 * d + constant) / (4 * (d + 1))))

    counts = _counts(rule_for(1))
    frontiers = {f"first_false_at_1e-{k:02d}": _first_false(rule_for(1), 10.0**-k) for k in (1, 5, 6, 8, 12)}
    more = {f"false_points_for_d_{d}": float(len(false_points(rule_for(d)))) for d in (2, 3)}
    told = (
        f"For d = 1 false at {counts['false_points']} of {counts['points']} points, {counts['false_points_up_to_1']} "
        f"of {counts['points_up_to_1']} with epsilon up to 1: at delta = 1e-8 from "
        f"{frontiers['first_false_at_1e-08']:.3g} on. For d = 2 at {more['false_points_for_d_2']:.0f}, for d = 3 at "
        f"{more['false_points_for_d_3']:.0f}, where the slack of claim 112 covers it."
    )
    return Finding.judged(counts["false_points"] == 0, told, table=counts | frontiers | more)
