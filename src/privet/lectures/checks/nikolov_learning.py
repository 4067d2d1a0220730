"""Nikolov, CSC2412, learning, uniform convergence, separators and the logistic loss (103 to 109)."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
from scipy.special import bdtr, expit

from privet.geometry import l2_ball
from privet.lectures import Finding, check
from privet.lectures.measures import Vector
from privet.lectures.toy_problems import average_loss, pointwise
from privet.losses import AppendOne, CustomLoss, LogisticLoss, Loss, append_one
from privet.solvers.plain_descent import projected_gradient_descent
from privet.theory import uniform_convergence_gap, uniform_convergence_sample_size

SIGNED = LogisticLoss(labels="plus_minus_one")


def binary_loss(wrong: float = 1.0, counted: float = 1.0) -> CustomLoss:
    """1{sign(z) ≠ y} as a loss of privet, times `wrong`; the rest of the share `counted` is the logistic loss."""
    return CustomLoss(
        value=lambda z, y: counted * wrong * (np.sign(z) != y) + (1 - counted) * SIGNED.value(z, y),
        derivative=lambda z, y: (1 - counted) * SIGNED.derivative(z, y),
        curvature=lambda z, y: (1 - counted) * SIGNED.curvature(z, y),
    )


def _risks(loss: Loss, X: Vector, y: Vector, thetas: Vector) -> Vector:
    """The average loss at each of many parameters."""
    return np.asarray(loss.value(X @ thetas.T, y[:, None]).mean(axis=0), dtype=np.float64)


@check("103", mutant={"wrong": 0.5})
def binary_risk(wrong: float = 1.0) -> Finding:
    """Draw directions whose labels a line gives; compare the binary risk of nine other lines with angle/pi."""
    rng, n, beta = np.random.default_rng(103), 20_000, 1e-6
    turns = rng.uniform(0, 2 * math.pi, size=n)
    X = np.column_stack([np.cos(turns), np.sin(turns)])
    problem = pointwise(binary_loss(wrong), X, np.sign(X[:, 0]))
    angles = np.linspace(0, math.pi, 9)
    empirical = [average_loss(problem, np.array([math.cos(a), math.sin(a)])) for a in angles]
    off = float(np.abs(np.array(empirical) - angles / math.pi).max())
    gap = uniform_convergence_gap(n=n, concepts=len(angles), failure_probability=beta, two_sided=True)
    told = f"""On {n:,} draws the mean binary loss of nine lines is within {off:.4f} of the probability of being wrong,
        angle/pi, where chance allows {gap:.4f}; the line that gave the labels has risk {empirical[0]:g}."""
    holds = off <= gap and empirical[0] == 0
    return Finding.judged(holds, told, largest_difference=off, allowed=gap, risk_of_the_concept=empirical[0])


@check("104", mutant={"baseline": 0.5})
def agnostic_learning(baseline: float = 1.0, full: bool = False) -> Finding:
    """Learn a threshold from labels of which two in five are wrong, by least empirical risk, many times over."""
    rng, trials = np.random.default_rng(104), 5_000 if full else 100
    alpha, beta, flipped, thresholds = 0.1, 0.05, 0.4, np.linspace(0, 1, 41)
    risks = flipped + (1 - 2 * flipped) * np.abs(thresholds - thresholds[15])
    n = uniform_convergence_sample_size(
        concepts=len(thresholds), accuracy=alpha / 2, failure_probability=beta, two_sided=True
    )
    learnt = []
    for _ in range(trials):
        cell = rng.integers(len(thresholds) - 1, size=n)  # the 40 intervals between thresholds, each as likely
        label = (cell >= 15) ^ (rng.random(n) < flipped)
        ones = np.bincount(cell, weights=label, minlength=len(thresholds) - 1)
        zeros = np.bincount(cell, minlength=len(thresholds) - 1) - ones
        wrong = np.concatenate([[0.0], np.cumsum(ones)]) + np.concatenate([np.cumsum(zeros[::-1])[::-1], [0.0]])
        learnt.append(risks[int(np.argmin(wrong))])
    missed = float(np.mean(np.array(learnt) > baseline * risks.min() + alpha))
    excess = float(max(learnt) - risks.min())
    told = f"""With n = {n:,} the least empirical risk among {len(thresholds)} thresholds misses the goal in
        {missed:.1%} of {trials:,} trials, where {beta:.0%} may; the worst is {excess:.4f} above the best concept's
        {risks.min():.2f}, where {alpha} is allowed."""
    return Finding.judged(missed <= beta, told, records=n, missed=missed, largest_excess=excess, least_risk=risks.min())


@check("105", mutant={"constant": 0.5})
def uniform_convergence(constant: float = 1.0) -> Finding:
    """Compute exactly, for concepts with independent errors, how often one looks better than it is by over alpha."""
    shares, both = {}, []
    for concepts, tenths, beta in product(
        (1, 10, 1000), (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5)), (0.01, 0.1)
    ):
        alpha = float(tenths)
        least = uniform_convergence_sample_size(concepts=concepts, accuracy=alpha, failure_probability=beta)
        n = math.ceil(constant * least)
        one = float(bdtr(math.ceil(n * (Fraction(1, 2) - tenths)) - 1, n, 0.5))  # L_D = 1/2, where chance is widest
        missed = -math.expm1(concepts * math.log1p(-one))
        shares[f"share_{concepts}_{alpha:g}_{beta:g}".replace(".", "_")] = missed / beta
        both.append(-math.expm1(concepts * math.log1p(-2 * one)) / beta)
    return Finding.judged(
        max(shares.values()) <= 1,
        f"At the n of the claim the chance that some concept looks better than it is by more than alpha is at most "
        f"{max(shares.values()):.3f} of beta, at {len(shares)} points; both ways at once {max(both):.3f}. The claim "
        f"has one way; both ways are proved with 2|C| for |C|.",
        largest_share=max(shares.values()),
        largest_share_both_ways=max(both),
        records_for_1000_concepts=uniform_convergence_sample_size(
            concepts=1000, accuracy=0.05, failure_probability=0.01
        ),
        table=shares,
    )


@check("106", mutant={"appended": 2.0})
def intercept_is_a_coefficient(appended: float = 1.0) -> Finding:
    """Compare signs with an intercept and with an appended 1, ties included, and count ties against both labels."""
    rng, d = np.random.default_rng(106), 3
    X = rng.integers(0, 2, size=(500, d)).astype(np.float64)  # corners of the cube and whole numbers: ties are exact
    pairs = rng.integers(-2, 3, size=(200, d + 1)).astype(np.float64)
    apart = np.sign(X @ pairs[:, :d].T + pairs[:, d])
    rows = append_one(X, scale=appended)
    together = np.sign(rows @ pairs.T)
    ties = int((apart == 0).sum())
    refused = [average_loss(pointwise(binary_loss(), rows, np.full(500, y)), np.zeros(d + 1)) for y in (-1.0, 1.0)]
    differ = int((apart != together).sum())
    norm = AppendOne(scale=appended).output_norm(math.sqrt(d))
    told = f"""Of {apart.size:,} predictions, {ties:,} of them ties, {differ:,} differ; a tie is wrong for both labels
        (risks {refused[0]:g} and {refused[1]:g}); with its 1 a row of the cube has norm {norm:.4f} at most."""
    numbers = {"different_predictions": differ, "ties": ties, "risk_of_ties": min(refused), "row_norm": norm}
    holds = differ == 0 and refused == [1.0, 1.0] and math.isclose(norm, math.sqrt(d + 1))
    return Finding.judged(holds, told, table=numbers)


@check("107", mutant={"counted": 0.0})
def best_separator(counted: float = 1.0) -> Finding:
    """Go round all separators of a plane: find chords below the count of errors, and minima that are not the least.

    That no fast algorithm is known for many dimensions cannot be checked by running one.
    """
    rng, n = np.random.default_rng(107), 60
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0) * np.where(rng.random(n) < 0.15, -1.0, 1.0)
    X[y * X[:, 0] < 0] *= 4.0  # the wrong labels lie far out, where a convex loss minds them most
    loss = binary_loss(counted=counted)
    turns = np.linspace(0, 2 * math.pi, 1440, endpoint=False)
    round_ = np.column_stack([np.cos(turns), np.sin(turns)])
    risks = _risks(loss, X, y, round_)
    ends = rng.normal(size=(2, 2_000, 2))
    above = _risks(loss, X, y, ends.mean(axis=0)) - (_risks(loss, X, y, ends[0]) + _risks(loss, X, y, ends[1])) / 2
    levels = risks[np.flatnonzero(np.abs(risks - np.roll(risks, 1)) > 1e-12)]  # one entry a plateau
    low = (levels < np.roll(levels, 1)) & (levels < np.roll(levels, -1)) & (levels > levels.min() + 1e-12)
    problem = pointwise(SIGNED, X, y, domain=l2_ball(radius=20.0))
    smooth = projected_gradient_descent(problem, steps=300, step_size=0.5, release="last").released
    counts = _risks(binary_loss(), X, y, np.vstack([round_, smooth]))
    slope = float(np.abs(pointwise(loss, X, y).plain_gradient(round_[0])).max())
    told = f"""The count of errors rises above {(above > 1e-9).sum():,} of 2,000 chords, has {low.sum()} local minima
        beside the least, and slope {slope:g} almost everywhere. The best line is wrong on {n * counts[:-1].min():.0f}
        of {n}, the logistic one on {n * counts[-1]:.0f}."""
    numbers = {"chords_below": (above > 1e-9).sum(), "local_minima": low.sum(), "slope": slope}
    numbers |= {"least_errors": n * counts[:-1].min(), "errors_of_logistic": n * counts[-1]}
    return Finding.judged(above.max() > 1e-9 and bool(low.any()) and slope == 0, told, table=numbers)


@check("108", mutant={"scale": 0.5})
def logistic_loss(scale: float = 1.0) -> Finding:
    """Compare ln(1 + e^{-yz}) with the library's loss under both ways to write labels, and with -ln P(predict y)."""
    z = np.concatenate([np.linspace(-30, 30, 241), [-700.0, 700.0]])
    off = alike = surprise = 0.0
    for y in (-1.0, 1.0):
        signed = SIGNED.value(z, y)
        other = LogisticLoss(labels="zero_one").value(z, (y + 1) / 2)
        printed = np.log1p(np.exp(-scale * y * z[:-2]))
        off = max(off, float((np.abs(signed[:-2] - printed) / printed).max()))
        alike = max(alike, float(np.abs(signed - other).max()))
        surprise = max(surprise, float(np.abs(signed[:-2] + np.log(expit(y * z[:-2]))).max()))
    told = f"""The library's loss is ln(1 + e^(-yz)) to {off:.0e} at 241 z in [-30, 30], -ln P(predict y) to
        {surprise:.0e}, and the same bit for bit ({alike:g}) with labels (y + 1)/2 in {{0, 1}}."""
    holds = off < 1e-12 and alike == 0 and surprise < 1e-12
    return Finding.judged(holds, told, relative_error=off, from_surprise=surprise, from_zero_one=alike)


