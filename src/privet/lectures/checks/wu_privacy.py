"""Wu, lecture 13, sections 1.2 and 1.3: noise, strong composition, DP-SGD and amplification (12 to 22)."""

import math
from itertools import combinations, product

import numpy as np

from privet.accounting import Gaussian, epsilon
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.theorems.composition import Cost, advanced
from privet.accounting.theorems.gaussian_profile import epsilon_bounds, largest_mu, profile
from privet.accounting.theorems.subsampling import amplified, rate_for
from privet.clipping import Clip, Declared
from privet.lectures import Finding, check, rule
from privet.lectures.examples import survey as worked
from privet.lectures.examples.one_record_a_step import accuracy, against_full_batches, n_squared_steps
from privet.lectures.grid import (
    DELTAS,
    PAIRS,
    exact_ratio,
    false_points,
    first_false,
    first_falses,
    least_ratio,
    scaled,
)
from privet.lectures.measures import listed, measured_noise
from privet.lectures.noisy_runs import noisy_run
from privet.lectures.toy_problems import linear
from privet.sampling import OneRecord
from privet.sums import record_sum


@check("12", mutant={"constant": 0.5})
def lemma_1_1(constant: float = 1.0) -> Finding:
    """Hold lemma 1.1's noise on 408 pairs (epsilon, delta) against the exact accountant, and find where it fails."""
    multiplier = scaled("lemma_1_1", constant)
    false = false_points(multiplier)
    below = [pair for pair in false if pair[0] <= 1]
    frontiers = first_falses(multiplier)
    large = {f"first_false_at_{d:g}".replace(".", "_"): first_false(multiplier, d) for d in (0.5, 0.9, 0.98, 0.99)}
    mu = 1.0 / multiplier(10.0, 1e-5)
    told = f"""True at {len(PAIRS) - len(false)} of {len(PAIRS)} points: wherever epsilon is at most
        {min(frontiers.values()):.3g} and delta at most 0.1; false from {frontiers["first_false_at_1e-05"]:.3g} on at
        delta = 1e-5. For larger delta it is false sooner: from {listed(large.values(), ".2f")} on at 0.5, 0.9, 0.98 and
        0.99. Its noise is down to {least_ratio(multiplier):.4f} of what is needed; asked for (10, 1e-5) it gives
        epsilon {epsilon_bounds(mu, 1e-5)[1]:.2f}."""
    numbers: dict[str, float] = {"points": len(PAIRS), "false_points": len(false), "false_points_up_to_1": len(below)}
    numbers |= {"least_ratio": least_ratio(multiplier), "true_epsilon_of_10": epsilon_bounds(mu, 1e-5)[1]}
    numbers |= {"true_delta_of_10": profile(mu, 10.0), "ratio_at_1": exact_ratio(multiplier, 1.0, 1e-5)}
    holds = not below and large["first_false_at_0_98"] > 1
    return Finding.judged(holds, told, within=bool(false), table=numbers | frontiers | large)


@check("13", mutant={"power": 1.0})
def strong_composition_costs_a_logarithm(power: float = 0.5) -> Finding:
    """Calibrate by advanced composition, and fit how its noise over lemma 1.1's grows with ln(1/delta)."""
    T, target = 10**6, 0.5
    logs = [1e2, 3e2, 6e2]  # ln(1/delta): far out, where the power shows

    def ratio(log: float) -> float:
        delta = math.exp(-log)
        low, high = 1e-9, target
        while high / low > 1 + 1e-9:  # the largest step that composes to the target, half of delta for each part
            middle = math.sqrt(low * high)
            total = advanced([Cost(middle, 0.0, T)], slack=delta / 2)[0]
            low, high = (middle, high) if total <= target else (low, middle)
        return 1.0 / largest_mu(low, delta / (2 * T)) / rule("lemma_1_1").multiplier(target, delta, T)

    ratios = [ratio(log) for log in logs]
    slope = math.log(ratios[-1] / ratios[0]) / math.log(logs[-1] / logs[0])
    usual = ratio(math.log(1e5))
    told = f"""For {T:,} steps strong composition takes {usual:.2f} times lemma 1.1's noise at delta = 1e-5, and the
        ratio grows like ln(1/delta) to the power {slope:.3f}."""
    return Finding.judged(abs(slope - power) < 0.1 and min(ratios) > 1, told, ratio_at_1e_5=usual, power=slope)


