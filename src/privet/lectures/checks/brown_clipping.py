"""Brown, lecture 4: composition, DP-GD, its noise and sensitivity, how far to clip, and when (54 to 64)."""

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privet.accounting import RandomizedResponse, epsilon
from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.elementary import GaussianPair
from privet.accounting.theorems.composition import Cost, basic
from privet.accounting.theorems.gaussian_profile import profile
from privet.clipping import Adaptive, Clip
from privet.geometry import l2_ball
from privet.lectures import Finding, check, rule
from privet.lectures.examples.clip_before_averaging import clip_before_or_after
from privet.lectures.grid import EPSILONS, PAIRS, exact_ratio, false_points, first_falses, least_ratio, scaled
from privet.lectures.measures import Vector, apart, listed, measured_noise
from privet.lectures.noisy_runs import clipped_mean, noisy_run
from privet.lectures.toy_problems import linear, pointwise
from privet.losses import LogisticLoss
from privet.noise import add_laplace
from privet.plan import Meter, gradient_plan
from privet.privacy import Budget
from privet.problems import glm
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import GradientStep, follow
from privet.solvers.gradient import PrivateGradient
from privet.solvers.plain_descent import projected_gradient_descent
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
    told = f"""Of 200 adaptive strategies against steps of {listed(costs, "g")} the worst transcript has a log ratio of
        {worst:.12g}; the library charges {total:.12g}."""
    holds = worst <= claimed * (1 + 1e-12) and delta == 0 and abs(total / claimed - 1) < 1e-12
    return Finding.judged(holds, told, worst_log_ratio=worst, charged=total)


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
    told = f"""Two steps of {e:g} have a log ratio of at most {worst:.4f} in 500 random pairs, and of {response:.12g}
        for two randomised responses: exactly 2 epsilon. The accountant charges {charged:.12g}."""
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
    rest = (points[:-1] - points[1:]) / eta - (np.minimum(1.0, clip / lengths) * rows).mean(axis=0)
    bias, off = apart(rest.mean(axis=0)) / (sigma / math.sqrt(T)), measured_noise(rest, sigma)[1]
    told = f"""From 0, {T} steps are average clipped gradients plus noise: the mean of the rest is {bias:.1f} standard
        errors from 0 at most, its deviation {off:.1f} from lambda; all {len(points)} points are released, the start
        among them. Of {n} gradients {int((lengths > 1).sum())} are clipped."""
    holds = bias < 5 and off < 5 and len(points) == T + 1 and not points[0].any()
    return Finding.judged(holds, told, standard_errors_of_mean=bias, standard_errors_of_noise=off, points=len(points))


@check("57", mutant={"constant": 2.0})
def clip_is_a_projection(constant: float = 1.0) -> Finding:
    """Compare clipping by formula, by the library's clipped sum, and by its projection on a ball."""
    rng, gamma = np.random.default_rng(57), 0.8
    rows = rng.normal(size=(300, 3)) * np.geomspace(0.01, 100.0, 300)[:, None]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    formula = np.minimum(constant * gamma / lengths, 1.0) * rows
    projected = np.array([l2_ball(radius=gamma).project(row) for row in rows])
    summed = record_sum(rows, rule=Clip(clip=gamma), max_records=300).value
    off, total = apart(formula, projected), apart(formula.sum(axis=0), summed)
    before, after = (np.linalg.norm(np.diff(points, axis=0), axis=1) for points in (rows, projected))
    stretch = float((after / before).max())
    told = f"""For 300 vectors of length up to {lengths.max():.0f} clipping is the projection on the ball of radius
        {gamma:g} to {off:.1e}, and their sum the library's to {total:.1e}; no two vectors move apart (factor
        {stretch:.3f} at most)."""
    holds = off < 1e-12 and total < 1e-7 and stretch <= 1 + 1e-12
    return Finding.judged(holds, told, apart=off, sum_apart=total, largest_stretch=stretch)


@check("58", mutant={"constant": 0.5})
def claim_2_3(constant: float = 1.0) -> Finding:
    """Test claim 2.3's noise at 408 pairs and four numbers of steps, and within its range also at delta = 1/2."""
    at = {T: scaled("basic_composition", constant, T) for T in STEPS}
    false = {T: false_points(at[T]) for T in STEPS}
    stated = [(e, d) for e, d in (*PAIRS, *((e, 0.5) for e in EPSILONS)) if e <= 1]
    within = sum(len(false_points(at[T], stated)) for T in STEPS)
    ratios = {f"ratio_of_{T}_steps": exact_ratio(at[T], 1.0, 1e-5) for T in STEPS}
    beyond = sum(len(points) for points in false.values())
    told = f"""False at {within} of {len(STEPS) * len(stated)} points with epsilon at most 1, as stated, and at {beyond}
        of {len(STEPS) * len(PAIRS)} up to 10. At (1, 1e-5) it has {listed(ratios.values(), ".3g")} times the noise
        needed, for 1, 10, 1e3 and 1e5 steps."""
    numbers: dict[str, float] = {"points": len(STEPS) * len(PAIRS), "false_points": beyond}
    numbers |= {"false_points_of_one_step": len(false[1]), "false_points_as_stated": within}
    numbers |= {"least_ratio": least_ratio(at[1])}
    return Finding.judged(within == 0, told, table=numbers | ratios | first_falses(at[1]))