@check("109", mutant={"slope": 2.0})
def logistic_risk_is_convex(slope: float = 1.0) -> Finding:
    """Compare the library's logistic risk with its chords and tangents at 2,000 random pairs of points."""
    rng, d = np.random.default_rng(109), 4
    X = append_one(rng.uniform(-1, 1, size=(60, d)))
    y = np.sign(rng.normal(size=60))
    a, b = rng.normal(size=(2, 2_000, d + 1)) * rng.choice([0.1, 1.0, 10.0], size=(2, 2_000, 1))
    share = rng.random((2_000, 1))
    at_a, at_b = _risks(SIGNED, X, y, a), _risks(SIGNED, X, y, b)
    chord = share[:, 0] * at_a + (1 - share[:, 0]) * at_b - _risks(SIGNED, X, y, share * a + (1 - share) * b)
    middle = (at_a + at_b) / 2 - _risks(SIGNED, X, y, (a + b) / 2)
    problem = pointwise(SIGNED, X, y)
    gradients = np.array([problem.plain_gradient(point) for point in b])
    tangent = at_a - at_b - slope * ((a - b) * gradients).sum(axis=1)
    least = float(min(chord.min(), middle.min(), tangent.min()))
    told = f"""At 2,000 pairs the risk is below its chords by at least {chord.min():.1e}, at their middle by
        {middle.min():.1e}, and above its tangents by {tangent.min():.1e}."""
    numbers = {"below_chords": chord.min(), "below_middles": middle.min(), "above_tangents": tangent.min()}
    return Finding.judged(least > -1e-12, told, table=numbers)
