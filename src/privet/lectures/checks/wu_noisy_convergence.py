"""Wu, lecture 13, section 2.1: how near the optimum descent with gradient estimates comes (31 to 35)."""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from privet.clipping import Declared
from privet.geometry import box, l2_ball
from privet.lectures import Finding, check, lectures_prescription
from privet.lectures.measures import listed
from privet.lectures.noisy_runs import noisy_run
from privet.lectures.toy_problems import BUDGET, average_loss, largest_coordinate, linear, logistic_in_ball
from privet.plan import Meter, gradient_plan
from privet.problems import glm
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import FixedSize, OneRecord, Poisson, Sampling
from privet.solvers import exponential_mechanism
from privet.solvers.gradient import PrivateGradient
from privet.theory import estimated_gradient_bound, exponential_mechanism_bound, printed_order


@check("31", mutant={"constant": 0.5})
def theorem_2_6(constant: float = 1.0, full: bool = False) -> Finding:
    """Work out the theorem's constant from its T, step size and noise, and run it on a logistic loss."""
    log = math.log(1e5)
    printed = lectures_prescription("theorem_2_6", n=1000, d=10, radius=1.0, diameter=1.0, lipschitz=1.0, budget=BUDGET)
    hidden = printed.bound.value / printed.printed_risk
    n, runs = (200, 8) if full else (40, 2)
    run = lectures_prescription("theorem_2_6", n=n, d=5, radius=1.0, lipschitz=1.0, budget=BUDGET)
    exact, best = logistic_in_ball(n, 5, seed=31)
    problem = glm("logistic", exact.X, exact.y, row_norm=1.0, domain=exact.domain)
    times, eta = run.noise_stddev * n, run.step_size
    excess = []
    for seed in range(runs):
        found = noisy_run(problem, noise_multiplier=times, steps=run.steps - 1, step_size=eta, seed=seed)
        excess.append(average_loss(exact, found.coef) - average_loss(exact, best))
    mean, claimed = float(np.mean(excess)), constant * (9 + 1 / log) / 2 * run.printed_risk
    told = f"""The O(.) hides {hidden:.4f} = (9 + 1/ln(1/delta))/2: {printed.bound.value:.4f} for n = 1000, d = 10. With
        n = {n}, d = 5 and T = {run.steps} the excess is {mean:.4f} of {claimed:.3f} allowed."""
    numbers = {"hidden_constant": hidden, "explicit_bound": printed.bound.value, "steps": run.steps, "excess": mean}
    numbers |= {"allowed": claimed}
    return Finding.judged(hidden <= constant * (9 + 1 / log) / 2 * (1 + 1e-6) and mean <= claimed, told, table=numbers)


@check("32", mutant={"constant": 0.5})
def exponential_mechanism_has_d(constant: float = 1.0) -> Finding:
    """Integrate the density on a line, draw from it with the library, and compare how bounds grow with d."""
    n, epsilon = 200, 1.0
    beta = epsilon * n / (2 * 2.0)  # R = 2 is the diameter of [−1, 1], G = 1
    w = np.linspace(-1.0, 1.0, 200_001)
    weight = np.exp(-beta * (w + 1))
    excess = float(((w + 1) * weight).sum() / weight.sum())  # the linear loss w
    bound = exponential_mechanism_bound(diameter=2.0, lipschitz=1.0, d=1, exponent=beta).value
    problem = glm("absolute", [[1.0]] * n, [-1.0] * n, row_norm=1.0, domain=box(low=-1.0, high=1.0, size=1))
    random = fixed_seed_invalidates_guarantee(32)
    draws = [
        float(exponential_mechanism(problem, epsilon=epsilon, pieces=128, random=random).coef[0]) + 1 for _ in range(10)
    ]
    drawn = float(np.mean(draws))
    off = abs(drawn - excess) / (excess / math.sqrt(len(draws)))
    order = partial(printed_order, n=10**5, diameter=1.0, lipschitz=1.0, budget=BUDGET)
    growth = [order("exponential", d=400) / order("exponential", d=100)]
    growth.append(order("theorem_2_6", d=400) / order("theorem_2_6", d=100))
    return Finding.judged(
        excess <= constant * bound * (1 + 1e-3) and off < 5 and abs(growth[0] - 4) < 1e-9 and abs(growth[1] - 2) < 1e-9,
        f"In one dimension the excess is {excess:.6f} of d/beta = {bound:.6f} (ten draws by the library: {drawn:.4f}); "
        f"from d = 100 to 400 its bound grows {growth[0]:.3g}-fold, that of noisy descent {growth[1]:.3g}-fold.",
        excess=excess,
        bound=bound,
        mean_of_draws=drawn,
        growth_of_exponential=growth[0],
        growth_of_descent=growth[1],
    )


