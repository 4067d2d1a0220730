"""Nikolov, CSC2412: composition, sensitivity and noise of private descent (110 to 115)."""

import math
import statistics
from itertools import product

import numpy as np

from privet.accounting import Gaussian, epsilon
from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.elementary import GaussianPair
from privet.accounting.theorems.conversions import zcdp_epsilon
from privet.accounting.theorems.gaussian_profile import delta_bounds, epsilon_bounds, largest_mu, profile
from privet.geometry import l2_ball
from privet.lectures import Finding, check, rule
from privet.lectures.grid import EPSILONS, PAIRS, Multiplier, exact_ratio, false_points, first_falses, scaled
from privet.lectures.measures import apart, listed, measured_noise
from privet.lectures.noisy_runs import walk
from privet.lectures.toy_problems import BUDGET, average_loss, pointwise
from privet.losses import LogisticLoss, append_one, gradient_bound
from privet.problems import RecordProblem, glm
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import noisy_gradient_descent
from privet.solvers.plain_descent import projected_gradient_descent
from privet.theory import exact_noise, logistic_lipschitz

LOSS = LogisticLoss(labels="plus_minus_one")


@check("111", mutant={"power": 1.0})
def stacking_beats_basic_composition(power: float = 0.5) -> Finding:
    """Convolve the losses of k releases with noise C k^power; fit how noise by basic composition grows with k."""
    worst = 0.0
    for (e, d), k in product(
        ((0.3, 1e-5), (1.0, 1e-5), (3.0, 1e-2)), (10, 1000)
    ):  # C is the unit; k = 1 is calibrated exactly
        low, high = fourier_delta([(GaussianPair(largest_mu(e, d) / k**power), k)], e, rtol=4e-5)
        worst = max(worst, 1 - high / d, low / d - 1)
    e, d, ks = 1.0, 1e-5, (1, 10, 100, 10_000, 1_000_000)
    one = exact_noise(epsilon=e, delta=d, sensitivity=1.0)
    basic = {k: 1 / (largest_mu(e / k, d / k) * one * math.sqrt(k)) for k in ks}  # each (epsilon/k, delta/k)-private
    slide = {k: k * math.sqrt(math.log(k / d)) / e / (one * math.sqrt(k)) for k in ks}  # C/sqrt(rho), the slide's rho
    growths = [
        math.log(largest_mu(e / 100, d / 100) / largest_mu(e / 10**6, d / 10**6)) / math.log(10**4)
        for e, d in product((0.3, 1.0, 3.0), (1e-5, 1e-2))
    ]
    below = max(slide[k] / (k * math.log(k) / one / math.sqrt(k)) for k in ks[1:])  # of k log k
    told = f"""Noise C k^{power:g} keeps delta for k = 10 and 1000 at three (epsilon, delta), to {worst:.1e}, by
        convolution. Basic composition with the slide's rho takes {slide[100]:.1f} times that noise for k = 100 and
        {slide[10**6]:,.0f} times for 10^6, at most {below:.2f} C k log k; calibrated exactly {basic[100]:.1f} and
        {basic[10**6]:,.0f} times, growing like k^{min(growths):.3f} to k^{max(growths):.3f}: k log k has a logarithm to
        spare."""
    numbers = {"composition_off": worst, "basic_at_100": basic[100], "basic_at_1000000": basic[10**6]}
    numbers |= {"basic_by_rule_at_100": slide[100], "basic_by_rule_at_1000000": slide[10**6]}
    numbers |= {"growth_of_basic": growths[2], "least_growth": min(growths), "largest_growth": max(growths)}
    holds = worst < 1e-4 and all(abs(growth - 2 * power) < 0.06 for growth in growths)
    return Finding.judged(holds and all(slide[k] > basic[k] for k in ks[2:]), told, within=True, table=numbers)


