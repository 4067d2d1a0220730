"""Wu, lecture 13, section 2: how near the optimum descent comes (23 to 30)."""

import math

import numpy as np

from privet.geometry import box, l1_ball, l2_ball, simplex
from privet.lectures import Finding, check
from privet.lectures.examples.distance import comes_nearer, distances, short_enough
from privet.lectures.examples.projections import on_ball, on_cube, threshold
from privet.lectures.measures import Vector, apart, listed, refuses
from privet.lectures.toy_problems import BUDGET, average_loss, largest_coordinate, linear, logistic_in_ball, pointwise
from privet.losses import CustomLoss
from privet.problems import RecordProblem, glm
from privet.solvers import noisy_gradient_descent
from privet.solvers.plain_descent import projected_gradient_descent
from privet.theory import gradient_descent_bound


def _visited(problem: RecordProblem, T: int, step_size: float, start: Vector | None = None) -> Vector:
    """w_0, …, w_T."""
    path = projected_gradient_descent(problem, steps=T, step_size=step_size, release="all", start=start)
    return np.asarray(path.points)


@check("23", mutant={"constant": 0.5})
def theorem_2_1(constant: float = 1.0) -> Finding:
    """Descend on the largest of T coordinates, where the theorem is an equality, and on logistic losses."""
    easy, best = logistic_in_ball(60, 3, seed=23)
    cases = [(T, *largest_coordinate(T)) for T in (16, 100, 400)] + [(100, easy, average_loss(easy, best))]
    shares = []
    for T, problem, least in cases:
        found = projected_gradient_descent(problem, steps=T - 1, step_size=1 / math.sqrt(T)).released
        bound = gradient_descent_bound(steps=T, distance=1, lipschitz=1).value
        shares.append((average_loss(problem, found) - least) / bound)
    told = f"""The excess is {shares[2]:.6f} of RG/sqrt(T) on the largest of 400 coordinates, R the distance from the
        start, and {shares[3]:.4f} on a logistic loss: never above, and not to be improved."""
    numbers = {"largest_share": max(shares), "share_of_largest_coordinate": shares[2], "share_of_logistic": shares[3]}
    return Finding.judged(max(shares) <= constant * (1 + 1e-9), told, table=numbers)


@check("24", mutant={"factor": 0.9})
def projections_contract(factor: float = 1.0) -> Finding:
    """Project random points onto six sets, and compare distances to random points of the set before and after."""
    rng, worst = np.random.default_rng(24), -math.inf
    sets = [l2_ball(radius=1.0), l2_ball(radius=2.0, centre=np.ones(4)), box(low=-1.0, high=1.0, size=4)]
    for domain in (*sets, l1_ball(radius=1.0), simplex(size=4), box(low=0.0, high=np.inf, size=4)):
        for scale in (0.1, 1.0, 10.0):
            for _ in range(30):
                x, y = scale * rng.normal(size=4), domain.project(3 * rng.normal(size=4))
                before, after = np.linalg.norm(x - y), np.linalg.norm(domain.project(x) - y)
                worst = max(worst, float(after / before))
    told = f"Of 540 points projected onto six sets the worst keeps {worst:.12f} of its distance to a point of the set."
    return Finding.judged(worst <= factor * (1 + 1e-12), told, largest_ratio=worst)


@check("25", mutant={"factor": 0.5})
def three_projections(factor: float = 1.0) -> Finding:
    """Compare the library's projections with formulas worked out by bisection, and test that no vertex is nearer."""
    rng, off, angle = np.random.default_rng(25), 0.0, -math.inf
    ball, cube, cross = l2_ball(radius=1.0), box(low=-1.0, high=1.0, size=5), l1_ball(radius=1.0)
    vertices = np.vstack([np.eye(5), -np.eye(5)])
    for _ in range(60):
        v = 2 * rng.normal(size=5)
        soft = np.sign(v) * np.maximum(np.abs(v) - factor * threshold(v, 1.0), 0.0)
        nearest = cross.project(v)
        off = max(
            off, apart(ball.project(v), on_ball(v, 1.0)), apart(cube.project(v), on_cube(v, 1.0)), apart(nearest, soft)
        )
        angle = max(angle, float(((vertices - nearest) @ (v - nearest)).max()))
    told = f"""Ball, cube and l1 ball agree with the formulas to {off:.1e} on 60 points, and no vertex of the l1 ball
        makes an acute angle ({angle:.1e})."""
    return Finding.judged(off < 1e-12 and angle < 1e-12, told, apart=off, largest_inner_product=angle)


@check("26", mutant={"constant": 0.5})
def claim_2_4(constant: float = 1.0) -> Finding:
    """Hold every step of descent on a linear, a logistic and a largest-coordinate loss against the inequality."""
    worst, slack = -math.inf, 0.0
    line = linear([[0.6, 0.8]], domain=l2_ball(radius=1.0))
    largest, _ = largest_coordinate(25)
    logistic, minimiser = logistic_in_ball(60, 3, seed=26)
    cases = [(line, np.array([-0.6, -0.8])), (largest, np.full(25, -0.2)), (logistic, minimiser)]
    for problem, best in cases:
        for eta in (0.02, 0.2, 2.0):
            points = _visited(problem, 30, eta)
            away = ((points - best) ** 2).sum(axis=1)
            for t in range(30):
                gradient = problem.plain_gradient(points[t])
                allowed = constant * eta * float(gradient @ gradient) / 2 + (away[t] - away[t + 1]) / (2 * eta)
                gap = allowed - (average_loss(problem, points[t]) - average_loss(problem, best))
                worst = max(worst, -gap)
                if problem is line and eta == 0.02:  # 30 such steps stay inside the ball
                    slack = max(slack, abs(gap))
    told = f"""In 270 steps the excess is never above what the inequality allows ({max(worst, 0.0):.1e} at most); on a
        linear loss, inside the set, the two are equal to {slack:.1e}."""
    return Finding.judged(worst <= 1e-9, told, largest_violation=worst, distance_from_equality=slack)


