"""Razaviyayn, lecture 11, beyond DP-SGD: other optimisers, no assumptions, numerical accountants (96 to 102)."""

import math
from functools import partial
from typing import Any

import numpy as np

from privet.accounting import Gaussian, RandomizedResponse, epsilon
from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.elementary import DiscretePair, GaussianPair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.theorems.composition import Cost, advanced_epsilon, optimal_delta
from privet.clipping import Clip
from privet.geometry import l2_ball
from privet.lectures import Finding, check
from privet.lectures.examples.privacy_loss import composed, convolved, loss_law, transformed
from privet.lectures.measures import Vector, apart, kolmogorov, listed
from privet.lectures.toy_problems import BUDGET, pointwise, separable
from privet.losses import LinearRecords, LogisticLoss, SquaredLoss
from privet.losses.loss import Array
from privet.noise import add_gaussian
from privet.plan import gradient_plan
from privet.privacy import Budget
from privet.problems import glm, per_record
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Poisson
from privet.solvers import Adafactor, Adam, AdamW, GradientStep, UpdateRule, dp_sgd, dp_svrg, follow
from privet.solvers.updates import Move

TENTH = Poisson(sampling_rate=0.1)
tenths = partial(dp_sgd, sampling=TENTH)


class _Overheard:
    """An optimiser that writes down every gradient it is handed, and its variance."""

    def __init__(self, rule: UpdateRule) -> None:
        self.rule, self.heard = rule, list[tuple[Vector, float]]()

    def start(self) -> Move:
        move = self.rule.start()

        def listening(theta: Vector, gradient: Vector, variance: float) -> Vector:
            self.heard.append((gradient, variance))
            return move(theta, gradient, variance)

        return listening


class _Asked:
    """A linear model's loss that counts how often records are read, and how many."""

    def __init__(self) -> None:
        self.inner, self.times, self.records = LinearRecords(loss=LogisticLoss()), 0, 0

    def values(self, theta: Array, X: Any, y: Any) -> Array:
        return self.inner.values(theta, X, y)

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        self.times += 1
        self.records += len(X)
        return self.inner.gradients(theta, X, y)


@check("96", mutant={"shift": 0.0})
def optimisers_see_noisy_gradients_only(shift: float = 1.0) -> Finding:
    """Run clipped DP-SGD with momentum and Adam, then replay the noisy gradients without the data."""
    X, y = separable(200, 3, seed=96)
    problem, off = glm("logistic", X, y, row_norm=1.0), 0.0
    for rule in (GradientStep(step_size=0.5, momentum=0.9), Adam(step_size=0.1)):
        ear, random = _Overheard(rule), fixed_seed_invalidates_guarantee(96)
        found = tenths(problem, budget=BUDGET, steps=30, clip=0.5, update=ear, release="all", random=random)
        points, move = np.asarray(found.iterates), rule.start()
        for t, (gradient, variance) in enumerate(ear.heard):
            off = max(off, apart(move(points[t], gradient, variance), points[t + round(shift)]))
    told = f"""From w_t, its own state and the noisy gradient alone each optimiser reproduces w_(t+{shift:g}) to
        {off:.1e}, in 60 steps without the data."""
    return Finding.judged(off < 1e-12, told, largest_difference=off)


def _replayed(rule: UpdateRule, heard: list[tuple[Vector, float]], start: Vector) -> Vector:
    """Where an optimiser ends that is handed noisy gradients, and no records."""
    move, theta = rule.start(), start
    for gradient, variance in heard:
        theta = move(theta, gradient, variance)
    return theta


