"""Razaviyayn, lecture 11, numerical accountants: the privacy loss of a run, its tail, and FFT (99 to 102)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Gaussian, RandomizedResponse, epsilon
from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.elementary import DiscretePair, GaussianPair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.theorems.composition import Cost, advanced_epsilon, optimal_delta
from privet.clipping import Clip
from privet.lectures.claim import Finding
from privet.lectures.examples.privacy_loss import composed, convolved, loss_law, transformed
from privet.lectures.registry import check
from privet.lectures.toy_problems import separable
from privet.losses import LinearRecords, LogisticLoss
from privet.losses.loss import Array
from privet.noise import add_gaussian
from privet.plan import gradient_plan
from privet.privacy import Budget
from privet.problems import per_record
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import GradientStep, follow

Vector = NDArray[np.float64]


@check("99", mutant={"factor": 0.5})
def losses_add_up(factor: float = 1.0) -> Finding:
    """Draw 20,000 adaptive runs of five steps with the library's noise; compare their losses with the composed pair."""
    runs, T, mu = 20_000, 5, 0.4
    random = fixed_seed_invalidates_guarantee(99)
    total, joint, before = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    for _ in range(T):
        shift = np.where(before > 0, mu, -mu)  # each step asks what the last answer suggests
        units = np.rint(shift * 2.0**20).astype(np.int64)
        before = add_gaussian(units, step=2.0**-20, noise_stddev=1.0, random=random)
        joint += (before**2 - (before - shift) ** 2) / 2  # log-densities of the whole transcript
        total += factor * (shift * before - mu**2 / 2)  # each step's own loss
    apart = float(np.abs(joint - total).max())
    ordered, steps = np.sort(total), np.arange(runs + 1) / runs
    below = np.asarray(GaussianPair(math.sqrt(T) * mu).below(ordered)[0])
    far = float(max((steps[1:] - below).max(), (below - steps[:-1]).max())) * math.sqrt(runs)
    return Finding.judged(
        apart < 1e-9 and far < 2.7,  # by chance less than once in 10⁶ times
        f"The transcripts' losses are the sums of the steps' to {apart:.1e}, and their law is {far:.2f} from that of "
        f"one Gaussian with mu = sqrt(5) × {mu:g}, in units where 2.7 is chance once in a million.",
        largest_difference=apart,
        kolmogorov=far,
    )


@check("100", mutant={"sign": -1.0})
def tails_computed_or_bounded(sign: float = 1.0) -> Finding:
    """Compute delta of 100 steps numerically, and bound the same tail by Chernoff's method and advanced composition."""
    step, T = 0.1, 100
    heads = 1 / (1 + math.exp(-step))
    pair = DiscretePair((-step, step), (1 - heads, heads))
    t = np.linspace(0.1, 40.0, 400)
    moments = T * np.asarray(pair.log_moment(t.astype(complex))[0]).real
    gaps: list[float] = []
    shown: dict[str, float] = {}
    for e in (2.0, 3.0, 4.0, 5.0):
        numeric = fourier_delta([(pair, T)], e)[1]
        chernoff = math.exp(float(np.min(moments - t * e)))
        low, high = 1e-300, 0.5
        for _ in range(200):  # the least delta at which advanced composition proves e
            middle = math.sqrt(low * high)
            low, high = (low, middle) if advanced_epsilon([Cost(step, 0.0, T)], middle) <= e else (middle, high)
        gaps += [sign * (chernoff / numeric - 1), sign * (high / chernoff - 1)]
        shown |= {f"numerical_at_{e:g}": numeric, f"chernoff_at_{e:g}": chernoff, f"advanced_at_{e:g}": high}
    off = abs(shown["numerical_at_3"] / optimal_delta(step, 0.0, T, epsilon=3.0) - 1)
    return Finding.judged(
        min(gaps) >= 0 and off < 1e-3,
        f"100 answers of 0.1 at epsilon 3: delta is {shown['numerical_at_3']:.3g} numerically, "
        f"{shown['chernoff_at_3']:.3g} by Chernoff's bound with the true moments, {shown['advanced_at_3']:.3g} by "
        "advanced composition.",
        least_gap=min(gaps),
        distance_from_closed_form=off,
        table=shown,
    )