@check("14", mutant={"noise": 0.5})
def dp_sgd_step(noise: float = 1.0) -> Finding:
    """Run DP-SGD on two records far apart; tell which record each step read, and test noise and uniformity."""
    rows, steps, eta = np.zeros((2, 5)), 300, 0.1
    rows[:, 0] = 10.0, -10.0
    found = noisy_run(
        linear(rows),
        bounding=Declared(lipschitz=10.0),
        sampling=OneRecord(),
        noise_multiplier=0.25,
        steps=steps,
        step_size=eta,
        seed=14,
        release="all",
    )
    drawn = -np.diff(np.asarray(found.iterates), axis=0) / eta
    chosen = np.where(drawn[:, 0] > 0, 0, 1)  # 4 standard deviations apart from the middle
    rest = drawn - rows[chosen]
    claimed = noise * 2.5
    deviation, off = measured_noise(rest, claimed)
    uneven = abs(float(chosen.mean()) - 0.5) * 2 * math.sqrt(steps)
    told = f"""Each of {steps} steps is the gradient of one record plus noise of standard deviation {deviation:.4f},
        where {claimed:g} is claimed ({off:.1f} standard errors); either record is chosen equally often
        ({uneven:.1f})."""
    holds = off < 5 and uneven < 5
    return Finding.judged(holds, told, noise_stddev=deviation, standard_errors=off, standard_errors_of_choice=uneven)


@check("15", mutant={"factor": 0.5})
def known_indices(factor: float = 1.0) -> Finding:
    """Replace a record at worst: how far one gradient and an average of n move, and what both ways to sample cost."""
    n, G, sizes = 50, 2.0, (1, 10, 50, 200)
    rows = np.zeros((max(sizes), 2))
    rows[0, 0] = G

    def moved(count: int) -> float:
        """How far the sum of the first `count` gradients moves when the first one turns round."""
        there, back = (record_sum(table[:count], rule=Clip(clip=G)).value for table in (rows, -rows))
        return float(np.linalg.norm(there - back))

    averages = {count: moved(count) / count for count in sizes}
    average, single = averages[n], averages[1]
    off = max(abs(single / moves / count - factor) for count, moves in averages.items() if count > 1)
    step = Gaussian(noise_multiplier=4.0)
    known = epsilon(step, delta=1e-5, neighbours="replace_one")
    secret = epsilon(step.without_replacement(batch=1, records=n), delta=1e-5, neighbours="replace_one")
    told = f"""One gradient moves by {single:.4f}, the average of {n} by {average:.4f}: {single / average:.2f} times
        less, and likewise for 10 and 200. A step with known index costs epsilon {known:.4f}, with a secret one
        {secret:.6f}."""
    numbers = {"sensitivity_of_one": single, "sensitivity_of_average": average, "epsilon_known": known}
    numbers |= {"epsilon_secret": secret}
    return Finding.judged(off < 1e-6 and secret < known, told, table=numbers)


def _sampled_delta(rate: float, mu: float, epsilon: float, kind: str) -> float:
    """Exact δ of one Gaussian release of that μ on a secret batch."""
    there, back = MixturePair(rate, mu, kind).above(np.array([epsilon]))  # type: ignore[arg-type]
    return float(there[0] - math.exp(epsilon) * back[0])


@check("16", mutant={"constant": 0.5})
def lemma_1_2(constant: float = 1.0) -> Finding:
    """Compare the exact delta of sampled Gaussian releases with the lemma's, in both directions."""
    worst, tight, points = -math.inf, 0.0, 0
    rates, mus, bases = (0.001, 0.01, 0.1, 0.25, 0.5, 0.9), (0.25, 0.5, 1.0, 2.0, 4.0), (0.05, 0.1, 0.5, 1.0, 2.0, 4.0)
    for rate, mu, base in product(rates, mus, bases):
        delta = profile(mu, base)
        if delta < 1e-9:
            continue
        reduced, _ = amplified(base, delta, rate)
        leaves, joins = (_sampled_delta(rate, mu, reduced, kind) for kind in ("remove", "add"))
        worst = max(worst, max(leaves, joins) / (constant * rate * delta))
        tight = max(tight, abs(leaves / (rate * delta) - 1.0))
        points += 1
    told = f"""At {points} points the true delta is at most {worst:.9f} of the lemma's; in the direction from present to
        absent it is all of it, to {tight:.1e}."""
    return Finding.judged(worst <= 1 + 1e-6, told, points=points, true_over_claimed=worst, distance_from_equality=tight)