@check("33", mutant={"scale": 2.0})
def gradient_estimates(scale: float = 1.0, full: bool = False) -> Finding:
    """Draw noisy gradients under three ways to sample; test mean and second moment at five standard errors."""
    rng, draws = np.random.default_rng(33), 20_000 if full else 300
    rows = rng.normal(size=(20, 3)) / 4 + 0.5
    problem, mean, off, moments = linear(rows), rows.mean(axis=0), 0.0, {}
    blank = gradient_plan(
        bounding=Declared(lipschitz=2.0), noise_multiplier=0.1, steps=draws, records=20, neighbours="replace_one"
    )
    ways: dict[str, Sampling] = {"one": OneRecord(), "five": FixedSize(batch=5), "poisson": Poisson(sampling_rate=0.25)}
    for name, sampling in ways.items():
        plan = replace(blank, releases=(replace(blank["gradients"], sampling=sampling),))
        estimate = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(33)))
        drawn = np.array([estimate(np.zeros(3)) for _ in range(draws)])
        error = drawn.std(axis=0) / math.sqrt(draws)
        off = max(off, float((np.abs(drawn.mean(axis=0) - scale * mean) / error).max()))
        moments[f"second_moment_{name}"] = float((drawn**2).sum(axis=1).mean())
    told = f"""The mean of {draws:,} noisy gradients is {off:.1f} standard errors from the true gradient, at most, for
        single records, batches of five and Poisson batches; second moments {listed(moments.values(), ".3f")}."""
    return Finding.judged(off < 5 and max(moments.values()) < math.inf, told, standard_errors=off, table=moments)


@check("34", mutant={"constant": 0.5})
def lemma_2_7(constant: float = 1.0, full: bool = False) -> Finding:
    """Descend with noise of three sizes on two losses, and compare the mean excess with the bound."""
    rng, runs, T, d = np.random.default_rng(34), 400 if full else 20, 64, 64
    shares, (largest, least) = {}, largest_coordinate(d)
    line = linear([[1.0] + [0.0] * (d - 1)], domain=l2_ball(radius=1.0))
    for name, problem, best in (("largest", largest, least), ("linear", line, -1.0)):
        for sigma in (0.0, 0.1, 0.5):
            moment = 1 + d * sigma**2
            eta = 1 / math.sqrt(T * moment)
            excess = []
            for _ in range(runs if sigma else 1):
                w, total = np.zeros(d), np.zeros(d)
                for _ in range(T):
                    total += w
                    w = problem.domain.project(w - eta * (problem.plain_gradient(w) + sigma * rng.normal(size=d)))
                excess.append(average_loss(problem, total / T) - best)
            claimed = estimated_gradient_bound(steps=T, distance=1.0, second_moment=moment, step_size=eta).value
            shares[f"share_{name}_{sigma:g}".replace(".", "_")] = float(np.mean(excess)) / claimed
    told = f"""The mean excess is {listed(shares.values(), ".3f")} of the bound, for two losses and noise 0, 0.1, 0.5:
        never above, and all of it without noise."""
    return Finding.judged(max(shares.values()) <= constant * (1 + 1e-9), told, table=shares)


@check("35", mutant={"power": 2.0})
def second_moment_of_noise(power: float = 1.0) -> Finding:
    """Add noise to a unit gradient in ten dimensions 200,000 times; average its length and squared length."""
    rng, d, sigma, n = np.random.default_rng(35), 10, 0.5, 200_000
    noisy = sigma * rng.normal(size=(n, d))
    noisy[:, 0] += 1.0
    lengths = np.sqrt((noisy**2).sum(axis=1))
    found, claimed = float((lengths**power).mean()), 1 + d * sigma**2
    error = float((lengths**power).std()) / math.sqrt(n)
    told = f"""The mean of |g~|^{power:g} is {found:.4f}, where |g|^2 + d sigma^2 = {claimed:g}; that of |g~|^2 is
        {float((lengths**2).mean()):.4f}."""
    numbers = {"mean_of_power": found, "claimed": claimed, "mean_squared_length": float((lengths**2).mean())}
    numbers |= {"mean_length": float(lengths.mean())}
    return Finding.judged(abs(found - claimed) < 5 * error, told, table=numbers)
