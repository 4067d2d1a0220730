"""Razaviyayn, lecture 11, DP-SGD: batches, amplification, and what it is compared with (90 to 95)."""

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from privet.accounting import Gaussian, delta
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.theorems.gaussian_profile import profile
from privet.accounting.theorems.subsampling import amplified, shortcut_limit
from privet.geometry import l2_ball
from privet.lectures import Finding, check
from privet.lectures.examples.amplification_proof import fixed_size, poisson
from privet.lectures.examples.realised_batch import divided_by_expected_size, divided_by_realised_size
from privet.lectures.grid import EPSILONS
from privet.lectures.measures import listed, refuses
from privet.lectures.toy_problems import unit_plan
from privet.losses import CustomLoss
from privet.privacy import Budget
from privet.problems import glm
from privet.sampling import Poisson
from privet.solvers import dp_sgd, output_perturbation
from privet.theory import printed_order


@check("90", mutant={"realised": 0.0})
def divisor_of_a_batch(realised: float = 1.0) -> Finding:
    """Let the accountant read Poisson batches; compute the exact delta of a mean over the batch as printed."""
    leak = divided_by_realised_size if realised else divided_by_expected_size
    often, rarely = leak(rate=0.05), leak(rate=0.01)
    told = f"""1,000 records, noise multiplier 1, epsilon 1: at rate 0.05 the accountant says delta
        {often.accountant:.2g}, the truth is {often.true:.2g} ({often.true / often.accountant:.3g} times); at rate 0.01
        {rarely.accountant:.2g} and {rarely.true:.2g}. A batch of fixed size has a public |B|, and may be divided by
        it."""
    numbers = {"accountant_at_005": often.accountant, "true_at_005": often.true}
    numbers |= {"times_at_005": often.true / often.accountant, "accountant_at_001": rarely.accountant}
    numbers |= {"true_at_001": rarely.true}
    return Finding.judged(often.true <= often.accountant and rarely.true <= rarely.accountant, told, table=numbers)


@check("91", mutant={"constant": 0.5})
def amplification_without_replacement(constant: float = 1.0) -> Finding:
    """Account for Gaussian noise on batches of fixed size at the lemma's epsilon, and compare with (m/n) delta."""
    worst, least, points = 0.0, math.inf, 0
    sizes, noises = ((1, 1000), (1, 100), (1, 10), (1, 4), (1, 2), (9, 10)), (0.5, 0.75, 1.0, 2.0, 4.0)
    for (batch, records), noise, e in product(sizes, noises, EPSILONS):
        rate, base = batch / records, profile(2.0 / noise, e)  # a replaced record moves two clips
        run = Gaussian(noise_multiplier=noise).without_replacement(batch=batch, records=records)
        share = delta(run, epsilon=amplified(e, base, rate)[0], neighbours="replace_one") / (constant * rate * base)
        worst, least, points = max(worst, share), min(least, share), points + 1
    told = f"At {points} points the exact delta is {least:.6f} to {worst:.6f} of the lemma's: it is tight."
    return Finding.judged(worst <= 1 + 1e-6, told, points=points, largest_share=worst, least_share=least)


@check("92", mutant={"constant": 1.5})
def shortcut_of_amplification(constant: float = 2.0) -> Finding:
    """Compare the shortcut with the lemma for 200 epsilons up to 1 and 60 rates, and ask how far it goes."""
    rates, epsilons = np.geomspace(1e-6, 1.0, 60), np.linspace(0.005, 1.0, 200)
    worst = max(float(amplified(e, 0.0, q)[0] / (q * e)) for q in rates.tolist() for e in epsilons.tolist())
    limits = {f"limit_at_{q:g}".replace(".", "_"): shortcut_limit(q) for q in (0.1, 0.25, 0.4)}
    told = f"""For epsilon up to 1 the amplified epsilon is at most {worst:.6f} times rate × epsilon (e - 1 is the best
        constant). With 2 it is true at every rate up to epsilon {shortcut_limit():.5f}, at rates 0.1, 0.25 and 0.4 up
        to {listed(limits.values(), ".3f")}."""
    holds = worst <= constant
    return Finding.judged(holds, told, largest_ratio=worst, limit_at_every_rate=shortcut_limit(), table=limits)