@check("97", mutant={"with_svrg": 0.0})
def other_optimisers(with_svrg: float = 1.0) -> Finding:
    """Count the records that each optimiser reads, as against plain DP-SGD, and replay it without any."""
    X, y = separable(200, 3, seed=97)
    plan = gradient_plan(
        bounding=Clip(clip=1.0), sampling=TENTH, noise_multiplier=2.0, steps=20, records=200, neighbours="add_remove"
    )
    rules: dict[str, UpdateRule] = {
        "plain": GradientStep(step_size=0.1),
        "adam": Adam(step_size=0.1),
        "adamw": AdamW(adam=Adam(step_size=0.1)),
        "adafactor": Adafactor(step_size=0.1),
    }
    reads, off = {}, 0.0
    for name, rule in rules.items():
        ear, records, random = _Overheard(rule), _Asked(), fixed_seed_invalidates_guarantee(97)
        problem = per_record(records, X, y, shape=3)
        run = follow(plan, problem, delta=1e-5, update=ear, release="last", random=random)
        off, reads[name] = max(off, apart(_replayed(rule, ear.heard, np.zeros(3)), run.coef)), records.records
    records = _Asked()
    dp_svrg(
        per_record(records, X, y, shape=3),
        budget=Budget(epsilon=1.0, delta=1e-5),
        epochs=2,
        epoch_steps=10,
        sampling=TENTH,
        clip=1.0,
        difference_clip=1.0,
        step_size=0.1,
        neighbours="add_remove",
        records=200,
        random=fixed_seed_invalidates_guarantee(97),
    )
    reads["svrg"] = records.records
    # what that costs: its two snapshots read all records, its other 18 steps a tenth, with the noise of the others
    step = Gaussian(noise_multiplier=2.0)
    runs = {"plain": step.poisson(rate=0.1) * 20, "svrg": step.poisson(rate=0.1) * 18 + step * 2}
    costs = {f"epsilon_{name}": epsilon(run, delta=1e-5, neighbours="add_remove") for name, run in runs.items()}
    judged = [read for name, read in reads.items() if with_svrg or name != "svrg"]
    told = f"""20 steps, batches padded, read {reads["plain"]} records with plain steps, {reads["adam"]} with Adam,
        {reads["adamw"]} with AdamW and {reads["adafactor"]} with Adafactor, and from the noisy gradients alone each
        ends where it did, to {off:.0e}: they cost no more. SVRG reads {reads["svrg"]}, as its snapshots are full
        gradients: with the same noise epsilon {costs["epsilon_svrg"]:.3f} instead of {costs["epsilon_plain"]:.3f}."""
    holds = max(judged) <= reads["plain"] and off < 1e-12
    return Finding.judged(
        holds, told, replayed_off=off, table=costs | {f"reads_of_{name}": float(read) for name, read in reads.items()}
    )


@check("98", mutant={"sign": -1.0})
def no_assumptions_but_loose_composition(sign: float = 1.0) -> Finding:
    """Run DP-SGD on a loss without Lipschitz constant and with an outlier; find its epsilon by theorem and exactly."""
    X, y = separable(200, 3, seed=98)
    X[0] *= 1e6  # one gradient is a million times too large
    problem = pointwise(SquaredLoss(factor=2.0), X, y, domain=l2_ball(radius=5.0))
    random = fixed_seed_invalidates_guarantee(98)
    found = tenths(problem, budget=BUDGET, steps=20, clip=1.0, neighbours="add_remove", records=200, random=random)
    priced = found.plan.guarantee(delta=1e-5).epsilon  # the result's own is invalidated, as the seed is fixed
    run = Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 1_000
    bound = partial(epsilon, run, delta=1e-5, neighbours="add_remove")
    exact, loose = bound(accountant="contour"), bound(accountant="advanced")
    told = f"""Without a Lipschitz constant, and with an outlier, the run keeps epsilon {priced:.4f}; for 1,000 steps at
        rate 0.01 advanced composition proves {loose:.3f} where {exact:.3f} is exact."""
    kept = priced <= 1 and bool(np.isfinite(found.coef).all()) and problem.lipschitz is None
    holds = kept and sign * (loose - exact) > 0
    return Finding.judged(holds, told, epsilon_of_the_run=priced, epsilon_advanced=loose, epsilon_exact=exact)


@check("99", mutant={"factor": 0.5})
def losses_add_up(factor: float = 1.0) -> Finding:
    """Draw 20,000 adaptive runs of five steps with the library's noise; compare their losses with the composed pair."""
    runs, T, mu = 20_000, 5, 0.4
    random, (total, joint, before) = fixed_seed_invalidates_guarantee(99), np.zeros((3, runs))
    for _ in range(T):
        shift = np.where(before > 0, mu, -mu)  # each step asks what the last answer suggests
        units = np.rint(shift * 2.0**20).astype(np.int64)
        before = add_gaussian(units, step=2.0**-20, noise_stddev=1.0, random=random)
        joint += (before**2 - (before - shift) ** 2) / 2  # log-densities of the whole transcript
        total += factor * (shift * before - mu**2 / 2)  # each step's own loss
    off, far = apart(joint, total), kolmogorov(total, GaussianPair(math.sqrt(T) * mu))
    told = f"""The transcripts' losses are the sums of the steps' to {off:.1e}, and their law is {far:.2f} from that of
        one Gaussian with mu = sqrt(5) × {mu:g}, in units where 2.7 is chance once in a million."""
    return Finding.judged(off < 1e-9 and far < 2.7, told, largest_difference=off, kolmogorov=far)


