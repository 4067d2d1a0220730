"""Brown, lecture 13, sections 1 to 3: linear models, noisy descent, and what bounds their gradients (36 to 47)."""

import math
from typing import Any

import numpy as np

from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.elementary import GaussianPair
from privet.accounting.theorems.gaussian_profile import profile
from privet.clipping import Clip, Declared
from privet.lectures import Finding, check
from privet.lectures.examples.unbounded_gradient import outlier_epsilon
from privet.lectures.measures import Vector, apart, longest, measured_noise, refuses
from privet.lectures.noisy_runs import noisy_run, walk
from privet.lectures.toy_problems import BUDGET, pointwise
from privet.losses import (
    CustomFeatures,
    HuberLoss,
    LinearRecords,
    LogisticLoss,
    Loss,
    RandomFourier,
    SquaredLoss,
    gradient_bound,
)
from privet.losses.loss import Array
from privet.problems import glm, per_record
from privet.solvers import noisy_gradient_descent
from privet.solvers.descent import ReleaseRule
from privet.solvers.plain_descent import projected_gradient_descent
from privet.sums import bounded_table, glm_sum, record_sum

LOSSES: tuple[tuple[Loss, float], ...] = ((SquaredLoss(), 0.7), (LogisticLoss(), 1.0), (HuberLoss(), -0.4))


@check("36", mutant={"ridge": 0.1})
def through_the_inner_product(ridge: float = 0.0) -> Finding:
    """Move the parameters at right angles to every record, and see whether loss or gradient notices."""
    rng = np.random.default_rng(36)
    X, theta = rng.normal(size=(5, 8)) / 4, rng.normal(size=8)
    aside = np.linalg.svd(X)[2][5:].T @ rng.normal(size=3)  # orthogonal to all five records
    moved = 0.0
    for loss, label in LOSSES:
        problem = per_record(LinearRecords(loss=loss), X, np.full(5, label), shape=8, ridge=ridge)
        there, here = (problem.loss.values(w, X, problem.y).mean() for w in (theta + aside, theta))
        there, here = there + problem.ridge.value(theta + aside), here + problem.ridge.value(theta)
        off = apart(problem.plain_gradient(theta + aside), problem.plain_gradient(theta))
        moved = max(moved, abs(there - here), off)
    told = f"""A step of length {np.linalg.norm(aside):.2f} at right angles to the records moves losses and gradients of
        three models by {moved:.1e}."""
    return Finding.judged(moved < 1e-12, told, length_of_step=float(np.linalg.norm(aside)), moved=moved)


@check("37", mutant={"from_the_data": 0.5})
def feature_maps(from_the_data: float = 0.0) -> Finding:
    """Map features, with a share of the records' own mean or none, replace a record, and see how far sums move."""
    rng, n = np.random.default_rng(37), 40
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 2, size=n)
    other = np.vstack([np.full(2, 50.0), X[1:]])
    phi, theta = RandomFourier(inputs=2, frequencies=8, scale=1.0, seed=37), rng.normal(size=16)

    def gradients(rows: Vector) -> Vector:
        centre = from_the_data * rows.mean(axis=0)
        features = CustomFeatures(function=lambda x: phi.transform(np.asarray(x) - centre), norm=1.0)
        problem = glm("logistic", rows, y, row_norm=100.0, features=features)
        return problem.gradient_sum(theta, rule=Declared(lipschitz=1.0)).value

    off = apart(gradients(X) / n, pointwise(LogisticLoss(), phi.transform(X), y).plain_gradient(theta))
    moved = float(np.linalg.norm(gradients(X) - gradients(other)))
    told = f"""Gradients after 16 random features are those of a linear model in them ({off:.1e}; rows are rounded), and
        a record replaced moves their sum by {moved:.4f}, where 2L = 2."""
    return Finding.judged(off < 1e-3 and moved <= 2.0, told, apart=off, moved=moved)


@check("38", mutant={"constant": 0.5})
def squared_loss(constant: float = 1.0) -> Finding:
    """Compare the library's squared loss with its formula and a difference quotient, and descend to least squares."""
    rng = np.random.default_rng(38)
    X, y, theta = rng.normal(size=(30, 3)), rng.normal(size=30), rng.normal(size=3)
    z, loss, h = X @ theta, SquaredLoss(), 1e-5
    off = apart(loss.value(z, y), constant * (z - y) ** 2)
    slope = apart(loss.derivative(z, y), constant * ((z + h - y) ** 2 - (z - h - y) ** 2) / (2 * h))
    found = projected_gradient_descent(pointwise(loss, X, y), steps=300, step_size=0.3, release="last").released
    solved = apart(found, np.linalg.lstsq(X, y, rcond=None)[0])
    told = f"""Value and derivative are those of the formula to {off:.1e} and {slope:.1e}; descent ends {solved:.1e}
        from the least-squares solution."""
    holds = off < 1e-12 and slope < 1e-8 and solved < 1e-9
    return Finding.judged(holds, told, value_apart=off, derivative_apart=slope, from_least_squares=solved)


