"""Razaviyayn, lecture 11, recap of privacy: definitions, Gaussian noise, post-processing, composition (65 to 75)."""

import math
from itertools import pairwise, product

import numpy as np
from scipy.special import ndtr

from privet.accounting import Approximate, Gaussian, RandomizedResponse, compare, delta, epsilon
from privet.accounting.pairs.elementary import GaussianPair, LaplacePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Pair
from privet.accounting.theorems.composition import Cost, advanced, basic, optimal_delta, optimal_epsilon
from privet.accounting.theorems.conversions import gaussian_tail, group, group_mu
from privet.accounting.theorems.gaussian_profile import delta_bounds, epsilon_bounds, largest_mu, profile
from privet.clipping import Clip
from privet.geometry import box
from privet.lectures import Finding, check
from privet.lectures.grid import DELTAS, PAIRS, false_points, first_falses, least_ratio, scaled
from privet.lectures.measures import Vector, kolmogorov
from privet.noise import add_gaussian
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sums import record_sum


@check("65", mutant={"exponent": 0.5})
def definition_of_privacy(exponent: float = 1.0) -> Finding:
    """Try all 4,096 events made of 12 cells of a Gaussian release, and compare the worst with the library's delta."""
    mu, eps = 1.0, 0.75
    cut = eps / mu + mu / 2  # where the likelihood ratio is e^epsilon: the worst event begins there
    edges = np.array([-np.inf, *np.sort([cut, *np.linspace(-2.0, 3.0, 10)]), np.inf])
    p, q = np.diff(ndtr(edges - mu)), np.diff(ndtr(edges))
    events = (np.arange(2**p.size)[:, None] >> np.arange(p.size)) & 1
    needed = events @ p - math.exp(exponent * eps) * (events @ q)
    priced = delta(Gaussian(noise_multiplier=1 / mu), epsilon=eps, neighbours="add_remove")
    told = f"Of {len(events):,} events the worst needs a delta of {needed.max():.9f}; the library says {priced:.9f}."
    holds = abs(float(needed.max()) / priced - 1) < 1e-9
    return Finding.judged(holds, told, events=len(events), worst_event=needed.max(), delta=priced)


@check("66", mutant={"drawn_from_first": 0.5})
def privacy_loss(drawn_from_first: float = 1.0) -> Finding:
    """Draw 20,000 outcomes with the library's noise, and compare their log-likelihood ratios with its pair."""
    n, mu = 20_000, 0.8
    units = np.full(n, round(drawn_from_first * mu * 2**20), dtype=np.int64)
    drawn = add_gaussian(units, step=2.0**-20, noise_stddev=1.0, random=fixed_seed_invalidates_guarantee(66))
    loss = mu * drawn - mu**2 / 2
    far, mean = kolmogorov(loss, GaussianPair(mu)), float(loss.mean())
    change = float(np.exp(-loss).mean())  # 1 in expectation, as all of Q's mass is under P's support
    told = f"""{n:,} losses have mean {mean:.4f} of {mu**2 / 2:.4f} and E[e^-L] = {change:.3f} of 1; their law is
        {far:.2f} from the library's, in units where 2.7 is chance once in a million."""
    return Finding.judged(far < 2.7, told, mean=mean, kolmogorov=far, mean_of_inverse_ratio=change)


@check("67", mutant={"factor": 0.5})
def tail_of_the_privacy_loss(factor: float = 1.0) -> Finding:
    """Compare delta with the tail of the privacy loss for Gaussian, Laplace and sampled pairs, at 13 epsilons each."""
    pairs: list[Pair] = [GaussianPair(mu) for mu in (0.1, 0.5, 1.0, 2.0, 4.0)]
    pairs += [LaplacePair(0.5), LaplacePair(2.0), MixturePair(0.1, 2.0, "remove"), MixturePair(0.1, 2.0, "add")]
    eps, worst = np.linspace(0.0, 6.0, 13), 0.0
    for pair in pairs:
        p, q = pair.above(eps)
        seen = p > 1e-12
        worst = max(worst, float(((p - np.exp(eps) * q)[seen] / p[seen]).max()))
    mu = largest_mu(1.0, 1e-5)
    tail, exact = gaussian_tail(1.0, epsilon=1.0), profile(1.0, 1.0)
    told = f"""Delta is never more than {worst:.4f} of the tail. The converse is false: mu = 1 has P(L > 1) = {tail:.4f}
        but delta {exact:.4f}, and noise for (1, 1e-5) has a tail of {gaussian_tail(mu, epsilon=1.0):.3g}."""
    numbers: dict[str, float] = {"largest_ratio": worst, "tail_at_mu_1": tail, "delta_at_mu_1": exact}
    numbers |= {"tail_at_1e_5": gaussian_tail(mu, epsilon=1.0)}
    return Finding.judged(worst <= factor and exact < tail, told, table=numbers)


