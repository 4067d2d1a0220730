"""Razaviyayn, lecture 11, DP-SGD: batches, amplification, and what it is compared with (90 to 95)."""

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.theorems.gaussian_profile import largest_mu
from privet.accounting.theorems.subsampling import amplified, shortcut_limit
from privet.geometry import l2_ball
from privet.lectures import Finding, check
from privet.lectures.examples.amplification_proof import fixed_size, poisson
from privet.lectures.examples.realised_batch import divided_by_fixed_size, divided_by_realised_size, mixture_delta
from privet.lectures.measures import listed, refuses
from privet.lectures.toy_problems import unit_plan
from privet.losses import CustomLoss
from privet.privacy import Budget
from privet.problems import glm
from privet.sampling import Poisson
from privet.solvers import dp_sgd, output_perturbation
from privet.theory import ApproximateDP, GaussianDP, lipschitz_lower_bound


@check("90", mutant={"divisor": 0.5})
def divisor_of_a_batch(divisor: float = 1.0, poisson: float = 0.0) -> Finding:
    """Compute the exact delta of a mean over the batch, as printed, for batches of fixed size and for Poisson ones."""
    sizes = {m: divided_by_fixed_size(batch=m, divisor=divisor) for m in (1, 10, 50, 500)}
    share = max(leak.true / leak.accountant for leak in sizes.values())
    least = min(leak.true / leak.accountant for leak in sizes.values())
    often, rarely = divided_by_realised_size(rate=0.05), divided_by_realised_size(rate=0.01)
    told = f"""1,000 records, noise multiplier 1, epsilon 1: with 1, 10, 50 or 500 records a batch, |B| is public, and
        the true delta is {least:.6f} to {share:.6f} of what was accounted for. With Poisson batches of rate 0.05 the
        accountant says {often.accountant:.2g} and the truth is {often.true:.2g}
        ({often.true / often.accountant:.3g} times); at rate 0.01 {rarely.accountant:.2g} and {rarely.true:.2g}."""
    numbers = {"share_of_fixed_sizes": share, "least_share_of_fixed_sizes": least}
    numbers |= {"accountant_at_005": often.accountant, "true_at_005": often.true}
    numbers |= {"times_at_005": often.true / often.accountant, "accountant_at_001": rarely.accountant}
    numbers |= {"true_at_001": rarely.true}
    holds = often.true <= often.accountant if poisson else share <= 1 + 1e-9 and least > 0.999
    return Finding.judged(holds, told, within=True, table=numbers)


@check("91", mutant={"constant": 0.5})
def amplification_without_replacement(constant: float = 1.0) -> Finding:
    """Integrate the laws of a batch of m of n records, one replaced, the rest anywhere; compare with (m/n) delta."""
    worst, least, points = 0.0, math.inf, 0
    rates, noises, rest = (0.001, 0.01, 0.1, 0.5, 0.9), (0.75, 1.0, 2.0), (-1.0, -0.5, 0.0, 0.5, 1.0)
    for rate, noise, e in product(rates, noises, (0.01, 0.1, 0.5, 1.0, 3.0)):
        far, claimed = 1 / noise, math.log1p(rate * math.expm1(e))  # the record's gradient is C, or -C when replaced
        base = mixture_delta((np.array([far]), np.ones(1)), (np.array([-far]), np.ones(1)), e)
        if base < 1e-10:
            continue
        shares = []
        for others in rest:  # where the mean is when the record is not drawn
            chances = np.array([1 - rate, rate])
            there, back = ((np.array([others * far, at]), chances) for at in (far, -far))
            shares.append(mixture_delta(there, back, claimed) / (constant * rate * base))
        worst, least, points = max(worst, *shares), min(least, max(shares)), points + len(rest)
    told = f"""At {points} points, the other records' gradients in five places, delta at the lemma's epsilon is at most
        {worst:.6f} of the lemma's; at the worst place it is never below {least:.6f} of it: the lemma is tight."""
    holds = worst <= 1 + 1e-4 and least * constant > 0.999
    return Finding.judged(holds, told, points=points, largest_share=worst, least_share=least)


@check("92", mutant={"constant": 1.5})
def shortcut_of_amplification(constant: float = 2.0) -> Finding:
    """Compare the shortcut with the lemma for 200 epsilons up to 1 and 60 rates, and ask how far it goes."""
    rates, epsilons = np.geomspace(1e-6, 1.0, 60)[:, None], np.linspace(0.005, 1.0, 200)
    lemma = np.log1p(rates * np.expm1(epsilons))
    some = [(i, j) for i in range(0, 60, 6) for j in range(1, 200, 22)]
    off = max(abs(amplified(float(epsilons[j]), 0.0, float(rates[i, 0]))[0] / lemma[i, j] - 1) for i, j in some)
    worst = float((lemma / (rates * epsilons)).max())
    limits = {f"limit_at_{q:g}".replace(".", "_"): shortcut_limit(q) for q in (0.1, 0.25, 0.4)}
    told = f"""For epsilon up to 1 the amplified epsilon is at most {worst:.6f} times rate × epsilon (e - 1 is the best
        constant). With 2 it is true at every rate up to epsilon {shortcut_limit():.5f}, at rates 0.1, 0.25 and 0.4 up
        to {listed(limits.values(), ".3f")}."""
    holds = worst <= constant and off < 1e-12
    return Finding.judged(
        holds, told, largest_ratio=worst, library_off=off, limit_at_every_rate=shortcut_limit(), table=limits
    )


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