@check("39", mutant={"scale": 0.5})
def logistic_loss(scale: float = 1.0) -> Finding:
    """Compare the library's logistic loss with the cross-entropy of the sigmoid, and go where that overflows."""
    z, loss = np.linspace(-15.0, 15.0, 301), LogisticLoss()
    s = 1.0 / (1.0 + np.exp(-scale * z))
    worst = slope = 0.0
    for label in (0.0, 1.0):
        y = np.full_like(z, label)
        worst = max(worst, apart(loss.value(z, y), -(y * np.log(s) + (1 - y) * np.log(1 - s))))
        slope = max(slope, apart(loss.derivative(z, y), s - y))
    far = float(loss.value(np.array([800.0]), np.array([0.0]))[0])
    told = f"""For |z| up to 15 the value is the cross-entropy to {worst:.1e}, its derivative sigmoid minus label to
        {slope:.1e}; at z = 800, where the formula takes the logarithm of 0, that of label 0 is {far:g}."""
    holds = worst < 1e-8 and slope < 1e-8 and far == 800.0
    return Finding.judged(holds, told, value_apart=worst, derivative_apart=slope, value_at_800=far)


@check("40", mutant={"constant": 2.0})
def gradient_of_a_linear_model(constant: float = 1.0) -> Finding:
    """Compare a·x with difference quotients and its norm with |a||x|; clip by scalars and by whole gradients."""
    rng, h = np.random.default_rng(40), 1e-6
    X, theta, worst, norms, sums = rng.normal(size=(20, 4)) / 4, rng.normal(size=4), 0.0, 0.0, 0.0
    table = bounded_table(X, row_norm=4.0)
    stored = table.units.astype(np.float64) * table.step
    for loss, label in LOSSES:
        y = np.full(20, label)
        a = constant * loss.derivative(X @ theta, y)
        records = LinearRecords(loss=loss)
        quotients = [(records.values(theta + h * e, X, y) - records.values(theta - h * e, X, y)) for e in np.eye(4)]
        worst = max(worst, apart(np.stack(quotients, axis=1) / (2 * h), a[:, None] * X))
        lengths = np.linalg.norm(records.gradients(theta, X, y), axis=1)
        norms = max(norms, apart(lengths, np.abs(a) * np.linalg.norm(X, axis=1)))
        ghost = glm_sum(loss.derivative, table, y, theta, rule=Clip(clip=0.2), max_records=20).value
        whole = record_sum(np.asarray(records.gradients(theta, stored, y)), rule=Clip(clip=0.2), max_records=20).value
        sums = max(sums, apart(ghost, whole))
    told = f"""For three losses a·x is the gradient to {worst:.1e} and |a||x| its norm to {norms:.1e}; clipping scalars
        gives the clipped sum to {sums:.1e}."""
    holds = worst < 1e-8 and norms < 1e-12 and sums < 1e-4
    return Finding.judged(holds, told, gradient_apart=worst, norm_apart=norms, clipped_sum_apart=sums)


class _Bowl:
    """The loss ½|θ − x|²: descent on it forgets its start, and noise on it has a closed form."""

    def values(self, theta: Array, X: Any, y: Any) -> Array:
        return np.asarray(0.5 * np.square(np.asarray(X) - theta).sum(axis=1))

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        return np.asarray(theta - np.asarray(X))


def _bowl(noise: float, steps: int, release: ReleaseRule, *, d: int, eta: float, seed: int) -> Any:
    """Noisy descent on two bowls with minimum 1, without projection; the noise of a gradient is `noise`."""
    problem = per_record(_Bowl(), np.ones((2, d)), shape=d)
    bounding, share = Declared(lipschitz=200.0), noise / 100
    return noisy_run(
        problem, bounding=bounding, noise_multiplier=share, steps=steps, step_size=eta, seed=seed, release=release
    )