@check("27", mutant={"constant": 0.5})
def any_step_size(constant: float = 1.0) -> Finding:
    """Descend with step sizes of a tenth, once and ten times the best, and compare with (8)."""
    T, shares = 100, {}
    problem, least = largest_coordinate(T)
    for factor in (0.1, 1.0, 10.0):
        eta = factor / math.sqrt(T)
        found = projected_gradient_descent(problem, steps=T - 1, step_size=eta).released
        claimed = gradient_descent_bound(steps=T, distance=1.0, lipschitz=1.0, step_size=eta).value
        shares[f"share_at_{factor:g}".replace(".", "_")] = (average_loss(problem, found) - least) / claimed
    told = f"""The excess is {listed(shares.values(), ".4f")} of eta G^2/2 + R^2/(2 eta T) for 0.1, 1 and 10 times the
        best step size."""
    return Finding.judged(max(shares.values()) <= constant * (1 + 1e-9), told, table=shares)


@check("28", mutant={"constant": 0.5})
def best_iterate_instead(constant: float = 1.0) -> Finding:
    """Compare the best iterate with the average of losses, and ask the library to release it for nothing."""
    shares = []
    logistic, best = logistic_in_ball(60, 3, seed=28)
    for problem, least in (largest_coordinate(64), (logistic, average_loss(logistic, best))):
        losses = [average_loss(problem, w) - least for w in _visited(problem, 63, 0.125)]
        shares.append(min(losses) / float(np.mean(losses)))
    private = glm("logistic", [[1.0]] * 50, [0, 1] * 25, row_norm=1.0, domain=l2_ball(radius=1.0))
    refused = refuses(noisy_gradient_descent, private, budget=BUDGET, release="best")
    told = f"""The best iterate has {shares[0]:.4f} and {shares[1]:.4f} of the average excess, never more. Without
        privacy: finding it reads the records again, and the library releases it only when that is accounted for."""
    holds = max(shares) <= constant * (1 + 1e-9) and refused
    return Finding.judged(holds, told, within=True, largest_share=max(shares), refused_for_nothing=refused)


@check("29", mutant={"start": 2.0})
def beyond_convex(start: float = 1.0) -> Finding:
    """Descend on z²/(1 + z²), which is convex only near 0, from where the needed inequality holds."""
    loss = CustomLoss(
        value=lambda z, y: np.asarray(z) ** 2 / (1 + np.asarray(z) ** 2),
        derivative=lambda z, y: 2 * np.asarray(z) / (1 + np.asarray(z) ** 2) ** 2,
        curvature=lambda z, y: (2 - 6 * np.asarray(z) ** 2) / (1 + np.asarray(z) ** 2) ** 3,
        lipschitz_constant=0.65,
        convex=False,
    )
    problem = pointwise(loss, [[1.0]], [0.0], domain=l2_ball(radius=4.0))
    T, G = 50, 0.65  # |f'| is at most 3√3/8
    points = _visited(problem, T - 1, start / (G * math.sqrt(T)), start=np.array([start]))
    excess = float(np.mean([average_loss(problem, w) for w in points]))
    allowed = gradient_descent_bound(steps=T, distance=start, lipschitz=G).value
    gaps = [average_loss(problem, w) - float(problem.plain_gradient(w) @ w) for w in points]
    told = f"""From {start:g}, where the curve bends down, the average excess is {excess:.4f} and the convex bound
        {allowed:.4f}; L(w) - L* exceeds <g, w - w*> by {max(gaps):.2g} at most."""
    holds = excess <= allowed and max(gaps) <= 1e-12
    return Finding.judged(holds, told, average_excess=excess, bound=allowed, largest_gap=max(gaps))


@check("30", mutant={"factor": 4.0})
def distance_does_not_always_decrease(factor: float = 2.0) -> Finding:
    """Step on |w| from 0.1 with step size 1, then look for a step that is short enough and yet comes no nearer."""
    landed = float(distances(0.1, step_size=1.0, steps=1)[1])
    worse, steps = 0, 0
    for start in np.linspace(-2.0, 2.0, 21).tolist():
        for eta in np.linspace(0.05, 3.95, 40).tolist():
            if short_enough(start, step_size=eta, factor=factor):
                steps += 1
                worse += not comes_nearer(start, step_size=eta)
    told = f"""On |w| a step of 1 from 0.1 ends {landed:.2f} from the minimum, nine times as far as before. Of {steps}
        steps with eta |g|^2 < {factor:g} (L - L*), {worse} do not come nearer."""
    holds = abs(landed - 0.9) < 1e-12 and worse == 0
    return Finding.judged(holds, told, distance_after=landed, steps=steps, steps_that_do_not_come_nearer=worse)