@check("93", mutant={"share": 0.5})
def proof_for_poisson(share: float = 1.0) -> Finding:
    """Enumerate all batches of a small table, and follow the proof line by line at its worst event, both ways."""
    lines = poisson(claimed_rate=share * 0.2)
    tight = poisson(table=(0,) * 8, claimed_rate=share * 0.2)
    both = {}
    for kind in ("remove", "add"):
        p, q = MixturePair(0.1, 2.0, kind).above(np.array([0.05]))
        both[f"delta_{kind}"] = float(p[0] - math.exp(0.05) * q[0])
    return Finding.judged(
        lines.gap < 1e-15
        and abs(lines.left - lines.split) < 1e-12
        and lines.split <= lines.step_private <= lines.right + 1e-12
        and max(lines.worst, lines.worst_back, tight.worst) <= 1,
        f"At the worst event the lines read {lines.left:.6f} = {lines.split:.6f} <= {lines.step_private:.6f} = "
        f"{lines.right:.6f}; over all events {lines.worst:.3f} of gamma delta is needed, {lines.worst_back:.3f} the "
        f"other way, and {tight.worst:.9f} where no one else counts. The ways differ: {both['delta_remove']:.4f} and "
        f"{both['delta_add']:.4f} for rate 0.1, noise 0.5 and epsilon 0.05.",
        left=lines.left,
        right=lines.right,
        share_of_delta=lines.worst,
        share_of_delta_back=lines.worst_back,
        share_of_delta_at_worst=tight.worst,
        table=both,
    )


@check("94", mutant={"share": 0.5})
def proof_for_fixed_size(share: float = 1.0) -> Finding:
    """Do the exercise: enumerate all batches of fixed size, replace a record, and check the worst event, both ways."""
    found = [fixed_size(batch=m, claimed_rate=share * m / 8) for m in (1, 2, 4, 6)]
    tight = fixed_size(table=(0,) * 8, claimed_rate=share * 0.25)
    needed = [max(lines.worst, lines.worst_back) for lines in found]
    worst = max(*needed, tight.worst, tight.worst_back)
    told = f"""For batches of 1, 2, 4 and 6 of 8 records {listed(needed, ".3f")} of (m/n) delta is needed, and
        {tight.worst:.9f} where no one else counts."""
    holds = worst <= 1 and max(lines.gap for lines in found) < 1e-15
    return Finding.judged(holds, told, largest_share_of_delta=worst, share_of_delta_at_worst=tight.worst)


@check("95", mutant={"sign": -1.0})
def descent_against_output_perturbation(sign: float = 1.0) -> Finding:
    """Compare printed orders and proven bounds on a grid of n and d, and run both methods on a loss with two wells."""
    budget, worse, printed, points = Budget(epsilon=1.0, delta=1e-6), 0, [], 0
    for n, d in product((10**2, 10**3, 10**4, 10**6), (1, 10, 100, 10_000)):
        if math.sqrt(d) >= n:
            continue
        order = partial(printed_order, n=n, d=d, diameter=1.0, lipschitz=1.0, budget=budget)
        printed.append(sign * (order("output_perturbation") - order("last_iterate")))
        proved = partial(unit_plan, n=n, d=d, budget=budget)
        points += 1
        worse += proved("last_linear").excess_risk > proved("output_perturbation").excess_risk
    wells: Any = CustomLoss(
        value=lambda z, y: np.cos(np.asarray(z)) + y,
        derivative=lambda z, y: -np.sin(np.asarray(z)),
        curvature=lambda z, y: -np.cos(np.asarray(z)),
        lipschitz_constant=1.0,
        convex=False,
    )
    problem = glm(wells, [[1.0]] * 50, [0.0] * 50, row_norm=1.0, domain=l2_ball(radius=1.0))
    runs = dp_sgd(problem, budget=budget, steps=5, sampling=Poisson(sampling_rate=0.2), clip=1.0)
    refused = refuses(output_perturbation, problem, budget=budget)
    told = f"""At {points} points with sqrt(d) < epsilon n the printed order of descent is at least {min(printed):.2g}
        below that of output perturbation, and the proven bound is worse at {worse}; on a loss that is not convex DP-SGD
        keeps epsilon {runs.guarantee.epsilon:.4f}, and output perturbation is refused."""
    numbers = {"points": points, "least_gap_of_orders": min(printed), "proven_bounds_worse": worse}
    holds = min(printed) >= 0 and not worse and refused and runs.guarantee.epsilon <= 1
    return Finding.judged(holds, told, within=True, table=numbers)
