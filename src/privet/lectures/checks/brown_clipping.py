"""Brown, lecture 4, sections 1 and 2: adaptive composition, DP-GD, its noise and its sensitivity (54 to 60)."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privet.accounting import RandomizedResponse, epsilon
from privet.accounting.theorems.composition import Cost, basic
from privet.accounting.theorems.gaussian_profile import profile
from privet.clipping import Clip
from privet.geometry import l2_ball
from privet.lectures import Finding, check, rule
from privet.lectures.grid import EPSILONS, PAIRS, exact_ratio, false_points, first_falses, least_ratio, scaled
from privet.lectures.measures import Vector, apart, listed, measured_noise
from privet.lectures.noisy_runs import noisy_run
from privet.lectures.toy_problems import linear
from privet.problems import glm
from privet.sums import record_sum

STEPS = (1, 10, 1000, 100_000)


def _transcripts(questions: NDArray[np.int64], costs: tuple[float, ...], record: int) -> Vector:
    """Law of all transcripts of randomised responses; question k of step i is for the history whose bits are k."""
    laws = []
    for answers in product((0, 1), repeat=len(costs)):
        chance, history, first = 1.0, 0, 0
        for step, (answer, cost) in enumerate(zip(answers, costs, strict=True)):
            truth = questions[first + history, record]
            chance *= (math.exp(cost) if answer == truth else 1.0) / (1 + math.exp(cost))
            history, first = 2 * history + answer, first + 2**step
        laws.append(chance)
    return np.array(laws)


@check("54", mutant={"share": 0.9})
def adaptive_composition(share: float = 1.0) -> Finding:
    """Ask three randomised responses, each question chosen by the answers so far, and find the worst transcript."""
    costs, rng, worst = (0.1, 0.5, 1.0), np.random.default_rng(54), 0.0
    for trial in range(200):
        questions = rng.integers(0, 2, size=(7, 3))  # of three records, a truth for each history
        if trial == 0:
            questions[:] = 0, 1, 1
        laws = [np.log(_transcripts(questions, costs, record)) for record in range(3)]
        worst = max(worst, *(float((a - b).max()) for a, b in product(laws, laws)))
    total, delta = basic([Cost(cost) for cost in costs])
    claimed = share * math.fsum(costs)
    return Finding.judged(
        worst <= claimed * (1 + 1e-12) and delta == 0 and abs(total / claimed - 1) < 1e-12,
        f"Of 200 adaptive strategies against steps of {listed(costs, 'g')} the worst transcript "
        f"has a log ratio of {worst:.12g}; the library charges {total:.12g}.",
        worst_log_ratio=worst,
        charged=total,
    )


@check("55", mutant={"times": 1.9})
def two_steps(times: float = 2.0) -> Finding:
    """Compose 500 random pairs of private steps, the second chosen by the first's output, and the worst one."""
    rng, e, worst = np.random.default_rng(55), 0.7, 0.0

    def private() -> tuple[Vector, Vector]:
        """Laws of one release of three values under two data sets, of ratio at most e^0.7."""
        law = rng.dirichlet(np.ones(3))
        other = law * np.exp(rng.choice([-e / 2, e / 2], size=3))
        return law, other / other.sum()

    for _ in range(500):
        first, second = private(), [private() for _ in range(3)]
        for y, z in product(range(3), repeat=2):
            worst = max(worst, abs(math.log(first[0][y] / first[1][y] * second[y][0][z] / second[y][1][z])))
    alone, other = (_transcripts(np.array([[0, 1]] * 3), (e, e), record) for record in (0, 1))
    response = float(np.log(alone / other).max())
    charged = epsilon(RandomizedResponse(epsilon=e) * 2, delta=1e-30, neighbours="replace_one")
    told = (
        f"Two steps of {e:g} have a log ratio of at most {worst:.4f} in 500 random pairs, and of {response:.12g} for "
        f"two randomised responses: exactly 2 epsilon. The accountant charges {charged:.12g}."
    )
    holds = max(worst, response) <= times * e * (1 + 1e-12) and abs(charged / response - 1) < 1e-9
    return Finding.judged(holds, told, worst_of_random_pairs=worst, two_randomised_responses=response, charged=charged)


