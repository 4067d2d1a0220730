"""Brown, lecture 13, sections 3 and 4: bounded gradients, noise, the rank of the data; the other ways (45 to 53)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privet.accounting.theorems.gaussian_profile import epsilon_bounds, largest_mu, profile
from privet.clipping import Clip, Declared
from privet.geometry import box, l2_ball
from privet.lectures import Finding, check
from privet.lectures.examples.lopsided_valley import PRINTED, simulated_excess, valley_excess
from privet.lectures.examples.rank_and_projection import allowed, excess
from privet.lectures.grid import PAIRS, exact_ratio, false_points, first_falses, least_ratio, scaled
from privet.lectures.measures import Vector, apart, longest
from privet.lectures.noisy_runs import walk
from privet.lectures.toy_problems import BUDGET, average_loss, pointwise, separable
from privet.losses import HuberLoss, LinearRecords, LogisticLoss, SquaredLoss, gradient_bound, prediction_bound
from privet.losses.loss import Array
from privet.privacy import Budget
from privet.problems import Problem, glm, per_record
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import (
    exponential_mechanism,
    newton_descent,
    objective_perturbation,
    output_perturbation,
    zeroth_order_descent,
)
from privet.sums import record_sum
from privet.theory import projector, rank, seminorm


@check("45", mutant={"power": 1.5})
def clipping(power: float = 1.0) -> Finding:
    """Clip vectors of all lengths, zero among them, with the library, and compare with the formula."""
    rng, L = np.random.default_rng(45), 1.5
    rows = rng.normal(size=(200, 4)) * np.geomspace(1e-3, 1e3, 200)[:, None]
    rows[0] = 0.0
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    formula = np.minimum(1.0, (L / np.maximum(norms, 1e-100)) ** power) * rows
    found = np.array([record_sum(row[None], rule=Clip(clip=L), max_records=1).value for row in rows])
    off, length = apart(found, formula), longest(found)
    told = f"""200 vectors of length 0 to {norms.max():.0f} are clipped as the formula says, to {off:.1e}; none is
        longer than {L:g}, and 0 stays 0."""
    return Finding.judged(off < 1e-9 and length <= L and not found[0].any(), told, apart=off, longest=length)


@check("46", mutant={"constant": 1.0})
def bounded_data(constant: float = 2.0) -> Finding:
    """Divide a regression's gradients by x(y - <x, theta>), and search for the longest over bounded x, y and theta."""
    rng, worst, least, spread = np.random.default_rng(46), 0.0, math.inf, 0.0
    for X, Y, Theta in ((2.0, 3.0, 0.5), (1.0, 0.1, 5.0), (10.0, 1.0, 0.01)):
        x = rng.normal(size=(2000, 3))
        x *= X * rng.uniform(size=(2000, 1)) ** 0.2 / np.linalg.norm(x, axis=1, keepdims=True)
        x[0], theta = np.array([X, 0.0, 0.0]), np.array([Theta, 0.0, 0.0])
        y = rng.uniform(-Y, Y, size=2000)
        y[0] = -Y  # the worst corner: parallel, and the label on the other side
        gradients = LinearRecords(loss=SquaredLoss()).gradients(theta, x, y)
        spread = max(spread, apart(gradients, -2.0 * x * (y - x @ theta)[:, None]))
        claimed, length = constant * X * (Y + X * Theta), longest(gradients)
        worst, least = max(worst, length / claimed), min(least, length / claimed)
        reach = prediction_bound(row_norm=X, coefficient_norm=Theta)
        proven = gradient_bound(SquaredLoss(label_bound=Y), row_norm=X, prediction_bound=reach) or math.inf
        worst = max(worst, proven / claimed)
    mu = largest_mu(1.0, 1e-5) * 2.0
    told = f"""The gradient is -2 times x(y - <x, theta>), to {spread:.0e}: it has that form, and bounded x, y, theta
        bound it by {constant:g} X(Y + X Theta), of which {least:.6f} to {worst:.6f} is reached. Who reads the form as
        an equality and calibrates with half of this for (1, 1e-5) gets epsilon {epsilon_bounds(mu, 1e-5)[1]:.3f}, and
        delta {profile(mu, 1.0):.2g} at epsilon 1."""
    numbers = {"share_of_bound": worst, "least_share": least, "form_apart": spread}
    numbers |= {"epsilon_if_read_as_equality": epsilon_bounds(mu, 1e-5)[1]}
    numbers |= {"delta_if_read_as_equality": profile(mu, 1.0)}
    return Finding.judged(worst <= 1 + 1e-12 and least > 0.99 and spread < 1e-12 * 1e3, told, table=numbers)