def _clipped_sums(table: Vector, clip: float, relation: str) -> list[tuple[Vector, Vector]]:
    """The library's clipped sums of a table and of neighbours of it, worst ones included."""

    def total(rows: Vector) -> Vector:
        return record_sum(rows, rule=Clip(clip=clip)).value

    long = 10.0 * np.array(list(product((-1.0, 0.0, 1.0), repeat=table.shape[1])))
    pairs = []
    for record in long:
        first = np.vstack([record, table[1:]])
        second = table[1:] if relation == "add_remove" else np.vstack([np.zeros_like(record), table[1:]])
        pairs.append((total(first), total(np.vstack([-record, table[1:]]) if relation == "replace_one" else second)))
    return pairs


@check("68", mutant={"order": 1.0})
def sensitivity(order: float = 2.0) -> Finding:
    """Search the largest move of the library's clipped sum, and compute its epsilon by hand against the accountants."""
    rng, clip, noise, eps = np.random.default_rng(68), 1.5, 2.0, 0.5
    table, found, off = rng.normal(size=(12, 3)), {}, 0.0
    for relation in ("replace_one", "zero_out", "add_remove"):
        pairs = _clipped_sums(table, clip, relation)
        found[relation] = max(float(np.linalg.norm(a - b, ord=order)) for a, b in pairs)
        priced = delta(Gaussian(noise_multiplier=noise), epsilon=eps, neighbours=relation)
        off = max(off, abs(profile(found[relation] / (noise * clip), eps) / priced - 1))
    told = f"""Of sums clipped to {clip:g} the largest moves are {found["replace_one"]:.6f} (replaced),
        {found["zero_out"]:.6f} (zeroed out) and {found["add_remove"]:.6f} (added); the accountants count just these, to
        {off:.1e}."""
    return Finding.judged(off < 1e-6, told, largest_gap=off, table=found)


@check("69", mutant={"constant": 0.5})
def gaussian_mechanism(constant: float = 1.0) -> Finding:
    """Hold the classical noise on 408 pairs against the exact accountant; then read its variance literally."""
    multiplier = scaled("classical", constant)
    false = false_points(multiplier)
    below = [pair for pair in false if pair[0] <= 1]
    frontiers = first_falses(multiplier)

    def literal(sensitivity: float) -> float:
        """What (1, 1e-5) becomes if the printed σ is taken for the variance."""
        return epsilon_bounds(sensitivity / math.sqrt(sensitivity * multiplier(1.0, 1e-5)), 1e-5)[1]

    told = f"""False at {len(false)} of {len(PAIRS)} points, {len(below)} of them with epsilon up to 1; from
        {frontiers["first_false_at_1e-05"]:.3g} on at delta = 1e-5. Read as a variance it would give epsilon
        {literal(2.0):.3g} for 1 at sensitivity 2, and {literal(20.0):.3g} at 20."""
    numbers = {"false_points": len(false), "false_points_up_to_1": len(below), "least_ratio": least_ratio(multiplier)}
    numbers |= {"literal_variance_at_2": literal(2.0), "literal_variance_at_20": literal(20.0)}
    numbers |= {"literal_variance_of_a_mean_of_1000": literal(0.002)}
    return Finding.judged(not below, told, within=bool(false), table=numbers | frontiers)


@check("70", mutant={"constant": 0.5})
def mean_of_bounded_vectors(constant: float = 1.0) -> Finding:
    """Replace one of n vectors by any other, and see how far the library's clipped mean moves."""
    rng, c, worst, n = np.random.default_rng(70), 2.0, {}, 0
    for n in (5, 50, 500):
        pairs = _clipped_sums(rng.normal(size=(n, 2)), c, "replace_one")
        worst[f"move_for_{n}"] = max(float(np.linalg.norm(a - b)) for a, b in pairs) / n
    claimed = constant * 2 * c / n
    told = f"""The mean of {n} vectors of norm at most {c:g} moves by up to {worst[f"move_for_{n}"]:.6f}; 2c/n is
        {claimed:.6f}."""
    holds = all(abs(move / (constant * 2 * c / int(name[9:])) - 1) < 1e-6 for name, move in worst.items())
    return Finding.judged(holds, told, claimed=claimed, table=worst)