@check("100", mutant={"factor": 0.5})
def tails_computed_or_bounded(factor: float = 1.0) -> Finding:
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
        while high / low > 1 + 1e-9:  # the least delta at which advanced composition proves e
            middle = math.sqrt(low * high)
            low, high = (low, middle) if advanced_epsilon([Cost(step, 0.0, T)], middle) <= e else (middle, high)
        gaps += [factor * chernoff / numeric - 1, factor * high / chernoff - 1]
        shown |= {f"numerical_at_{e:g}": numeric, f"chernoff_at_{e:g}": chernoff, f"advanced_at_{e:g}": high}
    off = abs(shown["numerical_at_3"] / optimal_delta(step, 0.0, T, epsilon=3.0) - 1)
    told = f"""100 answers of 0.1 at epsilon 3: delta is {shown["numerical_at_3"]:.3g} numerically,
        {shown["chernoff_at_3"]:.3g} by Chernoff's bound with the true moments, {shown["advanced_at_3"]:.3g} by advanced
        composition."""
    holds = min(gaps) >= 0 and off < 1e-3
    return Finding.judged(holds, told, least_gap=min(gaps), distance_from_closed_form=off, table=shown)


@check("101", mutant={"exponent": 0.5})
def fourier_accountant(exponent: float = 1.0) -> Finding:
    """Follow the recipe by hand: against direct convolution, and against the library's bracket, for a sampled step."""
    law = loss_law(MixturePair(0.2, 1.0, "remove"), span=12.0, points=2_048)
    fast, slow = transformed(law, round(4 * exponent)), convolved(law, 4)
    start = round((fast.first - slow.first) / law.width)
    window = slow.masses[max(start, 0) : max(start, 0) + 2_048]
    off = apart(fast.masses[: window.size], window)
    pair, T = MixturePair(0.1, 0.5, "remove"), 100
    by_hand = composed(pair, steps=round(T * exponent), epsilon=1.0, points=2**14)
    low, high = fourier_delta([(pair, T)], 1.0)
    k = 2**14
    told = f"""Power and convolution are {off:.1e} apart. 100 sampled steps: by hand {by_hand.nearest:.6f} (between
        {by_hand.down:.4f} and {by_hand.up:.4f}), by the library {low:.6f} to {high:.6f}. A product of {k:,} points
        takes {k * k / (k * math.log2(k)):,.0f} times k log k multiplications if done directly."""
    numbers = {"apart": off, "by_hand": by_hand.nearest, "by_hand_down": by_hand.down, "by_hand_up": by_hand.up}
    numbers |= {"library_lower": low, "library_upper": high}
    holds = off < 1e-12 and by_hand.down <= high and low <= by_hand.up and abs(by_hand.nearest / high - 1) < 1e-3
    return Finding.judged(holds, told, table=numbers)


@check("102", mutant={"growth": 0.5})
def models_or_outputs(growth: float = 0.0) -> Finding:
    """Train a private model and ask it, counting reads of records; compute epsilon for as many private answers."""
    X, y = separable(200, 3, seed=102)
    records = _Asked()
    problem = per_record(records, X, y, shape=3)
    plan = gradient_plan(bounding=Clip(clip=1.0), steps=20, records=200, neighbours="replace_one").calibrated(BUDGET)
    random = fixed_seed_invalidates_guarantee(102)
    found = follow(plan, problem, delta=1e-5, update=GradientStep(step_size=1.0), random=random)
    counts, models = (1, 100, 10_000), []
    noise = Gaussian(noise_multiplier=plan["gradients"].noise_multiplier)
    for count in counts:
        answers = np.random.default_rng(count).normal(size=(count, 3)) @ found.coef  # new people; no record is read
        models.append(epsilon(noise * records.times, delta=1e-5, neighbours="replace_one") if answers.size else 0.0)
    outputs = [epsilon(RandomizedResponse(epsilon=0.1) * c, delta=1e-5, neighbours="replace_one") for c in counts]
    noisy = [epsilon(Gaussian(noise_multiplier=10.0) * c, delta=1e-5, neighbours="replace_one") for c in counts]
    off = max(abs(cost / count**growth - 1) for cost, count in zip(models, counts, strict=True))
    told = f"""After 1, 100 and 10,000 questions the records were read {records.times} times, all in training, and the
        private model has cost {listed(models, ".3f")}; answers made private one by one cost {listed(outputs, ".3g")}
        (randomised) or {listed(noisy, ".3g")} (Gaussian noise)."""
    holds = off < 1e-6 and outputs[0] < outputs[1] < outputs[2] and noisy[0] < noisy[1] < noisy[2]
    numbers = {"model": models[-1], "reads": records.times}
    return Finding.judged(
        holds, told, table=numbers | {f"outputs_at_{count}": cost for count, cost in zip(counts, outputs, strict=True)}
    )