def _selected(multiplier: Multiplier) -> dict[str, float]:
    """True delta, true epsilon and noise ÷ least noise at the audit's five pairs."""
    table = {}
    for e, d in ((1.0, 1e-5), (5.0, 1e-5), (10.0, 1e-5), (10.0, 0.1), (1.0, 1e-12)):
        mu, at = 1.0 / multiplier(e, d), f"at_{e:g}_{d:.0e}"
        table[f"true_delta_{at}"] = profile(mu, e)
        table[f"true_epsilon_{at}"] = epsilon_bounds(mu, d)[1]
        table[f"ratio_{at}"] = exact_ratio(multiplier, e, d)
    return table


def _counts(multiplier: Multiplier) -> dict[str, float]:
    """How often a rule is false on the audit's grid, and how its noise compares with the least."""
    false, ratios = false_points(multiplier), [exact_ratio(multiplier, e, d) for e, d in PAIRS]
    return {
        "points": len(PAIRS),
        "points_up_to_1": sum(e <= 1 for e, _ in PAIRS),
        "false_points": len(false),
        "false_points_up_to_1": sum(e <= 1 for e, _ in false),
        "least_ratio": min(ratios),
        "median_ratio": statistics.median(ratios),
        "largest_ratio": max(ratios),
    }


@check("112", mutant={"constant": 1.0})
def rho_rule(constant: float = 2.0) -> Finding:
    """Solve epsilon = k rho + sqrt(2 k rho ln(1/delta)) for rho, and hold it on 408 pairs, for k up to 100,000."""

    def multiplier(e: float, d: float) -> float:
        linear = math.sqrt(constant * math.log(1 / d))
        return (linear + math.sqrt(linear * linear + 4 * e)) / (2 * e)  # 1/sqrt(k rho)

    counts, shares = _counts(multiplier), []
    for k, (e, d) in product((10, 1000, 100_000), ((0.1, 1e-5), (1.0, 1e-5), (10.0, 1e-2))):
        run = Gaussian(noise_multiplier=math.sqrt(k) * multiplier(e, d)) * k
        shares.append(epsilon(run, delta=d, neighbours="zero_out") / e)
    half = max(zcdp_epsilon(0.5 / multiplier(e, d) ** 2, delta=d) / e for e, d in PAIRS)
    return Finding.judged(
        counts["false_points"] == 0 and max(shares) <= 1,
        f"False at {counts['false_points']} of {counts['points']} points; its noise is {counts['least_ratio']:.3f} to "
        f"{counts['largest_ratio']:.0f} times the least. Composed k times it spends at most {max(shares):.3f} of "
        f"epsilon; zCDP, whose rho is half of this one, proves up to {half:.4f} of it.",
        largest_share_of_epsilon=max(shares),
        largest_share_by_zcdp=half,
        distance_from_rule=max(abs(multiplier(e, d) / rule("rho").multiplier(e, d, 1) - 1) for e, d in PAIRS),
        table=counts | _selected(multiplier),
    )


@check("113", mutant={"power": 1.5})
def rho_up_to_a_constant(power: float = 2.0) -> Finding:
    """Compare rho = epsilon^2/(k ln(1/delta)) with the largest rho that is private, for epsilon, delta and k."""
    swept = list(product((0.1, 0.3, 1.0, 3.0, 10.0), (1e-5, 1e-8, 1e-12, 1e-30, 1e-100, 1e-300)))
    largest = {pair: largest_mu(*pair) ** 2 for pair in swept}  # k releases of variance 1/rho: mu^2 = k rho
    ratios = [rho / (e**power / math.log(1 / d)) for (e, d), rho in largest.items()]
    runs = [Gaussian(noise_multiplier=math.sqrt(k / largest[1.0, 1e-5])) * k for k in (10, 1000, 100_000)]
    composed = [epsilon(run, delta=1e-5, neighbours="zero_out") for run in runs]
    spread = max(ratios) / min(ratios)
    multiplier = scaled("rho_as_equality", 1.0)
    counts, truth, frontiers = _counts(multiplier), _selected(multiplier), first_falses(multiplier)
    told = f"""For epsilon from 0.1 to 10, delta from 1e-5 to 1e-300 and k up to 100,000 the largest rho that is private
        is {min(ratios):.3f} to {max(ratios):.3f} times the printed order, one half in the limit of small delta: right
        within a factor of {spread:.2f}, as its sign says. As an equality it is false at
        {counts["false_points_up_to_1"]} of {counts["points_up_to_1"]} points with epsilon up to 1: asked for (1, 1e-5)
        it gives epsilon {truth["true_epsilon_at_1_1e-05"]:.3f}."""
    numbers = {"least_of_order": min(ratios), "most_of_order": max(ratios), "spread": spread}
    holds = spread < 3 and max(abs(cost - 1) for cost in composed) < 1e-6
    return Finding.judged(holds, told, within=True, table=numbers | counts | truth | frontiers)