def _above_the_least(x: float, d: int, epsilon: float) -> tuple[float, float]:
    """What noisy descent's bound tends to ÷ what no Gaussian, no private method can beat; epsilon n = x sqrt(d)."""
    n, budget = round(x * math.sqrt(d) / epsilon), Budget(epsilon=epsilon, delta=1e-6)
    floor = unit_plan("average", n=n, d=d, budget=budget).floor
    ways = (GaussianDP(mu=largest_mu(epsilon, 1e-6)), ApproximateDP(epsilon=epsilon, delta=1e-6))
    found = [lipschitz_lower_bound(n=n, d=d, radius=1.0, lipschitz=1.0, privacy=way).value for way in ways]
    return (floor or math.inf) / found[0], (floor or math.inf) / found[1]


@check("95", mutant={"power": 0.5})
def descent_against_output_perturbation(power: float = 1.0) -> Finding:
    """Compare orders and proven bounds, steps c/sqrt(t), for n, d and epsilon; run both on a loss with two wells."""

    def ratio(x: float, d: int, e: float) -> float:
        """DP-SGD's bound ÷ that of output perturbation, where epsilon n = x sqrt(d)."""
        of = partial(unit_plan, n=round(x * math.sqrt(d) / e), d=d, budget=Budget(epsilon=e, delta=1e-6))
        return of("last").excess_risk / of("output_perturbation").excess_risk

    grid = list(product((1, 100, 10_000), (0.1, 1.0)))
    far = np.geomspace(10.0, 1e8, 15).tolist()
    better = [x for x in far if max(ratio(x, d, e) for d, e in grid) < 1]
    falls = [-math.log(ratio(1e8, d, e) / ratio(1e6, d, e)) / math.log(100) for d, e in grid]
    orders = [(1 / x) ** power / (1 / x) ** 0.5 for x in far]
    wells: Any = CustomLoss(
        value=lambda z, y: np.cos(np.asarray(z)) + y,
        derivative=lambda z, y: -np.sin(np.asarray(z)),
        curvature=lambda z, y: -np.cos(np.asarray(z)),
        lipschitz_constant=1.0,
        convex=False,
    )
    problem, budget = (
        glm(wells, [[1.0]] * 50, [0.0] * 50, row_norm=1.0, domain=l2_ball(radius=1.0)),
        Budget(epsilon=1.0, delta=1e-6),
    )
    runs = dp_sgd(problem, budget=budget, steps=5, sampling=Poisson(sampling_rate=0.2), clip=1.0)
    refused = refuses(output_perturbation, problem, budget=budget)
    pairs = [_above_the_least(x, d, e) for x in (1e4, 1e8) for d, e in grid]
    above, far_above = zip(*pairs, strict=True)
    spread = 100 * max(abs(a / b - 1) for a, b in zip(above[: len(grid)], above[len(grid) :], strict=True))
    told = f"""As orders DP-SGD's is the better one wherever sqrt(d) < epsilon n. With steps c/sqrt(t) and all constants
        and logarithms its proven bound is the better one from epsilon n = {min(better, default=math.inf):.3g} sqrt(d)
        on, for d up to 10,000; at epsilon n = 100 sqrt(d) it is {ratio(100.0, 1, 1.0):.2f} times the other, and their
        ratio falls like (epsilon n)^-{min(falls):.3f} or faster, far out. On a loss that is not convex DP-SGD keeps
        epsilon {runs.guarantee.epsilon:.4f}, and output perturbation is refused. It is nearly tight in n, d, epsilon:
        without the logarithm of c/sqrt(t) the bound tends to at most {max(above):.2f} times what no method of Gaussian
        privacy can beat, the same for epsilon n from 10,000 to 1e8 times sqrt(d) to {spread:.2f} %, and to
        {max(far_above):.0f} times what is excluded for every (epsilon, 1e-6)-private one; the root of ln(1/delta)
        between the two is not decided."""
    numbers = {"above_gaussian": max(above), "above_excluded": max(far_above)}
    numbers |= {"better_from": min(better, default=math.inf), "ratio_at_100": ratio(100.0, 1, 1.0)}
    numbers |= {"least_fall": min(falls), "largest_fall": max(falls)}
    holds = max(orders) < 1 and bool(better) and better == far[-len(better) :] and refused
    holds = holds and max(abs(fall - (power - 0.5)) for fall in falls) < 0.1 and runs.guarantee.epsilon <= 1
    holds = holds and max(above) < 4 and spread < 5
    return Finding.judged(holds, told, within=True, table=numbers)