@check("59", mutant={"power": 0.5})
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
    told = f"""A step with claim 2.3's noise needs {worst_step:.3g} of its share of delta at most, and T shares add up
        to {worst_sum:.6g} of the budget: the claim's noise to {worst_rule:.1e}."""
    holds = worst_step <= 1 and worst_sum <= 1 + 1e-12 and worst_rule < 1e-12
    return Finding.judged(holds, told, largest_share_needed=worst_step, sum_of_shares=worst_sum, rule_off=worst_rule)


@check("60", mutant={"constant": 0.5})
def sensitivity_of_clipped_averages(constant: float = 1.0, full: bool = False) -> Finding:
    """Replace, zero out and remove a record at random and at worst, and see how far the clipped average moves."""
    rng, C, n = np.random.default_rng(60), 0.7, 12
    moves = {"replace_one": 0.0, "zero_out": 0.0, "add_remove": 0.0}
    for trial in range(150 if full else 60):
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
    told = f"""One of {n} records replaced moves the clipped average by {moves["replace_one"]:.6f} at worst, where 2C/n
        = {2 * C / n:.6f}; zeroed out or removed, the divisor kept, by {moves["zero_out"]:.6f} and
        {moves["add_remove"]:.6f}."""
    holds = 0.99 * claimed < moves["replace_one"] <= claimed and max(moves["zero_out"], moves["add_remove"]) <= C / n
    return Finding.judged(holds, told, claimed=claimed, table={f"move_by_{name}": move for name, move in moves.items()})


@check("61", mutant={"power": 0.5})
def bias_against_noise(power: float = 1.0) -> Finding:
    """Descend on clipped gradients of nine 0s to each 10, without noise, with clips of 1 to 100; account for each."""
    clips = (1.0, 3.0, 9.0, 18.0, 40.0, 100.0)
    reached, noise = np.transpose([clipped_mean(clip) for clip in clips])
    ends, bias = {f"end_at_{clip:g}": end for clip, end in zip(clips, reached, strict=True)}, np.abs(reached - 1.0)
    sweet = clips[int(np.argmin(np.hypot(bias, noise)))]
    told = f"""Descent should end at 1. Clipped at 1 it ends at {ends["end_at_1"]:.4f}, at 9 {ends["end_at_9"]:.4f},
        from 18 on at {ends["end_at_18"]:.4f}; noise grows from {noise[0]:.4f} to {noise[-1]:.3f} meanwhile, and both
        together are least at {sweet:g}."""
    growth = math.log(noise[-1] / noise[0]) / math.log(clips[-1] / clips[0])
    holds = bool((np.diff(bias) <= 1e-6).all()) and abs(growth - power) < 1e-3 and clips[0] < sweet < clips[-1]
    numbers = {"sweet_spot": sweet, "noise_at_1": noise[0], "noise_at_100": noise[-1], "power_of_noise": growth}
    return Finding.judged(holds, told, table=numbers | ends)


@check("62", mutant={"paid": 0.5})
def tuned_clips_are_paid_for(paid: float = 1.0) -> Finding:
    """Convolve the losses of gradients and counts against one release, then learn a clip, 100 times too large."""
    steps, gradient, count, shares = 100, 1.5, 10.0, []

    def one(gradient: float, count: float) -> float:
        return 1 / math.sqrt(1 / gradient**2 + paid / (2 * count) ** 2)

    for z, c, times, e in ((gradient, count, steps, 50.0), (4.0, 2.0, 30, 5.0), (2.0, 0.5, 10, 20.0)):
        parts = [(GaussianPair(1 / z), times), (GaussianPair(1 / (2 * c)), times)]  # a count moves by 1/2
        low, high = fourier_delta(parts, e, rtol=1e-4)
        shares.append((profile(math.sqrt(times) / one(z, c), e), low, high))
    s, (alone, *costs) = one(gradient, count), shares[0]
    kept = all(low <= priced <= high for priced, low, high in shares)
    rng, learns = np.random.default_rng(62), Adaptive(clip=100.0, count_noise=count)
    rows = rng.normal(size=(400, 5)) * rng.uniform(0.1, 1.0, size=(400, 1))
    median = float(np.median(np.linalg.norm(rows, axis=1)))
    plan = gradient_plan(bounding=learns, noise_multiplier=s, steps=steps, records=400, neighbours="zero_out")
    meter = Meter(plan, random=fixed_seed_invalidates_guarantee(62))
    estimate = PrivateGradient(linear(rows), meter)
    for _ in range(steps):
        estimate(np.zeros(5))
    own, learnt = plan["gradients"].sum_multiplier, meter.rule("gradients").clip
    told = f"""{steps} gradients with multiplier {gradient:g} and counts with {2 * count:g} have delta {costs[0]:.6g} to
        {costs[1]:.6g} at epsilon 50 by convolution, one release with {s:.6f} each {alone:.6g}; likewise for 30 steps
        with 4 and 4, and 10 with 2 and 1. The clip goes from 100 to {learnt:.3f}, where the median norm is
        {median:.3f}."""
    numbers = {"delta_of_both": costs[1], "delta_of_one": alone, "learnt_clip": learnt, "median_norm": median}
    holds = kept and abs(own / gradient - 1) < 1e-9 and abs(learnt / median - 1) < 0.2
    return Finding.judged(holds, told, table=numbers)