@check("56", mutant={"clip": 2.0})
def dp_gd_step(clip: float = 1.0) -> Finding:
    """Run DP-GD on records of all lengths, and test its steps against clipped averages at five standard errors."""
    rng, n, d, T, eta = np.random.default_rng(56), 40, 50, 100, 0.5
    rows = rng.normal(size=(n, d)) * np.geomspace(0.02, 2.0, n)[:, None] + 0.05
    found = noisy_run(
        linear(rows), bounding=Clip(clip=1.0), noise_multiplier=1.0, steps=T, step_size=eta, seed=56, release="all"
    )
    points, sigma = np.asarray(found.iterates), 1.0 / n
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    average = (np.minimum(1.0, clip / lengths) * rows).mean(axis=0)
    rest = (points[:-1] - points[1:]) / eta - average
    bias = float(np.abs(rest.mean(axis=0)).max()) / (sigma / math.sqrt(T))
    _, off = measured_noise(rest, sigma)
    told = (
        f"From 0, {T} steps are average clipped gradients plus noise: the mean of the rest is {bias:.1f} standard "
        f"errors from 0 at most, its deviation {off:.1f} from lambda; all {len(points)} points are released, the "
        f"start among them. Of {n} gradients {int((lengths > 1).sum())} are clipped."
    )
    holds = bias < 5 and off < 5 and len(points) == T + 1 and not points[0].any()
    return Finding.judged(holds, told, standard_errors_of_mean=bias, standard_errors_of_noise=off, points=len(points))


@check("57", mutant={"constant": 2.0})
def clip_is_a_projection(constant: float = 1.0) -> Finding:
    """Compare clipping by formula, by the library's clipped sum, and by its projection on a ball."""
    rng, gamma = np.random.default_rng(57), 0.8
    rows = rng.normal(size=(300, 3)) * np.geomspace(0.01, 100.0, 300)[:, None]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    formula = np.minimum(constant * gamma / lengths, 1.0) * rows
    ball = l2_ball(radius=gamma)
    projected = np.array([ball.project(row) for row in rows])
    summed = record_sum(rows, rule=Clip(clip=gamma), max_records=300).value
    off, total = apart(formula, projected), apart(formula.sum(axis=0), summed)
    before = np.linalg.norm(rows[1:] - rows[:-1], axis=1)
    after = np.linalg.norm(projected[1:] - projected[:-1], axis=1)
    stretch = float((after / before).max())
    told = (
        f"For 300 vectors of length up to {lengths.max():.0f} clipping is the projection on the ball of radius "
        f"{gamma:g} to {off:.1e}, and their sum the library's to {total:.1e}; no two vectors move apart (factor "
        f"{stretch:.3f} at most)."
    )
    return Finding.judged(
        off < 1e-12 and total < 1e-7 and stretch <= 1 + 1e-12, told, apart=off, sum_apart=total, largest_stretch=stretch
    )


