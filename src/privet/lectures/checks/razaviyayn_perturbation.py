"""Razaviyayn, lecture 11, recap of private optimisation: output and objective perturbation (76 to 82)."""

import math
from functools import partial

import numpy as np

from privet.clipping import Clip
from privet.geometry import l2_ball, whole_space
from privet.lectures import Finding, check
from privet.lectures.examples import tilted_median as example
from privet.lectures.measures import Vector, apart, listed, measured_noise, refuses
from privet.lectures.toy_problems import BUDGET, separable, unit_plan
from privet.losses import AbsoluteLoss, HuberLoss, LogisticLoss, Loss
from privet.privacy import Budget
from privet.problems import LinearProblem, glm
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import ObjectivePerturbation, objective_perturbation, output_perturbation
from privet.solvers.minimise import Minimiser
from privet.theory import Prescription, trivial_bound


def _logistic(n: int, d: int, *, seed: int, radius: float | None = None, ridge: float = 0.0) -> LinearProblem:
    X, y = separable(n, d, seed=seed)
    return glm(
        "logistic", X, y, row_norm=1.0, ridge=ridge, domain=whole_space() if radius is None else l2_ball(radius=radius)
    )


def _risk(problem: LinearProblem, w: Vector) -> float:
    """Average loss and penalty at w; not private."""
    X = problem.table.units * problem.table.step
    return float(np.mean(problem.loss.value(X @ w, problem.labels))) + problem.ridge.value(w)


def _least_risk(problem: LinearProblem, steps: int = 400) -> float:
    """The least risk on the problem's set, by accelerated projected descent."""
    w = v = np.zeros(problem.shape)
    for k in range(steps):
        new = np.asarray(problem.domain.project(v - 4.0 * problem.plain_gradient(v)))  # curvature at most 1/4
        v, w = new + k / (k + 3) * (new - w), new
    return _risk(problem, w)


@check("76", mutant={"share": 0.5})
def regularised_risk(share: float = 1.0) -> Finding:
    """Differentiate the printed objective numerically against the library; compare clipped sums without it."""
    problem, plain = _logistic(200, 4, seed=76, ridge=0.3), _logistic(200, 4, seed=76)
    w, h = np.array([0.5, -1.0, 2.0, 0.1]), 1e-5

    def objective(w: Vector) -> float:
        return _risk(plain, w) + share * 0.3 / 2 * float(w @ w)

    numeric = np.array([(objective(w + h * e) - objective(w - h * e)) / (2 * h) for e in np.eye(4)])
    off = apart(numeric, problem.plain_gradient(w))
    sums = [p.gradient_sum(w, rule=Clip(clip=0.2)).units for p in (problem, plain)]
    same = bool((sums[0] == sums[1]).all())
    told = f"""The printed objective's slope is within {off:.1e} of the library's gradient, and the clipped sums with
        and without penalty {"agree to the last bit" if same else "differ"}: it depends on no data."""
    return Finding.judged(off < 1e-8 and same, told, largest_difference=off)


@check("77", mutant={"power": 1.0})
def output_perturbation_order(power: float = 0.5, full: bool = False) -> Finding:
    """Fit how the explicit bound grows with n, d and epsilon; draw on a cone, where its noise hurts most."""

    def planned(n: int, d: int, e: float = 1.0) -> Prescription:
        return unit_plan("output_perturbation", n=n, d=d, budget=Budget(epsilon=e, delta=1e-12))

    def proved(n: int, d: int, e: float = 1.0) -> float:
        return planned(n, d, e).excess_risk

    with_n = -math.log(proved(10**6, 16) / proved(10**4, 16)) / math.log(100)
    with_d = math.log(proved(10**6, 1024) / proved(10**6, 16)) / math.log(8)  # of sqrt(d)
    with_e = -math.log(proved(10**6, 16, 1.0) / proved(10**6, 16, 0.1)) / math.log(10)
    rng, cones = np.random.default_rng(77), {}
    for n, d, e in ((10**3, 4, 1.0), (10**5, 4, 1.0), (10**5, 64, 1.0), (10**5, 4, 0.1)):
        plan = planned(n, d, e)  # the minimiser of |w| is 0, with regulariser and without; then noise, then projection
        moved = (plan.noise_stddev or math.nan) * np.linalg.norm(rng.normal(size=(4_000, d)), axis=1)
        cones[f"share_of_cone_{n}_{d}_{e:g}".replace(".", "_")] = (
            float(np.minimum(moved, 1.0).mean()) / plan.excess_risk
        )
    problem, random = _logistic(200, 5, seed=77, radius=1.0), fixed_seed_invalidates_guarantee(77)
    found = [output_perturbation(problem, budget=BUDGET, random=random) for _ in range(100 if full else 8)]
    excess = float(np.mean([_risk(problem, result.coef) for result in found])) - _least_risk(problem)
    share = excess / float(found[0].bound or math.nan)
    told = f"""The bound falls like n to the power -{with_n:.3f} and epsilon to the power -{with_e:.3f}, and grows like
        sqrt(d) to the power {with_d:.3f}, where {power:g} is claimed. On a cone the excess is
        {min(cones.values()):.3f} to {max(cones.values()):.3f} of it, so it is at most {1 / min(cones.values()):.2f}
        times too large; on a logistic loss of 200 records {share:.3f}."""
    numbers = {"power_of_n": with_n, "power_of_root_d": with_d, "power_of_epsilon": with_e, "share_of_logistic": share}
    holds = max(abs(fitted - power) for fitted in (with_n, with_d, with_e)) < 0.02 and share <= 1
    return Finding.judged(holds and 0.4 < min(cones.values()) <= max(cones.values()) <= 1, told, table=numbers | cones)