@check("63", mutant={"noise": 0.0})
def stability(noise: float = 1.0, full: bool = False) -> Finding:
    """Learn labels that mean nothing, with noise and without, and compare errors on records seen and unseen."""
    rng, n, d, trials = np.random.default_rng(63), 20, 60, 200 if full else 25
    blank = gradient_plan(bounding=Clip(clip=1.0), steps=20, records=n, neighbours="replace_one")
    plan, update = blank.calibrated(Budget(epsilon=0.2, delta=1e-5)), GradientStep(step_size=5.0)
    gaps = np.empty((trials, 2))
    for trial in range(trials):
        X, y = rng.normal(size=(n, d)) / math.sqrt(d), rng.integers(0, 2, size=n)
        problem, random = pointwise(LogisticLoss(), X, y), fixed_seed_invalidates_guarantee(trial)
        noisy = follow(plan, problem, delta=1e-5, update=update, release="last", random=random).coef
        plain = projected_gradient_descent(problem, steps=20, update=update, release="last").released
        for k, coef in enumerate((noisy, plain)):
            gaps[trial, k] = 0.5 - ((X @ coef > 0) != y).mean()  # on unseen records any rule is wrong half of the time
    chosen = gaps[:, 0 if noise > 0 else 1]
    gap, error, bound = float(chosen.mean()), float(chosen.std()) / math.sqrt(trials), math.exp(0.2) - 1 + 1e-5
    told = f"""With {n} records in {d} dimensions and labels at random, errors on seen and unseen records are {gap:.3f}
        apart (standard error {error:.3f}), where epsilon = 0.2 allows {bound:.3f}; without noise they are
        {gaps[:, 1].mean():.3f} apart."""
    numbers = {"gap": gap, "gap_without_noise": gaps[:, 1].mean(), "standard_error": error, "allowed": bound}
    return Finding.judged(gap + 5 * error <= bound, told, table=numbers)


@check("64", mutant={"power": 0.5})
def before_or_after_averaging(power: float = 1.0) -> Finding:
    """Release a mean of 0.8 three ways, for n and epsilon, with the noise that the example's sensitivities ask for."""
    sizes, random, draws = (10, 100, 1000, 10_000), fixed_seed_invalidates_guarantee(64), 20_000
    numbers, worst = {}, 0.0
    for n, e in (*((n, 1.0) for n in sizes), (100, 0.1), (100, 10.0)):
        found = clip_before_or_after(n, e)
        for name, middle, moved, exact in (
            ("before", 0.8, found.moved_before, found.before),
            ("after", 0.8, found.moved_after, found.after),
            ("after_tightly", 1 / n, found.moved_after_tightly, found.after_tightly),
        ):
            units = np.full(draws, round(middle * 2.0**40), dtype=np.int64)
            error = float(np.abs(add_laplace(units, step=2.0**-40, noise_scale=moved / e, random=random) - 0.8).mean())
            off = abs(error - exact) / (moved / e * math.sqrt(2 / draws))  # |b + noise| has at most its variance
            worst = max(worst, off)
            at = f"{name}_{n}" if e == 1.0 else f"{name}_{n}_at_{e:g}".replace(".", "_")
            numbers[f"moved_{at}"], numbers[f"error_{at}"] = moved, error
    before, after, tightly = (
        [numbers[f"error_{way}_{n}"] for n in sizes] for way in ("before", "after", "after_tightly")
    )
    falls = math.log(before[0] / before[-1]) / math.log(sizes[-1] / sizes[0])
    with_epsilon = math.log(numbers["error_before_100_at_0_1"] / numbers["error_before_100_at_10"]) / math.log(100)
    told = f"""For 10 to 10,000 records: clipped before averaging the error falls from {before[0]:.4f} to
        {before[-1]:.6f}, like n^-{falls:.3f}, and like epsilon^-{with_epsilon:.3f}; after, to [0, 1], it stays at
        {after[-1]:.2f}; after, to [0, 1/n], it goes from {tightly[0]:.2f} to {tightly[-1]:.2f}."""
    holds = max(abs(falls - power), abs(with_epsilon - power)) < 0.02 and worst < 5
    holds = holds and min(after) > 0.9 and min(tightly) > 0.6
    return Finding.judged(holds, told, power=falls, power_of_epsilon=with_epsilon, standard_errors=worst, table=numbers)