@check("114", mutant={"constant": 0.5})
def sensitivity_of_logistic_gradients(constant: float = 1.0) -> Finding:
    """Search for the longest logistic gradient on the cube, and for the replacement that moves the average most."""
    rng, d, n, root = np.random.default_rng(114), 4, 10, math.sqrt(5)
    G = constant * root
    corners = append_one(np.array(list(product((-1.0, 1.0), repeat=d))))
    rest = append_one(rng.uniform(-1, 1, size=(n - 1, d)))
    longest = moved = 0.0
    for _ in range(150):
        theta = rng.normal(size=d + 1) * 10.0 ** rng.uniform(-1, 2)
        slopes = np.concatenate([np.abs(LOSS.derivative(corners @ theta, y)) for y in (-1.0, 1.0)])
        longest = max(longest, float(slopes.max()) * root)
    for gap in (1.0, 0.1, 1e-2, 1e-3, 1e-4):  # nearly opposite rows that both have the wrong sign, far out
        theta = np.zeros(d + 1)
        theta[:2] = -20 / gap, 20 / gap
        one, other = np.ones((2, d + 1))
        one[1] -= gap  # y = +1: y<x, theta> = −20
        other[0] -= gap  # y = −1: y<x, theta> = −20, and the gradient points the other way
        before, after = (
            pointwise(LOSS, np.vstack([rest, row]), np.append(np.ones(n - 1), y)).plain_gradient(theta)
            for row, y in ((one, 1.0), (other, -1.0))
        )
        moved = max(moved, float(np.linalg.norm(before - after)))
    bounds = (logistic_lipschitz(d=d), gradient_bound(LOSS, row_norm=root) or math.inf)
    numbers = {"longest_share": longest / root, "largest_move_share": moved * n / (2 * root)}
    numbers |= {"share_in_unit_ball": logistic_lipschitz(d=d, radius=1.0) / bounds[0]}
    told = """The longest of 4,800 gradients is {longest_share:.6f} of sqrt(d + 1), and the worst replacement moves the
        average by {largest_move_share:.6f} of 2 sqrt(d + 1)/n: approached, never passed. In a ball of radius 1 the
        library proves {share_in_unit_ball:.4f} of it."""
    holds = longest <= G * (1 + 1e-12) and moved <= 2 * G / n and all(math.isclose(bound, G) for bound in bounds)
    return Finding.judged(holds, told.format(**numbers), table=numbers)


def _first_false(multiplier: Multiplier, delta: float) -> float:
    """The least epsilon in [0.001, 10] at which a rule is false, to 1e-6; infinite if there is none."""
    low = 1e-3
    for high in map(float, np.geomspace(1e-3, 10.0, 161)[1:]):
        if delta_bounds(1 / multiplier(high, delta), high)[0] > delta:
            while high / low > 1 + 1e-6:
                middle = math.sqrt(low * high)
                false = delta_bounds(1 / multiplier(middle, delta), middle)[0] > delta
                low, high = (low, middle) if false else (middle, high)
            return high
        low = high
    return math.inf


