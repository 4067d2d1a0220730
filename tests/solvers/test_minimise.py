"""The certified minimiser: its certificate, its rounding bound, and that it always arrives."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from privet import box, glm, l1_ball, l2_ball, simplex, whole_space
from privet.geometry import ConvexSet, half_space
from privet.losses import HuberLoss, Loss, MultinomialLoss, SmoothedHingeLoss
from privet.problems import LinearProblem, facts_of
from privet.solvers.minimise import Minimiser
from privet.solvers.smooth_model import default_reach, gradient_bound

Vector = NDArray[np.float64]

LOSSES: list[tuple[Any, float | None]] = [
    ("logistic", None),
    ("logistic", 0.3),
    ("half_squared", 0.5),
    ("squared", 3.0),
    (HuberLoss(threshold=0.7), None),
    (SmoothedHingeLoss(width=0.5), None),
]
DOMAINS: list[ConvexSet] = [
    whole_space(),
    l2_ball(radius=0.5),
    l2_ball(radius=50.0, centre=[1.0, 0.0, 0.0]),
    box(low=[-0.1, -1.0, 0.0], high=[0.2, 1.0, 0.4]),
    l1_ball(radius=0.4),
    simplex(),
    half_space(normal=[1.0, 1.0, 1.0], offset=-0.2),
]


def records(loss: Any, n: int = 60, d: int = 3, seed: int = 0) -> tuple[Vector, Vector]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.choice([0.05, 0.5, 5.0], size=(n, 1))
    y = (X @ np.linspace(1, -1, d) + rng.normal(size=n) / 4 > 0).astype(float)
    if isinstance(loss, SmoothedHingeLoss):
        y = 2 * y - 1
    if loss in ("half_squared", "squared") or isinstance(loss, HuberLoss):
        y = X @ np.linspace(1, -1, d) + rng.standard_t(2, size=n)
    return X, y


def made(loss: str | Loss, domain: ConvexSet, clip: float | None, strength: float, **more: Any) -> Minimiser:
    X, y = records(loss, **more)
    return of(glm(loss, X, y, row_norm=1.0, domain=domain), clip, strength)


def of(problem: LinearProblem, clip: float | None, strength: float) -> Minimiser:
    facts = facts_of(problem, "zero_out", max(problem.records, 1))
    bound = gradient_bound(facts, clip)
    centre = np.asarray(problem.domain.centre(math.prod(problem.shape))).reshape(problem.shape)
    reach = default_reach(facts, bound, None)
    return Minimiser(problem=problem, clip=bound, strength=strength, centre=centre, reach=reach)


def exact_gradient(solver: Minimiser, w: Vector, tilt: Vector) -> list[Any]:
    """∇F in 60-digit arithmetic, for the losses above, from the rows and caps as they are stored."""
    table, loss = solver.problem.table, solver.problem.loss
    mp, total = mpmath.mp, [mpmath.mpf(0)] * len(w)
    mp.dps = 60
    for units, y, inverse in zip(table.units, solver.problem.labels, table.inverse_norms, strict=True):
        row = [mp.mpf(int(v)) * mp.mpf(table.step) for v in units]
        z = mp.fsum(x * mp.mpf(v) for x, v in zip(row, w, strict=True))
        label, cap = mp.mpf(y), mp.mpf(inverse) * mp.mpf(solver.clip) / mp.mpf(table.step)
        if isinstance(loss, HuberLoss):
            slope = min(max(z - label, -mp.mpf(loss.threshold)), mp.mpf(loss.threshold))
        elif isinstance(loss, SmoothedHingeLoss):
            slope = -label * min(max((1 - label * z) / mp.mpf(loss.width), mp.mpf(0)), mp.mpf(1))
        elif hasattr(loss, "factor"):
            slope = mp.mpf(loss.factor) * (z - label)
        else:
            sign = 2 * label - 1
            slope = -sign / (1 + mp.exp(sign * z))
        slope = min(max(slope, -cap), cap)
        total = [t + slope * x for t, x in zip(total, row, strict=True)]
    return [
        t + mp.mpf(solver.strength) * (mp.mpf(v) - mp.mpf(c)) + mp.mpf(b)
        for t, v, c, b in zip(total, w, solver.centre, tilt, strict=True)
    ]


@pytest.mark.parametrize(("loss", "clip"), LOSSES)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e3, 1e8])
def test_gradient_is_within_its_own_error_bound(loss: Any, clip: float | None, scale: float) -> None:
    """The float gradient differs from 60-digit arithmetic by less than `_error`, near and far from the origin."""
    solver = made(loss, whole_space(), clip, strength=2.0)
    rng = np.random.default_rng(5)
    w, tilt = scale * rng.normal(size=3), rng.normal(size=3)
    exact = exact_gradient(solver, w, tilt)
    found = solver.gradient(w, tilt)
    gap = float(mpmath.norm([mpmath.mpf(f) - e for f, e in zip(found, exact, strict=True)]))
    allowed = solver._error(60.0, float(np.linalg.norm(w)), float(np.linalg.norm(tilt)))
    assert gap <= allowed


@pytest.mark.medium
@pytest.mark.parametrize(("loss", "clip"), LOSSES)
@pytest.mark.parametrize("strength", [1e-3, 1.0, 100.0])
def test_certified_tolerance_holds_against_an_oracle(loss: Any, clip: float | None, strength: float) -> None:
    """The solver's point is within the tolerance of the true minimiser, whose gradient vanishes to 25 digits.

    The oracle is a secant-like iteration in 60 digits: w ← w − H⁻¹∇F with the float Hessian, until nothing moves.
    """
    solver = made(loss, whole_space(), clip, strength)
    tilt = np.array([0.3, -0.2, 0.1])
    tolerance = max(1e-9 / strength, solver.least_tolerance(records=60, tilt=1.0))
    found = solver.solve(tolerance, tilt=tilt)
    w = found
    rest = [mpmath.mpf(v) for v in w]
    for _ in range(60):
        exact = exact_gradient(solver, np.array(rest, dtype=object), tilt)
        size = mpmath.norm(exact)
        if size < 1e-25:
            break
        inverse = np.linalg.inv(solver._hessian(np.array([float(v) for v in rest])))
        move = [mpmath.fsum(mpmath.mpf(a) * e for a, e in zip(line, exact, strict=True)) for line in inverse]
        rest = [v - m for v, m in zip(rest, move, strict=True)]
    assert size < 1e-25
    gap = float(mpmath.norm([mpmath.mpf(v) - r for v, r in zip(found, rest, strict=True)]))
    away = float(mpmath.norm(rest))
    assert gap * min(1.0, solver.reach / away) <= tolerance


@pytest.mark.medium
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize(("loss", "clip"), LOSSES[:4])
def test_every_way_to_the_minimiser_arrives_at_the_same_point(
    domain: ConvexSet, loss: Any, clip: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newton, accelerated and plain descent end within the tolerance of each other, on every set, and inside it."""
    solver = made(loss, domain, clip, strength=5.0)
    tolerance = max(1e-8, solver.least_tolerance(records=60))
    fast = solver.solve(tolerance)
    monkeypatch.setattr(Minimiser, "_newton", lambda self, w, tilt, tolerance: w)
    slower = solver.solve(tolerance)
    monkeypatch.setattr(Minimiser, "_accelerated", lambda self, w, tilt, tolerance: w)
    slowest = solver.solve(tolerance)
    for point in (slower, slowest):
        assert np.linalg.norm(point - fast) <= 2 * tolerance
        assert domain.contains(point, tolerance=1e-12)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_plain_descent_arrives_by_its_own_theorem(domain: ConvexSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last resort needs no certificate: the number of steps that theory gives suffices, even if none is issued."""
    solver = made("logistic", domain, None, strength=2.0)
    tolerance = max(1e-7, solver.least_tolerance(records=60))
    truth = solver.solve(max(1e-10, solver.least_tolerance(records=60)))
    distance = Minimiser._distance
    zeros = np.zeros(3)
    start = distance(solver, solver.start, zeros)[0]
    monkeypatch.setattr(
        Minimiser, "_distance", lambda self, w, tilt, bend=math.nan: (start, distance(self, w, tilt, bend)[1])
    )
    found = solver.pulled(solver._descent(solver.start, zeros, tolerance))
    assert np.linalg.norm(found - truth) <= tolerance


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_certificate_never_understates_the_distance(domain: ConvexSet) -> None:
    """At any point of the set, the bound on the distance from the minimiser is at least the distance."""
    solver = made("logistic", domain, None, strength=3.0)
    best = solver.solve(max(1e-10, solver.least_tolerance(records=60)))
    rng = np.random.default_rng(3)
    for scale in (1e-6, 1e-3, 0.1, 1.0, 30.0):
        w = solver._project(best + scale * rng.normal(size=3))
        gap = float(np.linalg.norm(solver.pulled(w) - best))
        assert gap <= solver._distance(w, np.zeros(3))[0] + 2e-10


def test_certificate_that_forgets_the_strength_is_caught() -> None:
    """A mutant that takes the gradient's norm for a distance understates it where the penalty is weak."""
    solver = made("logistic", l2_ball(radius=50.0), None, strength=0.01)
    best = solver.solve(max(1e-10, solver.least_tolerance(records=60)))
    w = best + np.array([0.5, 0.0, 0.0])
    bound = solver._distance(w, np.zeros(3))[0]
    mutant = bound * solver.strength
    assert mutant < 0.5 <= bound


def test_sparse_and_dense_tables_have_the_same_minimiser() -> None:
    """CSR rows give the dense rows' minimiser, up to the tolerance."""
    X, y = records("logistic")
    X[np.abs(X) < 0.1] = 0.0
    dense = of(glm("logistic", X, y, row_norm=1.0), None, 1.0)
    thin = of(glm("logistic", sparse.csr_matrix(X), y, row_norm=1.0), None, 1.0)
    assert np.allclose(dense.solve(1e-9), thin.solve(1e-9), atol=2e-9, rtol=0)


def test_several_outputs_and_no_records() -> None:
    """A multinomial model is solved; without any record the minimiser is the centre of the penalty."""
    X, _ = records("logistic")
    labels = np.arange(60) % 3
    solver = of(glm(MultinomialLoss(classes=3), X, labels, row_norm=1.0), None, 1.0)
    found = solver.solve(1e-8)
    assert found.shape == (3, 3)
    assert solver._distance(found, np.zeros((3, 3)))[0] <= 1e-8
    nobody = of(glm("logistic", np.zeros((0, 3)), np.zeros(0), row_norm=1.0), None, 1.0)
    assert np.array_equal(nobody.solve(1e-9), np.zeros(3))


def test_minimisers_far_beyond_reach_are_pulled_back_to_it() -> None:
    """Absurd labels put a clipped regression's minimiser far away; the result is at `reach`, in the same direction."""
    solver = of(glm("half_squared", np.ones((1000, 1)), np.full(1000, 1e300), row_norm=1.0), 1.0, 0.01)
    found = solver.solve(solver.least_tolerance(records=1000))
    assert np.allclose(found, solver.reach, rtol=1e-9)


def test_many_blocks_add_up() -> None:
    """Sums over several blocks of records, the last one ragged, equal the plain formula."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_001, 5)) / 4
    y = rng.normal(size=20_001) > 0
    solver = of(glm("logistic", X, y, row_norm=1.0), None, 3.0)
    w = rng.normal(size=5)
    rows = solver.problem.table.units * solver.problem.table.step
    plain = rows.T @ (1 / (1 + np.exp(-(rows @ w))) - y) + 3.0 * w
    assert np.allclose(solver.gradient(w, np.zeros(5)), plain, rtol=1e-11)
    bends = 1 / (2 + 2 * np.cosh(rows @ w))
    assert np.allclose(solver._hessian(w), (rows.T * bends) @ rows + 3 * np.eye(5), rtol=1e-10)


def test_rounding_of_predictions_is_allowed_for() -> None:
    """Where labels lie near huge predictions, slopes keep the rounding of z, and the error bound holds."""
    X = 1e3 * records("half_squared")[0]  # all rows at the full norm
    X[:] = np.abs(X)
    w = 1e8 * np.sqrt([2.0, 3.0, 5.0])  # all 53 bits in use
    rows = of(glm("half_squared", X, np.zeros(60), row_norm=1.0), 1.0, 2.0).problem.table
    labels = (rows.units * rows.step) @ w + np.linspace(-1e-3, 1e-3, 60)
    solver = of(glm("half_squared", X, labels, row_norm=1.0), 1.0, 2.0)
    solver = replace(solver, centre=w)
    exact = exact_gradient(solver, w, np.zeros(3))
    gap = float(mpmath.norm([mpmath.mpf(f) - e for f, e in zip(solver.gradient(w, np.zeros(3)), exact, strict=True)]))
    public = 2.0 * solver.strength * float(np.linalg.norm(w)) * 2.0**-50
    assert 1e-9 < gap <= solver._error(60.0, float(np.linalg.norm(w)), 0.0) - public


def test_certificate_counts_the_error_of_the_gradient() -> None:
    """However small the computed gradient is, the certified distance is at least its error ÷ strength."""
    solver = made("logistic", whole_space(), None, strength=1e-3)
    best = solver.solve(solver.least_tolerance(records=60))
    bound, gradient = solver._distance(best, np.zeros(3))
    error = solver._error(60.0, float(np.linalg.norm(best)), 0.0)
    assert bound * solver.strength >= float(np.linalg.norm(gradient)) + error
