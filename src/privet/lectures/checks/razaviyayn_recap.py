"""Razaviyayn, lecture 11, recap of privacy: definitions, Gaussian noise, post-processing (65 to 71)."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privet.accounting import Gaussian, delta
from privet.accounting.pairs.elementary import GaussianPair, LaplacePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Pair
from privet.accounting.theorems.conversions import gaussian_tail
from privet.accounting.theorems.gaussian_profile import epsilon_bounds, largest_mu, profile
from privet.clipping import Clip
from privet.geometry import box
from privet.lectures import rule
from privet.lectures.claim import Finding
from privet.lectures.grid import PAIRS, exact_ratio, false_points, first_false
from privet.lectures.registry import check
from privet.noise import add_gaussian
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sums import record_sum

Vector = NDArray[np.float64]


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
    return Finding.judged(
        abs(float(needed.max()) / priced - 1) < 1e-9,
        f"Of {len(events):,} events the worst needs a delta of {needed.max():.9f}; the library says {priced:.9f}.",
        events=len(events),
        worst_event=needed.max(),
        delta=priced,
    )


def _distance(sample: Vector, law: Pair) -> float:
    """Kolmogorov's distance of a sample from the law of a privacy loss, times the root of the sample's size."""
    ordered = np.sort(sample)
    below, steps = np.asarray(law.below(ordered)[0]), np.arange(sample.size + 1) / sample.size
    return float(max((steps[1:] - below).max(), (below - steps[:-1]).max())) * math.sqrt(sample.size)


@check("66", mutant={"drawn_from_first": 0.0})
def privacy_loss(drawn_from_first: float = 1.0) -> Finding:
    """Draw 20,000 outcomes with the library's noise, and compare their log-likelihood ratios with its pair."""
    n, mu = 20_000, 0.8
    units = np.full(n, round(drawn_from_first * mu * 2**20), dtype=np.int64)
    drawn = add_gaussian(units, step=2.0**-20, noise_stddev=1.0, random=fixed_seed_invalidates_guarantee(66))
    loss = mu * drawn - mu**2 / 2
    far, mean = _distance(loss, GaussianPair(mu)), float(loss.mean())
    change = float(np.exp(-loss).mean())  # 1 in expectation, as all of Q's mass is under P's support
    return Finding.judged(
        far < 2.7,  # exceeded by chance less than once in 10⁶ times
        f"{n:,} losses have mean {mean:.4f} of {mu**2 / 2:.4f} and E[e^-L] = {change:.3f} of 1; their law is {far:.2f} "
        "from the library's, in units where 2.7 is chance once in a million.",
        mean=mean,
        kolmogorov=far,
        mean_of_inverse_ratio=change,
    )


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
    return Finding.judged(
        worst <= factor and exact < tail,
        f"Delta is never more than {worst:.4f} of the tail. The converse is false: mu = 1 has P(L > 1) = {tail:.4f} "
        f"but delta {exact:.4f}, and noise for (1, 1e-5) has a tail of {gaussian_tail(mu, epsilon=1.0):.3g}.",
        largest_ratio=worst,
        tail_at_mu_1=tail,
        delta_at_mu_1=exact,
        tail_at_1e_5=gaussian_tail(mu, epsilon=1.0),
    )


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
    return Finding.judged(
        off < 1e-6,
        f"Of sums clipped to {clip:g} the largest moves are {found['replace_one']:.6f} (replaced), "
        f"{found['zero_out']:.6f} (zeroed out) and {found['add_remove']:.6f} (added); the accountants count "
        f"just these, to {off:.1e}.",
        largest_gap=off,
        table=found,
    )