@check("115", mutant={"constant": 4.0})
def printed_variance(constant: float = 1.0) -> Finding:
    """Account for noise of variance (4d + 1)/(n^2 rho), rho by claim 112, on 408 pairs and down to delta = 1e-80."""

    def rule_for(d: int) -> Multiplier:
        return scaled("rho", math.sqrt((4 * d + constant) / (4 * (d + 1))))

    counts = _counts(rule_for(1))
    frontiers = {f"first_false_at_1e-{k:02d}": _first_false(rule_for(1), 10.0**-k) for k in (1, 5, 6, 8, 12)}
    more = {f"false_points_for_d_{d}": float(len(false_points(rule_for(d)))) for d in (2, 3)}
    digits, k = {}, 1  # how many digits delta has when it is first false: claim 112 has ever less to spare
    for d in (1, 2, 3, 10):
        while k <= 80 and not false_points(rule_for(d), [(e, 10.0**-k) for e in EPSILONS]):
            k += 1  # and with more noise, for a larger d, not sooner than for the last one
        digits[f"digits_of_delta_for_d_{d}"] = float(k) if k <= 80 else math.inf
    told = f"""For d = 1 false at {counts["false_points"]} of {counts["points"]} points,
        {counts["false_points_up_to_1"]} of {counts["points_up_to_1"]} with epsilon up to 1: at delta = 1e-8 from
        {frontiers["first_false_at_1e-08"]:.3g} on. For d = 1, 2, 3 and 10 the first power of ten that is false for some
        epsilon up to 10 is delta = 1e-{listed(digits.values(), "g").replace(", ", ", 1e-")}: claim 112 has some noise
        to spare, which covers the slip at larger delta."""
    return Finding.judged(counts["false_points"] == 0, told, table=counts | frontiers | more | digits)


def cube_problem(n: int, d: int, *, seed: int, radius: float) -> tuple[RecordProblem, float]:
    """Rows of [−1, 1]^d with a 1 appended, labels −1 and +1, in a ball about 0; and the least risk there."""
    rng = np.random.default_rng(seed)
    X = append_one(rng.uniform(-1, 1, size=(n, d)))
    y = np.where(X @ rng.normal(size=d + 1) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = pointwise(LOSS, X, y, domain=l2_ball(radius=radius))
    best = projected_gradient_descent(problem, steps=400, step_size=2.0, release="last").released
    return problem, average_loss(problem, best)


@check("110", mutant={"power": 0.5})
def private_descent_in_a_ball(power: float = 1.0) -> Finding:
    """Run the slide's loop by hand and by the library on the same noise, then recover the library's own noise."""
    rng, T, eta, R = np.random.default_rng(110), 60, 0.3, 0.5
    problem, _ = cube_problem(80, 3, seed=110, radius=R)
    noise = rng.normal(size=(T - 1, 4))
    theta, visited, scaled_back = np.zeros(4), [np.zeros(4)], 0
    for z in noise:
        moved = theta - eta * problem.plain_gradient(theta) - eta**power * z
        theta = moved / max(1.0, float(np.linalg.norm(moved)) / R)
        scaled_back += float(np.linalg.norm(moved)) > R
        visited.append(theta)
    drawn = iter(noise)
    by_library = walk(
        lambda w: problem.plain_gradient(w) + next(drawn), size=4, steps=T - 1, step_size=eta, domain=problem.domain
    )
    from_library = apart(np.mean(visited, axis=0), by_library)
    private = glm(LOSS, problem.X, problem.y, row_norm=2.0, domain=l2_ball(radius=1e3))
    found = noisy_gradient_descent(
        private, budget=BUDGET, steps=T - 1, step_size=eta, release="all", random=fixed_seed_invalidates_guarantee(110)
    )
    points = np.asarray(found.iterates)
    moves = points[1:] - points[:-1] + eta * np.array([problem.plain_gradient(point) for point in points[:-1]])
    claimed = eta**power * exact_noise(epsilon=1.0, delta=1e-5, steps=T - 1, sensitivity=2 * 2.0 / 80)
    deviation, off = measured_noise(moves, claimed)
    told = f"""By hand and by the library the average of {T} iterates is {from_library:.1e} apart, {scaled_back} of
        {T - 1} steps scaled back to the ball. Each step of the library's own run has noise {deviation:.4f}, of eta
        sigma = {claimed:.4f} ({off:.1f} standard errors)."""
    numbers = {"apart": from_library, "scaled_back": scaled_back, "noise_of_a_step": deviation, "claimed": claimed}
    numbers |= {"standard_errors": off}
    return Finding.judged(from_library < 1e-12 and off < 5, told, table=numbers)