@check("58", mutant={"constant": 0.5})
def claim_2_3(constant: float = 1.0) -> Finding:
    """Test claim 2.3's noise at 408 pairs and four numbers of steps, and within its range also at delta = 1/2."""
    at = {T: scaled("basic_composition", constant, T) for T in STEPS}
    false = {T: false_points(at[T]) for T in STEPS}
    stated = [(e, d) for e, d in (*PAIRS, *((e, 0.5) for e in EPSILONS)) if e <= 1]
    within = sum(len(false_points(at[T], stated)) for T in STEPS)
    ratios = {f"ratio_of_{T}_steps": exact_ratio(at[T], 1.0, 1e-5) for T in STEPS}
    beyond = sum(len(points) for points in false.values())
    told = (
        f"False at {within} of {len(STEPS) * len(stated)} points with epsilon at most 1, as stated, and at {beyond} of "
        f"{len(STEPS) * len(PAIRS)} up to 10. At (1, 1e-5) it has {listed(ratios.values(), '.3g')} "
        "times the noise needed, for 1, 10, 1e3 and 1e5 steps."
    )
    numbers: dict[str, float] = {"points": len(STEPS) * len(PAIRS), "false_points": beyond}
    numbers |= {"false_points_of_one_step": len(false[1]), "false_points_as_stated": within}
    numbers |= {"least_ratio": least_ratio(at[1])}
    return Finding.judged(within == 0, told, table=numbers | ratios | first_falses(at[1]))


@check("59", mutant={"power": 0.0})
def shares_of_the_budget(power: float = 1.0) -> Finding:
    """Split (epsilon, delta) into T shares, account for a step with its share exactly, and add up with the library."""
    worst_step = worst_sum = worst_rule = 0.0
    for T, e, d in product(STEPS, (0.01, 0.1, 0.5, 1.0), (1e-12, 1e-8, 1e-5, 1e-2, 0.5)):
        share = d / T**power
        noise = rule("basic_composition").multiplier(e / T, share, 1)
        worst_step = max(worst_step, profile(1 / noise, e / T) / share)
        total = basic([Cost(e / T, share, T)])
        worst_sum = max(worst_sum, total[0] / e, total[1] / d)
        worst_rule = max(worst_rule, abs(noise / rule("basic_composition").multiplier(e, d, T) - 1))
    told = (
        f"A step with claim 2.3's noise needs {worst_step:.3g} of its share of delta at most, and T shares add up to "
        f"{worst_sum:.6g} of the budget: the claim's noise to {worst_rule:.1e}."
    )
    holds = worst_step <= 1 and worst_sum <= 1 + 1e-12 and worst_rule < 1e-12
    return Finding.judged(holds, told, largest_share_needed=worst_step, sum_of_shares=worst_sum, rule_off=worst_rule)


@check("60", mutant={"constant": 0.5})
def sensitivity_of_clipped_averages(constant: float = 1.0) -> Finding:
    """Replace, zero out and remove a record at random and at worst, and see how far the clipped average moves."""
    rng, C, n = np.random.default_rng(60), 0.7, 12
    moves = {"replace_one": 0.0, "zero_out": 0.0, "add_remove": 0.0}
    for trial in range(150):
        X, y, theta = rng.normal(size=(n, 3)), rng.normal(size=n) * 3, rng.normal(size=3)
        y[0] *= 1e3 if trial % 2 else 1.0  # every other record is at worst, and its opposite takes its place
        other, empty = y.copy(), X.copy()
        other[0], empty[0] = (-y[0] if trial % 2 else rng.normal()), 0.0
        here, *there = (
            glm("half_squared", rows, labels, row_norm=10.0).gradient_sum(theta, rule=Clip(clip=C), max_records=n)
            for rows, labels in ((X, y), (X, other), (empty, y), (X[1:], y[1:]))
        )
        for name, total in zip(moves, there, strict=True):
            moves[name] = max(moves[name], float(np.linalg.norm(total.value - here.value)) / n)
    claimed = constant * 2 * C / n
    return Finding.judged(
        0.99 * claimed < moves["replace_one"] <= claimed and max(moves["zero_out"], moves["add_remove"]) <= C / n,
        f"One of {n} records replaced moves the clipped average by {moves['replace_one']:.6f} at worst, where 2C/n = "
        f"{2 * C / n:.6f}; zeroed out or removed, the divisor kept, by {moves['zero_out']:.6f} and "
        f"{moves['add_remove']:.6f}.",
        claimed=claimed,
        table={f"move_by_{name}": move for name, move in moves.items()},
    )