@check("71", mutant={"peeks": 0.5})
def post_processing(peeks: float = 0.0) -> Finding:
    """Round, project and scramble a Gaussian release, and compare delta; `peeks` reads the data again."""
    edges = np.linspace(-9.0, 10.0, 19_001)
    middle = (edges[:-1] + edges[1:]) / 2
    p, q = np.diff(ndtr(edges - 1.0 - peeks)), np.diff(ndtr(edges))  # the data move the outcome by 1
    interval = box(low=-1.0, high=1.0, size=middle.size)  # each outcome on [−1, 1]
    ways = {"rounded": np.rint(middle), "projected": interval.project(middle), "sign": np.sign(middle)}
    epsilons, after = (0.0, 0.5, 1.0, 2.0), {}
    before = [delta(Gaussian(noise_multiplier=1.0), epsilon=e, neighbours="add_remove") for e in epsilons]
    for name, outcome in ways.items():
        _, where = np.unique(outcome, return_inverse=True)
        first, second = np.bincount(where, weights=p), np.bincount(where, weights=q)
        after[name] = max(
            float(np.maximum(first - math.exp(e) * second, 0.0).sum()) / b
            for e, b in zip(epsilons, before, strict=True)
        )
    heads = [0.9 * law[middle > 0].sum() + 0.1 * law[middle <= 0].sum() for law in (p, q)]
    after["randomised"] = max((heads[0] - math.exp(e) * heads[1]) / b for e, b in zip(epsilons, before, strict=True))
    told = f"Delta after post-processing, of what it was: {', '.join(f'{way} {after[way]:.4f}' for way in after)}."
    return Finding.judged(max(after.values()) <= 1.0, told, table=after)


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
    told = f"""False at {false} of {len(ratios)} points; nearly an equality where epsilon is small (claimed is
        {min(ratios.values()):.7f} of the truth), but for (1, 1e-6) and 10 records it says {claimed:.3g} where Gaussian
        noise gives {true:.2g}."""
    numbers: dict[str, float] = {"points": len(ratios), "false_points": false, "least_ratio": min(ratios.values())}
    numbers |= {"claimed_for_10": claimed, "true_for_10": true}
    return Finding.judged(not false, told, table=numbers)


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
    told = f"""At the sum of the epsilons three mixed runs have a delta of at most {worst:.6g}, {max(gaps):+.2g} over
        the sum of their deltas; four answers of 0.5 cost {answers:.9f} in all."""
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
    told = f"""False at {len(false)} of {len(grid)} points. 1,000 steps of 0.3 at 1e-5: it says {said:.1f}, where delta
        is {optimal_delta(0.3, 0.0, 1000, epsilon=said):.2g}; the optimum is
        {optimal_epsilon(0.3, 0.0, 1000, delta=1e-5):.1f}, and with e^epsilon + 1 the formula says
        {advanced([Cost(0.3, 0.0, 1000)], slack=1e-5)[0]:.1f}."""
    numbers: dict[str, float] = {"points": len(grid), "false_points": len(false)}
    numbers |= {"least_false_epsilon_at_1000": min((e for e, t, _ in false if t == 1000), default=math.inf)}
    numbers |= {"least_false_epsilon_at_100000": min((e for e, t, _ in false if t == 100_000), default=math.inf)}
    numbers |= {"said": said, "delta_there": optimal_delta(0.3, 0.0, 1000, epsilon=said)}
    numbers |= {"optimum": optimal_epsilon(0.3, 0.0, 1000, delta=1e-5)}
    numbers |= {"corrected": advanced([Cost(0.3, 0.0, 1000)], slack=1e-5)[0], "said_for_1": large}
    numbers |= {"delta_there_for_1": optimal_delta(1.0, 0.0, 1000, epsilon=large)}
    numbers |= {"optimum_for_1": optimal_epsilon(1.0, 0.0, 1000, delta=1e-5)}
    return Finding.judged(not false, told, table=numbers)


@check("75", mutant={"factor": 0.5})
def tighter_notions(factor: float = 1.0) -> Finding:
    """Let all accountants account for the same Gaussian runs, and order them."""
    order = ("closed", "renyi", "zcdp", "advanced", "optimal")
    gaps, shown = list[float](), dict[str, float]()
    for noise, steps in ((5.0, 10), (20.0, 100), (50.0, 1_000)):
        found = compare(Gaussian(noise_multiplier=noise) * steps, delta=1e-5, neighbours="replace_one")
        shown = {name: float(found[name].epsilon or math.nan) for name in order}
        *costs, optimal = shown.values()
        gaps += [factor * b - a for a, b in pairwise(costs)] + [factor * costs[-1] - optimal]
    mu = 2 * math.sqrt(1_000) / 50
    off = abs(shown["closed"] / epsilon_bounds(mu, 1e-5)[1] - 1)
    told = f"""1,000 Gaussian steps cost {", ".join(f"{cost:.3f} ({name})" for name, cost in shown.items())}: each
        theorem is looser than the one before, and optimal composition is a little tighter than advanced."""
    holds = min(gaps) >= 0 and off < 1e-9 and delta_bounds(mu, shown["closed"])[0] <= 1e-5
    numbers = {"least_gap": min(gaps)}
    return Finding.judged(holds, told, table=numbers | {f"epsilon_{name}": cost for name, cost in shown.items()})