@check("101", mutant={"exponent": 0.5})
def fourier_accountant(exponent: float = 1.0) -> Finding:
    """Follow the recipe by hand: against direct convolution, and against the library's bracket, for a sampled step."""
    law = loss_law(MixturePair(0.2, 1.0, "remove"), span=12.0, points=2_048)
    fast, slow = transformed(law, round(4 * exponent)), convolved(law, 4)
    start = round((fast.first - slow.first) / law.width)
    window = slow.masses[max(start, 0) : max(start, 0) + 2_048]
    apart = float(np.abs(fast.masses[: window.size] - window).max())
    pair, T = MixturePair(0.1, 0.5, "remove"), 100
    by_hand = composed(pair, steps=round(T * exponent), epsilon=1.0, points=2**14)
    low, high = fourier_delta([(pair, T)], 1.0)
    k = 2**14
    return Finding.judged(
        apart < 1e-12 and by_hand.down <= high and low <= by_hand.up and abs(by_hand.nearest / high - 1) < 1e-3,
        f"Power and convolution are {apart:.1e} apart. 100 sampled steps: by hand {by_hand.nearest:.6f} (between "
        f"{by_hand.down:.4f} and {by_hand.up:.4f}), by the library {low:.6f} to {high:.6f}. A product of {k:,} points "
        f"takes {k * k / (k * math.log2(k)):,.0f} times k log k multiplications if done directly.",
        apart=apart,
        by_hand=by_hand.nearest,
        by_hand_down=by_hand.down,
        by_hand_up=by_hand.up,
        library_lower=low,
        library_upper=high,
    )


class _Asked:
    """A linear model's loss that counts how often the records are read."""

    def __init__(self) -> None:
        self.inner, self.times = LinearRecords(loss=LogisticLoss()), 0

    def values(self, theta: Array, X: Any, y: Any) -> Array:
        return self.inner.values(theta, X, y)

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        self.times += 1
        return self.inner.gradients(theta, X, y)


@check("102", mutant={"growth": 0.5})
def models_or_outputs(growth: float = 0.0) -> Finding:
    """Train a private model and ask it, counting reads of records; compute epsilon for as many private answers."""
    X, y = separable(200, 3, seed=102)
    records = _Asked()
    problem = per_record(records, X, y, shape=3)
    plan = gradient_plan(bounding=Clip(clip=1.0), steps=20, records=200, neighbours="replace_one")
    plan = plan.calibrated(Budget(epsilon=1.0, delta=1e-5))
    random = fixed_seed_invalidates_guarantee(102)
    found = follow(plan, problem, delta=1e-5, update=GradientStep(step_size=1.0), random=random)
    counts, models = (1, 100, 10_000), []
    noise = Gaussian(noise_multiplier=plan["gradients"].noise_multiplier)
    for count in counts:
        rng = np.random.default_rng(count)
        answers = rng.normal(size=(count, 3)) @ found.coef  # new people; no record is read
        models.append(epsilon(noise * records.times, delta=1e-5, neighbours="replace_one") if answers.size else 0.0)
    outputs = [epsilon(RandomizedResponse(epsilon=0.1) * c, delta=1e-5, neighbours="replace_one") for c in counts]
    noisy = [epsilon(Gaussian(noise_multiplier=10.0) * c, delta=1e-5, neighbours="replace_one") for c in counts]
    off = max(abs(cost / count**growth - 1) for cost, count in zip(models, counts, strict=True))
    return Finding.judged(
        off < 1e-6 and outputs[0] < outputs[1] < outputs[2] and noisy[0] < noisy[1] < noisy[2],
        f"After 1, 100 and 10,000 questions the records were read {records.times} times, all in training, and the "
        f"private model has cost {', '.join(f'{cost:.3f}' for cost in models)}; answers made private one by one cost "
        f"{', '.join(f'{cost:.3g}' for cost in outputs)} (randomised) or {', '.join(f'{cost:.3g}' for cost in noisy)} "
        "(Gaussian noise).",
        model=models[-1],
        reads=records.times,
        table={f"outputs_at_{count}": cost for count, cost in zip(counts, outputs, strict=True)},
    )