@check("41", mutant={"noise": 0.5})
def algorithm_1(noise: float = 1.0, first: float = 0.0) -> Finding:
    """Run algorithm 1 with the library, all iterates and average, and recover start, noise and averaging."""
    T, d, eta, sigma = 50, 60, 0.5, 2.0
    average = _bowl(sigma, T - 1, "average", d=d, eta=eta, seed=41).coef
    points = np.asarray(_bowl(sigma, T, "all", d=d, eta=eta, seed=41).iterates)
    claimed = points[int(first) : int(first) + T].mean(axis=0)
    from_mean, start, farthest = apart(average, claimed), apart(points[0]), longest(points - 1.0)
    drawn = (points[:-1] - points[1:]) / eta - (points[:-1] - 1.0)
    _, off = measured_noise(drawn, noise * sigma)
    told = f"""From 0, {T} iterates average to the output to {from_mean:.1e}; the noise in {drawn.size} coordinates is
        {off:.1f} standard errors off, and with nothing to project on a point strays {farthest:.1f} from the minimum,
        {math.sqrt(d):.1f} away at first."""
    holds = from_mean < 1e-9 and start == 0 and off < 5
    return Finding.judged(holds, told, average_apart=from_mean, standard_errors=off, farthest=farthest)


@check("42", mutant={"temperature": 2.0})
def langevin(temperature: float = 1.0) -> Finding:
    """Let noisy descent on a bowl settle, compare its spread with the Langevin law, then turn the noise down."""
    d, eta, sigma = 4000, 0.1, 1.0
    settled = _bowl(sigma, 80, "last", d=d, eta=eta, seed=42).coef
    variance = float(np.mean((settled - 1.0) ** 2))
    gibbs = temperature * eta * sigma**2 / 2  # the discrete chain is 1/(1 − η/2) wider
    off = abs(variance / (gibbs / (1 - eta / 2)) - 1.0) * math.sqrt(d / 2)
    quiet = _bowl(1e-6, 30, "average", d=4, eta=eta, seed=42).coef
    plain = projected_gradient_descent(per_record(_Bowl(), np.ones((2, 4)), shape=4), steps=30, step_size=eta).released
    from_plain = apart(quiet, plain)
    told = f"""Settled noise has variance {variance:.5f} of {gibbs / (1 - eta / 2):.5f}, which Langevin's temperature
        eta sigma^2/2 gives ({off:.1f} standard errors); with noise 1e-6 the path is plain descent to
        {from_plain:.1e}."""
    holds = off < 5 and from_plain < 1e-5
    return Finding.judged(holds, told, variance=variance, standard_errors=off, apart_from_plain=from_plain)


@check("43", mutant={"clip": 1.0})
def not_private_without_assumptions(clip: float = math.inf) -> Finding:
    """Put ever larger labels into a regression, and compare epsilon of one step of algorithm 1 with and without."""
    found = {size: outlier_epsilon(size, clip=clip) for size in (1e1, 1e3, 1e5)}
    problem = glm("squared", [[1.0]] * 100, [0.0] * 100, row_norm=1.0)
    refused = refuses(noisy_gradient_descent, problem, budget=BUDGET, radius=1.0)
    unbounded = gradient_bound(SquaredLoss(), row_norm=1.0) is None
    told = f"""With noise 1 a step, a label of 10, 1e3, 1e5 among 100 costs epsilon {found[1e1]:.3g}, {found[1e3]:.3g},
        {found[1e5]:.3g} at delta = 1e-5: no noise is enough for all. The library refuses to plan without a bound."""
    holds = found[1e5] > 10 * found[1e3] > 100 * found[1e1] and refused and unbounded
    return Finding.judged(
        holds, told, epsilon_of_10=found[1e1], epsilon_of_1000=found[1e3], epsilon_of_100000=found[1e5], refused=refused
    )


@check("44", mutant={"power": 1.0})
def proof_in_three_parts(power: float = 0.5) -> Finding:
    """Convolve the losses of T Gaussian steps against one with noise ÷ T^power; rebuild the output without records."""
    worst = 0.0
    for T, mu, e in ((10, 0.2, 0.5), (10, 0.5, 2.0), (100, 0.1, 1.0), (1000, 0.03, 1.0)):
        low, high = fourier_delta([(GaussianPair(mu), T)], e)  # by adding up losses: it does not know the answer
        alone = profile(mu * T**power, e)
        worst = max(worst, alone / high - 1.0, 1.0 - alone / low)
    eta, steps, d = 0.5, 40, 3
    points = np.asarray(_bowl(1.0, steps, "all", d=d, eta=eta, seed=44).iterates)
    noisy = iter((points[:-1] - points[1:]) / eta)
    replayed = walk(lambda _: next(noisy), size=d, steps=steps, step_size=eta)
    off = apart(replayed, _bowl(1.0, steps, "average", d=d, eta=eta, seed=44).coef)
    told = f"""10 to 1000 steps have the delta of one with noise divided by T^{power:g}, which lies in the bracket of
        the convolved losses ({max(worst, 0.0):.1e} outside, its width is 1e-5); the output is rebuilt from {steps}
        noisy gradients, without the records, to {off:.1e}."""
    return Finding.judged(worst <= 0 and off < 1e-9, told, composition_off=worst, replay_off=off)
