"""Razaviyayn, lecture 11, recap of private optimisation: output and objective perturbation (76 to 82)."""

import math

import numpy as np

from privet.clipping import Clip
from privet.geometry import l2_ball, whole_space
from privet.lectures import Finding, check
from privet.lectures.examples import tilted_median as example
from privet.lectures.measures import Vector, apart, listed, measured_noise, refuses
from privet.lectures.toy_problems import BUDGET, separable, unit_plan
from privet.losses import AbsoluteLoss, HuberLoss, LogisticLoss, Loss
from privet.problems import LinearProblem, glm
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import ObjectivePerturbation, objective_perturbation, output_perturbation
from privet.solvers.minimise import Minimiser
from privet.theory import trivial_bound


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


@check("76", mutant={"share": 0.1})
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
    """Fit how the explicit bound grows with sqrt(d)/n, and run the solver below it."""

    def proved(n: int, d: int) -> float:
        return unit_plan("output_perturbation", n=n, d=d, budget=BUDGET).excess_risk

    with_n = -math.log(proved(10**6, 16) / proved(10**4, 16)) / math.log(100)
    with_d = math.log(proved(10**6, 1024) / proved(10**6, 16)) / math.log(8)  # of sqrt(d)
    sizes = ((200, 5), (2_000, 5), (2_000, 50)) if full else ((200, 5),)
    runs, worst, seen = 40 if full else 8, 0.0, dict[str, float]()
    for n, d in sizes:
        problem, random = _logistic(n, d, seed=77, radius=1.0), fixed_seed_invalidates_guarantee(77)
        least = _least_risk(problem)
        found = [output_perturbation(problem, budget=BUDGET, random=random) for _ in range(runs)]
        excess = float(np.mean([_risk(problem, result.coef) - least for result in found]))
        bound = float(found[0].bound or math.nan)
        seen |= {f"excess_{n}_{d}": excess, f"bound_{n}_{d}": bound}
        worst = max(worst, excess / bound)
    told = f"""The bound falls like n to the power -{with_n:.3f} and grows like sqrt(d) to the power {with_d:.3f}, where
        {power:g} is claimed; the solver's excess is {seen["excess_200_5"]:.3f}, its bound {seen["bound_200_5"]:.3f} for
        200 records in 5 dimensions."""
    numbers = {"power_of_n": with_n, "power_of_root_d": with_d, "largest_share_of_bound": worst}
    holds = abs(with_n - power) < 0.02 and abs(with_d - power) < 0.02 and worst <= 1
    return Finding.judged(holds, told, table=numbers | seen)


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


@check("81", mutant={"power": 0.5})
def objective_perturbation_order(power: float = 1.0, full: bool = False) -> Finding:
    """Fit how the solver's proven bound grows with sqrt(d)/n, and compare it with the excess it has."""

    def solved(n: int, d: int, runs: int = 1) -> tuple[float, float]:
        problem, random = _logistic(n, d, seed=81), fixed_seed_invalidates_guarantee(81)
        found = [objective_perturbation(problem, budget=BUDGET, radius=0.5, random=random) for _ in range(runs)]
        inside = _logistic(n, d, seed=81, radius=0.5)
        risks = [_risk(problem, result.coef) for result in found]
        return float(found[0].bound or math.nan), float(np.mean(risks)) - _least_risk(inside, 200)

    (few, excess), (many, _), (wide, _) = solved(500, 16, 40 if full else 4), solved(4_000, 16), solved(500, 64)
    with_n, with_d = -math.log(many / few) / math.log(8), math.log(wide / few) / math.log(2)
    told = f"""The bound falls like n to the power -{with_n:.3f} and grows like sqrt(d) to the power {with_d:.3f}, where
        {power:g} is claimed; for 500 records in 16 dimensions the excess over the points within 0.5 is {excess:.3f},
        proven {few:.3f}."""
    holds = abs(with_n - power) < 0.1 and abs(with_d - power) < 0.15 and excess <= few
    return Finding.judged(holds, told, power_of_n=with_n, power_of_root_d=with_d, excess=excess, bound=few)


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