@check("69", mutant={"constant": 0.5})
def gaussian_mechanism(constant: float = 1.0) -> Finding:
    """Hold the classical noise on 408 pairs against the exact accountant; then read its variance literally."""

    def multiplier(e: float, d: float) -> float:
        return constant * rule("classical").multiplier(e, d, 1)

    false = false_points(multiplier)
    below = [pair for pair in false if pair[0] <= 1]
    frontiers = {f"first_false_at_{d:.0e}": first_false(multiplier, d) for d in (1e-1, 1e-3, 1e-5, 1e-8, 1e-12)}

    def literal(sensitivity: float) -> float:
        """What (1, 1e-5) becomes if the printed σ is taken for the variance."""
        return epsilon_bounds(sensitivity / math.sqrt(sensitivity * multiplier(1.0, 1e-5)), 1e-5)[1]

    return Finding.judged(
        not below,
        f"False at {len(false)} of {len(PAIRS)} points, {len(below)} of them with epsilon up to 1; from "
        f"{frontiers['first_false_at_1e-05']:.3g} on at delta = 1e-5. Read as a variance it would give epsilon "
        f"{literal(2.0):.3g} for 1 at sensitivity 2, and {literal(20.0):.3g} at 20.",
        within=bool(false),
        false_points=len(false),
        false_points_up_to_1=len(below),
        least_ratio=min(exact_ratio(multiplier, e, d) for e, d in PAIRS),
        literal_variance_at_2=literal(2.0),
        literal_variance_at_20=literal(20.0),
        literal_variance_of_a_mean_of_1000=literal(0.002),
        table=frontiers,
    )


@check("70", mutant={"constant": 0.5})
def mean_of_bounded_vectors(constant: float = 1.0) -> Finding:
    """Replace one of n vectors by any other, and see how far the library's clipped mean moves."""
    rng, c, worst, n = np.random.default_rng(70), 2.0, {}, 0
    for n in (5, 50, 500):
        pairs = _clipped_sums(rng.normal(size=(n, 2)), c, "replace_one")
        worst[f"move_for_{n}"] = max(float(np.linalg.norm(a - b)) for a, b in pairs) / n
    claimed = constant * 2 * c / n
    return Finding.judged(
        all(abs(move / (constant * 2 * c / int(name[9:])) - 1) < 1e-6 for name, move in worst.items()),
        f"The mean of {n} vectors of norm at most {c:g} moves by up to {worst[f'move_for_{n}']:.6f}; 2c/n is "
        f"{claimed:.6f}.",
        claimed=claimed,
        table=worst,
    )


@check("71", mutant={"peeks": 0.5})
def post_processing(peeks: float = 0.0) -> Finding:
    """Round, project and scramble a Gaussian release, and compare delta; `peeks` reads the data again."""
    edges = np.linspace(-9.0, 10.0, 19_001)
    middle = (edges[:-1] + edges[1:]) / 2
    p, q = np.diff(ndtr(edges - 1.0 - peeks)), np.diff(ndtr(edges))  # the data move the outcome by 1
    projected = box(low=-1.0, high=1.0, size=middle.size).project(middle)  # each outcome on [−1, 1]
    ways = {
        "rounded": np.rint(middle),
        "projected": projected,
        "sign": np.sign(middle),
    }
    epsilons, after = (0.0, 0.5, 1.0, 2.0), {}
    before = [delta(Gaussian(noise_multiplier=1.0), epsilon=e, neighbours="add_remove") for e in epsilons]
    for name, outcome in ways.items():
        _, where = np.unique(outcome, return_inverse=True)
        first, second = np.bincount(where, weights=p), np.bincount(where, weights=q)
        after[name] = max(
            float(np.maximum(first - math.exp(e) * second, 0.0).sum()) / b
            for e, b in zip(epsilons, before, strict=True)
        )
    heads = (
        0.9 * p[middle > 0].sum() + 0.1 * p[middle <= 0].sum(),
        0.9 * q[middle > 0].sum() + 0.1 * q[middle <= 0].sum(),
    )
    after["randomised"] = max((heads[0] - math.exp(e) * heads[1]) / b for e, b in zip(epsilons, before, strict=True))
    return Finding.judged(
        max(after.values()) <= 1.0,
        "Delta after post-processing, of what it was: "
        + ", ".join(f"{name} {share:.4f}" for name, share in after.items())
        + ".",
        table=after,
    )