@check("17", mutant={"factor": 1.0})
def fraction_of_the_records(factor: float = math.e - 1) -> Finding:
    """Run a (1, delta)-private step on a fraction epsilon' of the records, and see what it costs."""
    ratios = [amplified(1.0, 1e-6, t)[0] / t for t in np.geomspace(1e-4, 1.0, 60).tolist()]
    exact = [rate_for(1.0, target=t) for t in (0.01, 0.1)]
    told = f"""The fraction epsilon' costs up to {max(ratios):.4f} epsilon' ({amplified(1.0, 0.0, 0.01)[0]:.4f} for
        0.01, {amplified(1.0, 0.0, 0.1)[0]:.4f} for 0.1): right within a factor e - 1. Exact is (e^epsilon' - 1)/(e -
        1), {exact[1]:.4f} for 0.1."""
    numbers: dict[str, float] = {"largest_ratio": max(ratios), "epsilon_at_001": amplified(1.0, 0.0, 0.01)[0]}
    numbers |= {"epsilon_at_01": amplified(1.0, 0.0, 0.1)[0], "exact_fraction_for_01": exact[1]}
    return Finding.judged(max(ratios) <= factor * (1 + 1e-12), told, within=True, table=numbers)


@check("18", mutant={"percent": 0.002})
def survey(percent: float = 0.001) -> Finding:
    """Amplify by the library, and compare with randomised response on a survey of 0.001 %, worked out by hand."""
    by_hand, claimed = worked.survey(), worked.survey(share=percent / 100)
    found, known = claimed.by_the_lemma, claimed.known_participant
    told = f"""With a secret list the process is ({found:.6e}, 0)-private; for somebody known to be in it {known:.3g},
        all of the survey's own epsilon."""
    holds = abs(found / by_hand.by_hand - 1) < 1e-9 and abs(known - 0.5) < 1e-12
    return Finding.judged(holds, told, epsilon=found, epsilon_of_known_participant=known)


@check("19", mutant={"share": 0.5})
def proof_of_lemma_1_2(share: float = 1.0) -> Finding:
    """Enumerate all subsets of 3 of 8 records under randomised response, and follow the proof line by line."""
    n, m, base = 8, 3, 1.0
    keep = math.exp(base) / (1 + math.exp(base))

    def yes(records: tuple[int, ...], subset: tuple[int, ...]) -> float:
        """P(answer yes): whether anybody in the subset is a 1, by randomised response."""
        return keep if any(records[i] for i in subset) else 1 - keep

    subsets = list(combinations(range(n), m))
    there, gone = (1, *[0] * (n - 1)), (0,) * n
    inside = [s for s in subsets if 0 in s]
    outside = [s for s in subsets if 0 not in s]
    p_in, p_in_gone = (sum(yes(x, s) for s in inside) / len(inside) for x in (there, gone))
    p_out = sum(yes(there, s) for s in outside) / len(outside)
    whole, whole_gone = (sum(yes(x, s) for s in subsets) / len(subsets) for x in (there, gone))
    chance = len(inside) / len(subsets)
    split = abs(whole - chance * p_in - (1 - chance) * p_out)
    steps = p_in <= math.exp(base) * p_in_gone * (1 + 1e-12) and p_in <= math.exp(base) * p_out * (1 + 1e-12)
    claimed = 1 + share * (m / n) * math.expm1(base)
    told = f"""Over all {len(subsets)} subsets the split by membership is exact ({split:.0e}), both steps of the hint
        hold, and the ratio of probabilities is {whole / whole_gone:.12f} where the lemma allows {claimed:.12f}."""
    holds = chance == m / n and split < 1e-15 and steps and whole / whole_gone <= claimed * (1 + 1e-12)
    return Finding.judged(holds, told, chance_of_membership=chance, ratio=whole / whole_gone, claimed_ratio=claimed)


@check("20", mutant={"constant": 0.5})
def one_known_step(constant: float = 1.0) -> Finding:
    """Hold the rule on the audit's deltas and on larger ones against the exact accountant, for epsilon up to 1."""
    multiplier = scaled("single_step_log", constant)
    small = [(e, d) for e in np.linspace(0.01, 1.0, 34).tolist() for d in (*DELTAS, 0.2, 0.3, 0.4, 0.5, 0.6)]
    false = false_points(multiplier, small)
    beyond = first_false(multiplier, 0.7)
    told = f"""For epsilon up to 1 and delta up to 0.6 false at {len(false)} of {len(small)} points; at delta = 0.7 from
        epsilon {beyond:.3f} on, at delta = 0.1 from {first_false(multiplier, 0.1):.3g} on."""
    numbers: dict[str, float] = {"false_points": len(false), "false_points_of_the_grid": len(false_points(multiplier))}
    numbers |= {"first_false_at_07": beyond, "first_false_at_01": first_false(multiplier, 0.1)}
    return Finding.judged(not false, told, within=beyond <= 1, table=numbers)