@check("78", mutant={"constant": 0.5})
def trivial_algorithm(constant: float = 1.0) -> Finding:
    """Take random and extreme points of a ball for a linear, a logistic and an absolute loss; compare with LD."""
    rng, radius, worst = np.random.default_rng(78), 2.0, {}
    X = rng.normal(size=(40, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    points = rng.normal(size=(300, 3))
    points *= radius / np.linalg.norm(points, axis=1, keepdims=True)
    points[150:] *= rng.random((150, 1))
    ends = np.array([[radius, 0.0, 0.0], [-radius, 0.0, 0.0]])
    claimed = constant * trivial_bound(distance=2 * radius, lipschitz=1.0).value
    losses: dict[str, tuple[Loss, Vector, float]] = {
        "logistic": (LogisticLoss(), X, 1.0),
        "absolute": (AbsoluteLoss(), X, 0.0),
        "linear": (AbsoluteLoss(), np.tile([1.0, 0.0, 0.0], (40, 1)), -10.0),  # |<x, w> + 10| is linear on the ball
    }
    for name, (loss, rows, label) in losses.items():
        values = [float(np.mean(loss.value(rows @ w, np.full(40, label)))) for w in (*points, *ends)]
        worst[name] = max(values) - min(values)
    told = f"""On a ball of diameter {2 * radius:g} with Lipschitz constant 1, any two points' risks differ by at most
        {max(worst.values()):.6f} (a linear loss); {claimed:.6f} is claimed."""
    return Finding.judged(max(worst.values()) <= claimed * (1 + 1e-12), told, claimed=claimed, table=worst)


def _argmin(records: list[float], strength: float) -> float:
    """The library's certified minimiser of Huber losses about far labels plus (λ/2)w², in one dimension."""
    n = len(records)
    problem = glm(HuberLoss(threshold=1.0), [[1.0]] * n, records, row_norm=1.0)
    solver = Minimiser(problem=problem, clip=1.0, strength=strength * n, centre=np.zeros(1), reach=2.0**20)
    return float(solver.solve(solver.least_tolerance(records=n))[0])


@check("79", mutant={"constant": 0.5})
def limits_of_output_perturbation(constant: float = 1.0) -> Finding:
    """Replace a record under ever weaker regularisation, and see how far the library's minimiser moves."""
    n, far = 20, 2.0**14
    balanced = [far, -far] * (n // 2)
    other = [-far, *balanced[1:]]
    moves = {f"move_at_{k}": abs(_argmin(balanced, 10.0**-k) - _argmin(other, 10.0**-k)) for k in (0, 1, 2, 3)}
    claimed = {f"move_at_{k}": constant * 2.0 / (10.0**-k * n) for k in (0, 1, 2, 3)}
    kinked = glm("absolute", [[1.0]] * 4, [0.0] * 4, row_norm=1.0, domain=l2_ball(radius=1.0))
    free = glm("logistic", [[1.0]] * 4, [0, 1, 0, 1], row_norm=1.0)
    refused = sum(refuses(output_perturbation, at, budget=BUDGET, regularisation=0.0) for at in (kinked, free))
    off = max(abs(moves[name] / claimed[name] - 1) for name in moves)
    told = f"""The minimiser moves by {moves["move_at_0"]:.4f}, {moves["move_at_1"]:.3f}, {moves["move_at_2"]:.2f} and
        {moves["move_at_3"]:.1f} for regularisation 1, 0.1, 0.01 and 0.001, without limit as it vanishes; the library
        refuses to go without it ({refused} of 2 cases)."""
    return Finding.judged(off < 1e-4 and refused == 2, told, largest_difference=off, refused=refused, table=moves)


@check("80", mutant={"noise": 0.5})
def objective_perturbation_tilts(noise: float = 1.0) -> Finding:
    """Run the solver, recover the tilt from the slope where it stopped, and test its spread at five standard errors."""
    drawn, stddev = [], math.nan
    problem = _logistic(400, 60, seed=80)
    for run in range(4):
        found = objective_perturbation(problem, budget=BUDGET, radius=2.0, random=fixed_seed_invalidates_guarantee(run))
        tilt = ObjectivePerturbation(radius=2.0).tilt(found.plan, problem)
        stddev = tilt.noise_multiplier * tilt.clip
        drawn.append(-(problem.records * problem.plain_gradient(found.coef) + tilt.strength * found.coef))
    tilts = np.concatenate(drawn)
    spread, off = measured_noise(tilts, noise * stddev)
    told = f"""Where the solver stops, the slope of the untilted sum has standard deviation {spread:.4f} in {tilts.size}
        coordinates, where {noise * stddev:.4f} is claimed ({off:.1f} standard errors)."""
    return Finding.judged(off < 5, told, spread=spread, claimed=noise * stddev, standard_errors=off)


def _gentle(n: int, d: int, e: float, runs: int) -> tuple[float, float]:
    """Mean excess of objective perturbation on a slope so gentle that it is of the bound's size; and the bound.

    With slope g, regulariser λ/n and tilt b/n the minimiser is -(n g + b)/λ: on average n g/λ down the slope, where
    the best of the points within 1/2 is 1/2 down it. The loss falls short by g/2 - n g²/λ, at most where g = λ/(4n).
    """
    budget, solver = Budget(epsilon=e, delta=1e-12), ObjectivePerturbation(radius=0.5)
    flat = glm("logistic", np.zeros((n, d)), np.zeros(n), row_norm=1.0)
    solve = partial(objective_perturbation, budget=budget, radius=0.5)
    first = solve(flat, random=fixed_seed_invalidates_guarantee(81))
    slope = solver.tilt(first.plan, flat).strength / (4 * n)
    problem = glm("logistic", np.tile(np.eye(1, d) * 2 * slope, (n, 1)), np.ones(n), row_norm=1.0)
    found = [solve(problem, random=fixed_seed_invalidates_guarantee(seed)) for seed in range(runs)]
    best = _risk(problem, 0.5 * np.eye(1, d)[0])
    return float(np.mean([_risk(problem, result.coef) for result in found])) - best, float(first.bound or math.nan)


@check("81", mutant={"power": 0.5})
def objective_perturbation_order(power: float = 1.0, full: bool = False) -> Finding:
    """Run the solver down gentle slopes, fit how its excess grows with n, d and epsilon, and compare with its bound."""
    runs, base, points = 40 if full else 4, (500, 16, 1.0), {"n": (4_000, 16, 1.0), "d": (500, 64, 1.0)}
    excess, bound = _gentle(*base, runs)
    shares, powers = [excess / bound], {}
    for name, changed, by in (("n", points["n"], 1 / 8), ("d", points["d"], 2.0), ("epsilon", (500, 16, 0.25), 4.0)):
        more, allowed = _gentle(*changed, runs)
        shares.append(more / allowed)
        powers[f"power_of_{name}"] = math.log(more / excess) / math.log(by)
    told = f"""Down a gentle slope the excess falls like n to the power -{powers["power_of_n"]:.3f} and epsilon to the
        power -{powers["power_of_epsilon"]:.3f}, and grows like sqrt(d) to the power {powers["power_of_d"]:.3f}, where
        {power:g} is claimed; it is {min(shares):.3f} to {max(shares):.3f} of the bound, which is so at most
        {1 / min(shares):.1f} times too large."""
    holds = max(abs(fitted - power) for fitted in powers.values()) < 0.15 and max(shares) <= 1 and min(shares) > 0.1
    return Finding.judged(holds, told, least_share=min(shares), largest_share=max(shares), table=powers)


@check("82", mutant={"probability": 0.25})
def tilted_median(probability: float = 0.5, full: bool = False) -> Finding:
    """Tilt the median of {0, 101} by drawn noise, minimise exactly, and count how often the moved point comes out."""
    draws, seen, off = 200_000 if full else 20_000, {}, 0.0
    left, _, right = example.slopes()
    for spread in (0.1, 1.0, 2.0, 5.0):
        seen[f"moved_point_at_{spread:g}".replace(".", "_")] = share = example.far_point_comes_out(spread, draws=draws)
        exact = example.exact_chance(spread)
        off = max(off, abs(share - exact) / math.sqrt(exact * (1 - exact) / draws))
    median = glm("absolute", [[1.0]] * 2, example.POINTS, row_norm=1.0)
    refused = refuses(objective_perturbation, median, budget=BUDGET, radius=200.0)
    near = abs(seen["moved_point_at_0_1"] - probability) * math.sqrt(4 * draws)
    told = f"""The moved point comes out with probability {listed(seen.values(), ".3f")} for tilts of standard deviation
        0.1, 1, 2 and 5 (Phi(2/s) - 1/2 to {off:.1f} standard errors): 1/2 as the tilt vanishes. The library refuses the
        kink."""
    holds = near < 5 and off < 5 and refused and left == -right
    return Finding.judged(holds, told, within=True, standard_errors=off, table=seen)