@check("47", mutant={"constant": 0.5})
def by_fiat(constant: float = 1.0) -> Finding:
    """Declare a Lipschitz constant that is true, and one that is not, and see what the library then sums."""
    rng, n, L = np.random.default_rng(47), 50, constant * 1.0
    X = rng.normal(size=(n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y, theta = np.zeros(n), np.array([4.0, 0.0, 0.0])
    free = pointwise(LogisticLoss(), X, y)
    assumed = free.gradient_sum(theta, rule=Declared(lipschitz=L), max_records=n).value / n
    off = apart(assumed, free.plain_gradient(theta))
    length = longest(LinearRecords(loss=LogisticLoss()).gradients(theta, X, y))
    alone = pointwise(SquaredLoss(), [[1.0]], [1e6]).gradient_sum(np.zeros(1), rule=Declared(lipschitz=L)).value
    forced = float(np.linalg.norm(alone))
    proven = glm("logistic", X, y, row_norm=1.0).lipschitz
    told = f"""Logistic gradients of rows of length 1 are at most {length:.4f}; assuming {L:g} changes their average by
        {off:.1e}. Where the assumption is false, a gradient of 2e6 counts as {forced:.6f}: privacy does not hang on
        it."""
    holds = length <= L and off < 1e-9 and forced <= L and proven == L
    return Finding.judged(holds, told, longest=length, changed_by=off, false_assumption_counts_as=forced)


def _average_of_copies(sign: float, sigma: float, n: int, steps: int, copies: int, rng: np.random.Generator) -> Vector:
    """Algorithm 1 on n − 1 Huber losses and one linear one of slope `sign`, in independent copies; its averages."""
    huber = HuberLoss(threshold=1.0)

    def gradient(theta: Vector) -> Vector:
        noise = sigma * rng.standard_normal(copies)
        return np.asarray(((n - 1) * huber.derivative(theta, 0.0) + sign) / n + noise, dtype=np.float64)

    return walk(gradient, size=copies, steps=steps - 1, step_size=n / (n - 1))


@check("48", mutant={"constant": math.sqrt(2)})
def claim_3_2(constant: float = 1.0, full: bool = False) -> Finding:
    """Hold claim 3.2's noise on 408 pairs against the exact accountant, and attack the average that is released."""
    multiplier = scaled("claim_3_2", constant)
    false = false_points(multiplier)
    below = [pair for pair in false if pair[0] <= 1]
    numbers = first_falses(multiplier)
    for e, d in ((1.0, 1e-5), (5.0, 1e-5), (10.0, 1e-5), (10.0, 1e-1), (1.0, 1e-12)):
        mu, name = 1.0 / multiplier(e, d), f"of_{e:g}_at_{d:.0e}"
        numbers[f"true_epsilon_{name}"] = epsilon_bounds(mu, d)[1]
        numbers[f"true_delta_{name}"] = profile(mu, e)
        numbers[f"ratio_{name}"] = exact_ratio(multiplier, e, d)
    rng, n, worst, copies = np.random.default_rng(48), 10_000, 0.0, 200_000 if full else 20_000
    for e, T in ((5.0, 50), (1.0, 400)):
        # Every iterate is −η(±1/n + z): nothing of the past is left, and the average is normal with (T − 1)/T of μ².
        predicted = math.sqrt((T - 1) / T) / multiplier(e, 1e-5)
        numbers[f"mu_of_average_{e:g}"] = predicted
        numbers[f"true_epsilon_of_average_{e:g}"] = epsilon_bounds(predicted, 1e-5)[1]
        numbers[f"true_delta_of_average_{e:g}"] = profile(predicted, e)
        if full or T == 50:
            sigma = 2 / n * math.sqrt(T) * multiplier(e, 1e-5)
            down, up = (_average_of_copies(sign, sigma, n, T, copies, rng) for sign in (1.0, -1.0))
            spread = math.sqrt((down.var() + up.var()) / 2)
            measured = float(up.mean() - down.mean()) / spread
            numbers[f"measured_mu_of_average_{e:g}"] = measured
            worst = max(worst, abs(measured - predicted) / math.sqrt((2 + predicted**2 / 4) / copies))
    told = f"""False at {len(false)} of {len(PAIRS)} points, {len(below)} of them with epsilon at most 1. Asked for 1, 5
        and 10 at delta = 1e-5 it gives {numbers["true_epsilon_of_1_at_1e-05"]:.2f},
        {numbers["true_epsilon_of_5_at_1e-05"]:.2f} and {numbers["true_epsilon_of_10_at_1e-05"]:.1f}; even the average
        alone gives {numbers["true_epsilon_of_average_5"]:.2f} for 5 (its mu, measured:
        {numbers["measured_mu_of_average_5"]:.3f}, {worst:.1f} standard errors off)."""
    counts = {"points": len(PAIRS), "false_points": len(false), "points_up_to_1": sum(e <= 1 for e, _ in PAIRS)}
    more = {"false_points_up_to_1": len(below), "least_ratio": least_ratio(multiplier), "standard_errors": worst}
    return Finding.judged(not below and worst < 5, told, within=bool(false), table=counts | more | numbers)


@check("49", mutant={"constant": 4.0})
def theorem_4_1(constant: float = 2.0, full: bool = False) -> Finding:
    """Work out the best step size in a lopsided valley, simulate it, and lay data of rank 5 into more dimensions."""
    few = [0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 4.0, 10.0, 40.0]
    factors = np.geomspace(0.4, 40.0, 61).tolist() if full else few
    found = {factor: valley_excess(factor, fineness=0.5 if full else 1.0) for factor in factors}
    best = min(found, key=found.__getitem__)
    mean, error = simulated_excess(best, copies=10_000 if full else 400, seed=49)
    claimed = math.sqrt(1 + constant * math.log(1e5)) / 50
    mu = math.sqrt(2 / math.log(1e5))  # of σ = L√(2TΛ)/(nε), from which 2 rank(M) would follow; records replaced
    numbers, bound = {}, allowed()
    for d in (5, 50, 500, 3000) if full else (5, 500):
        for name, projected in (("", False), ("_projected", True)):
            numbers[f"excess_in_{d}{name}"] = excess(d, projected=projected, runs=20 if full else 2)
    flat = all(numbers[name] <= bound for name in numbers if not name.endswith("projected"))
    told = f"""In a lopsided valley (n = 50, rank 1, T = {PRINTED.steps}) the best of {len(factors)} step sizes has an
        excess of {found[best]:.4f} at least (simulated: {mean:.4f}), where {claimed:.4f} is claimed;
        {PRINTED.bound.value:.4f} follows from the printed noise. Rank 5 in 5 and 500 dimensions: excess
        {numbers["excess_in_5"]:.3f} and {numbers["excess_in_500"]:.3f}; with projection
        {numbers["excess_in_5_projected"]:.3f} and {numbers["excess_in_500_projected"]:.3f}."""
    found_numbers = {"steps": PRINTED.steps, "least_excess": found[best], "excess_of_smallest_step": found[factors[0]]}
    found_numbers |= {"excess_of_largest_step": found[factors[-1]], "simulated_excess": mean}
    found_numbers |= {"simulated_standard_error": error, "claimed": claimed, "derived_bound": PRINTED.bound.value}
    found_numbers |= {"true_epsilon_of_noise_for_2": epsilon_bounds(mu, 1e-5)[1]}
    found_numbers |= {"true_delta_of_noise_for_2": profile(mu, 1.0), "rank_bound": bound}
    return Finding.judged(max(found[best], mean - 5 * error) <= claimed and flat, told, table=found_numbers | numbers)


def _low_rank(seed: int) -> tuple[Vector, Vector, Vector, Vector]:
    """Ten records of rank 3 in six dimensions; eigenvalues and eigenvectors of Σ x xᵀ; a vector."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 3)) @ rng.normal(size=(3, 6))
    values, vectors = np.linalg.eigh(X.T @ X)
    return X, values, vectors, rng.normal(size=6)


@check("50", mutant={"least": 0.5})
def projector_on_the_span(least: float = 0.0) -> Finding:
    """Build M from eigenvectors whose eigenvalue is above `least` (of the largest), against the library's."""
    X, values, vectors, v = _low_rank(50)
    kept = (values > (least + 1e-12) * values.max()).astype(float)  # a zero eigenvalue comes out as 1e-16
    M = vectors @ np.diag(kept) @ vectors.T
    off, records, outside = apart(M, projector(X)), apart(X @ M, X), apart(X @ (v - M @ v))
    told = f"""M from {kept.sum():.0f} of 6 eigenvectors and the library's are {off:.1e} apart; records move by
        {records:.1e} under it, and what it drops is orthogonal to them to {outside:.1e}."""
    holds = off < 1e-12 and records < 1e-12 and outside < 1e-12 and kept.sum() == rank(X)
    return Finding.judged(holds, told, apart=off, rank=rank(X), records_move=records, left_over=outside)


@check("51", mutant={"power": 1.0})
def seminorm_of_the_data(power: float = 0.5) -> Finding:
    """Compare (vᵀMv)^power with the library's length; test homogeneity, triangles, and a vector it cannot see."""
    X, _, vectors, v = _low_rank(51)
    M, rng = projector(X), np.random.default_rng(51)

    def length(w: Vector) -> float:
        return float(max(float(w @ M @ w), 0.0) ** power)

    off, stretched, triangle = abs(length(v) - seminorm(v, M)), abs(length(3 * v) - 3 * length(v)), -math.inf
    for _ in range(200):
        a, b = rng.normal(size=(2, 6))
        triangle = max(triangle, length(a + b) - length(a) - length(b))
    unseen = seminorm(vectors[:, 0], M)
    told = f"""The length is the library's to {off:.1e}, is homogeneous to {stretched:.1e} and keeps 200 triangle
        inequalities; a unit vector off the span has length {unseen:.1e}."""
    numbers = {"apart": off, "stretched": stretched, "worst_triangle": triangle, "length_off_the_span": unseen}
    holds = off < 1e-12 and stretched < 1e-12 and triangle <= 1e-12 and unseen < 1e-7
    return Finding.judged(holds, told, table=numbers)


@check("52", mutant={"dropped": 0.5})
def components_kept(dropped: float = 0.0) -> Finding:
    """Split a vector along eigenvectors, keep those of positive eigenvalue, and compare with Mv."""
    X, values, vectors, v = _low_rank(52)
    weights = np.where(values > 1e-12 * values.max(), 1.0, dropped)
    by_hand = vectors @ (weights * (vectors.T @ v))
    off = apart(by_hand, projector(X) @ v)
    told = f"Keeping {int((values > 1e-12 * values.max()).sum())} of 6 components gives Mv to {off:.1e}."
    numbers: dict[str, float] = {"apart": off, "length_of_vector": float(np.linalg.norm(v))}
    numbers |= {"length_of_image": float(np.linalg.norm(by_hand))}
    return Finding.judged(off < 1e-12, told, table=numbers)


class Network:
    """A network of two hidden units that multiply: the loss ½(θ₁ tanh(θ₂x) − y)² is not convex."""

    def values(self, theta: Array, X: Any, y: Any) -> Array:
        return np.asarray(0.5 * (theta[0] * np.tanh(theta[1] * np.asarray(X)[:, 0]) - y) ** 2)

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        bent = np.tanh(theta[1] * np.asarray(X)[:, 0])
        rest = theta[0] * bent - y
        return np.stack([rest * bent, rest * theta[0] * (1 - bent**2) * np.asarray(X)[:, 0]], axis=1)


def _two_wells(n: int) -> tuple[float, float, float]:
    """Of n losses (w² − 1)² ± w/10, how far one record moves the minimiser; how far curvature 1 would let it; and how
    much higher a Newton step from 0.1 ends.
    """
    w = np.linspace(-2.0, 2.0, 40_001)
    best = [float(w[np.argmin((w**2 - 1) ** 2 + tilt * w / 10)]) for tilt in (1 / n, -1 / n)]

    def loss(v: float) -> float:
        return (v * v - 1) ** 2

    newton = 0.1 - 4 * 0.1 * (0.1**2 - 1) / (12 * 0.1**2 - 4)
    return abs(best[0] - best[1]), 2 * 0.1 / n, loss(newton) - loss(0.1)


@check("53", mutant={"suited": 2.0})
def other_ways(suited: float = 1.0) -> Finding:
    """Run five methods on a linear model; then test on two wells and a network what each of their proofs needs."""
    X, y = separable(500, 1, seed=53)
    line = glm("logistic", X, y, row_norm=1.0)
    interval = glm("logistic", X, y, row_norm=1.0, domain=box(low=-2.0, high=2.0, size=1))
    ways: dict[str, tuple[Problem, Callable[[Any], Any]]] = {
        "exponential": (interval, lambda p: exponential_mechanism(p, epsilon=1.0, pieces=64)),
        "output": (interval, lambda p: output_perturbation(p, budget=BUDGET)),
        "objective": (line, lambda p: objective_perturbation(p, budget=BUDGET)),
        "zeroth_order": (line, lambda p: zeroth_order_descent(p, budget=BUDGET, steps=20, clip=1.0, step_size=0.5)),
        "newton": (line, lambda p: newton_descent(p, budget=BUDGET, steps=3, clip=1.0)),
    }
    costs = {f"epsilon_of_{name}": float(run(problem).guarantee.epsilon) for name, (problem, run) in ways.items()}
    moved, proof, uphill = _two_wells(500)
    cells = 64.0**100  # of a grid of 64 a side in 100 dimensions: what an exact draw looks at
    inputs = np.random.default_rng(53).uniform(-1, 1, size=(500, 1))
    network = per_record(Network(), inputs, 1.5 * np.tanh(2.0 * inputs[:, 0]), shape=2, domain=l2_ball(radius=3.0))
    before = average_loss(network, np.array([0.5, 0.5]))
    found = zeroth_order_descent(
        network,
        budget=Budget(epsilon=20.0, delta=1e-5),
        steps=150,
        clip=1.0,
        step_size=0.3,
        start=np.array([0.5, 0.5]),
        release="last",
        random=fixed_seed_invalidates_guarantee(53),
    )
    fell = 1 - average_loss(network, found.coef) / before
    fit = [cells < 1e9, moved <= proof, moved <= proof, fell > 0.5, uphill <= 0]
    told = f"""All five learn a linear model within epsilon = 1. On two wells one record of 500 moves the minimiser by
        {moved:.3f}, where output and objective perturbation count on {proof:.4f}; a Newton step from 0.1 ends
        {uphill:.4f} higher; an exact draw in 100 dimensions looks at 64^100 cells. Zeroth-order descent lowers a
        network's loss by {100 * fell:.0f} %. So {sum(fit)} of the five is fit for it."""
    numbers = {"fit_for_networks": float(sum(fit)), "minimiser_moves": moved, "proof_counts_on": proof}
    numbers |= {"newton_ends_higher_by": uphill, "zeroth_order_lowers_by": fell}
    return Finding.judged(max(costs.values()) <= 1.0 and sum(fit) == suited and fit[3], told, table=numbers | costs)