@check("21", mutant={"power": 1.0})
def steps_of_dp_sgd(power: float = 0.5) -> Finding:
    """Account for DP-SGD with 50 to 400 records, and fit how epsilon depends on n, on T and on a step's epsilon."""

    def cost(n: int = 100, T: int = 10_000, e: float = 1.0) -> float:
        # the noise is for sensitivity 2G: add or remove at distance 2G, as in the audit
        step = Gaussian(noise_multiplier=rule("single_step_log").multiplier(e, 1e-5, 1)).poisson(rate=1 / n)
        return epsilon(step * T, delta=1e-5, neighbours="add_remove")

    slope = -math.log(cost(n=400) / cost(n=50)) / math.log(8)
    with_steps = math.log(cost(T=40_000) / cost()) / math.log(4)
    with_epsilon = math.log(cost() / cost(e=0.5)) / math.log(2)
    worked_out = n_squared_steps(n=100)
    told = f"""Epsilon falls like n to the power -{slope:.3f}, where -{power:g} is claimed, and grows like T to the
        power {with_steps:.3f} and a step's epsilon to the power {with_epsilon:.3f}; n = 100 and T = n^2 cost
        {worked_out.true:.3f} ({worked_out.true_replaced:.3f} with one record replaced), below the 1 of one known step.
        Lemma 1.2 with strong composition proves only ({worked_out.proved:.2f}, {worked_out.proved_delta:.3g})."""
    numbers: dict[str, float] = {"power": slope, "epsilon_of_n_squared_steps": worked_out.true}
    numbers |= {"power_of_steps": with_steps, "power_of_epsilon": with_epsilon}
    numbers |= {"epsilon_replace_one": worked_out.true_replaced, "epsilon_by_strong_composition": worked_out.proved}
    numbers |= {"delta_by_strong_composition": worked_out.proved_delta}
    holds = abs(slope - power) < 0.15 and abs(with_steps - 0.5) < 0.1 and abs(with_epsilon - 1) < 0.15
    return Finding.judged(holds and worked_out.true <= 1.0, told, table=numbers)


@check("22", mutant={"least_noise": 8.0})
def dp_sgd_against_noisy_descent(least_noise: float = 16.0) -> Finding:
    """Compare DP-SGD, one of n records a step and one replaced, with full batches: what it costs, how near it comes."""
    full_batch, costs = epsilon_bounds(1.0, 1e-5)[1], against_full_batches(n=200)
    far = max(cost / full_batch for noise, cost in costs.items() if noise >= least_noise)
    fewer = against_full_batches((4.0, 16.0), n=50)
    runs = [accuracy(noise) for noise in (1.0, 4.0)]
    apart = [run.one_record / run.full_batch for run in runs]
    off = max(abs(run.one_record - run.full_batch) / run.standard_error for run in runs)
    share = max(run.one_record / run.bound for run in runs)
    told = f"""Full batches cost {full_batch:.3f}; one record of 200 a step {listed(costs.values(), ".2f")} with noise
        of {listed(costs, "g")} sensitivities: {100 * (costs[4.0] / full_batch - 1):.0f} % more at 4, within
        {100 * (far - 1):.1f} % from {least_noise:g} on; of 50 records {fewer[4.0]:.2f} and {fewer[16.0]:.2f} at 4 and
        16. Its excess risk is {listed(apart, ".3f")} times theirs at noise 1 and 4 ({off:.1f} standard errors), up to
        {share:.2f} of what lemma 2.7 allows both."""
    numbers = {"epsilon_full_batch": full_batch, "largest_ratio": far, "ratio_at_4": costs[4.0] / full_batch}
    numbers |= {"ratio_of_risks_at_1": apart[0], "ratio_of_risks_at_4": apart[1], "share_of_lemma_2_7": share}
    numbers |= {f"epsilon_at_{noise:g}".replace(".", "_"): cost for noise, cost in costs.items()}
    holds = far <= 1.03 and max(abs(ratio - 1) for ratio in apart) < 0.1 and share <= 1
    return Finding.judged(holds, told, within=True, table=numbers)
