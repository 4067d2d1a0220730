"""Laws that every convex set obeys; a new set is one line in CASES.

Points of a set are made here by hand, never by projecting, so that the laws do not check a set against itself.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.optimize import minimize

from privet.errors import InvalidParameter
from privet.geometry import ConvexSet, box, half_space, l1_ball, l2_ball, product, simplex, whole_space

Floats = NDArray[np.float64]
D = 5


@dataclass(frozen=True, kw_only=True)
class Case:
    domain: ConvexSet
    inside: Callable[[np.random.Generator], Floats]
    """Draw a point of the set."""
    corners: tuple[Floats, ...] = ()
    """Two points at the distance of the diameter, for a bounded set; then any others of interest."""


def in_ball(rng: np.random.Generator) -> Floats:
    v = rng.normal(size=D)
    return np.asarray(v / np.linalg.norm(v) * rng.choice([rng.uniform(), 1 - 1e-12]))


def in_simplex(rng: np.random.Generator) -> Floats:
    p = rng.dirichlet(np.full(D, rng.choice([0.05, 1.0])))
    return np.asarray(p / p.sum())


def in_l1(rng: np.random.Generator) -> Floats:
    return np.asarray(in_simplex(rng) * rng.choice([-1.0, 1.0], D) * rng.choice([rng.uniform(), 1 - 1e-12]))


def below(rng: np.random.Generator) -> Floats:
    v = rng.normal(size=D) * 3
    too_far = max(0.0, (NORMAL @ v + 2.0) / (NORMAL @ NORMAL) + 1e-12)
    return np.asarray(v - NORMAL * (too_far + rng.choice([0.0, rng.exponential()])))


E = np.eye(D)
MIDDLE = np.array([5.0, -3.0, 0.0, 1.0, 0.5])
LOW, HIGH = np.array([-1.0, 0.0, 2.0, -9.0, 1.0]), np.array([1.0, 0.5, 2.0, 9.0, 8.0])
NORMAL = np.array([3.0, -1.0, 0.0, 0.25, 2.0])
CASES: dict[str, Case] = {
    "whole space": Case(domain=whole_space(), inside=lambda rng: rng.normal(size=D) * 1e3),
    "l2 ball": Case(domain=l2_ball(radius=2.0), inside=lambda rng: 2 * in_ball(rng), corners=(2 * E[0], -2 * E[0])),
    "l2 ball, elsewhere": Case(
        domain=l2_ball(radius=0.3, centre=MIDDLE),
        inside=lambda rng: MIDDLE + 0.3 * (1 - 1e-12) * in_ball(rng),
        corners=(MIDDLE + 0.3 * E[2], MIDDLE - 0.3 * E[2]),
    ),
    "box": Case(domain=box(low=LOW, high=HIGH), inside=lambda rng: rng.uniform(LOW, HIGH), corners=(LOW, HIGH)),
    "cube": Case(
        domain=box(low=-1.0, high=1.0, size=D),
        inside=lambda rng: rng.uniform(-1, 1, D),
        corners=(-np.ones(D), np.ones(D)),
    ),
    "orthant": Case(domain=box(low=0.0, high=math.inf, size=D), inside=lambda rng: rng.exponential(3.0, D)),
    "l1 ball": Case(domain=l1_ball(radius=3.0), inside=lambda rng: 3 * in_l1(rng), corners=(3 * E[1], -3 * E[1])),
    "simplex": Case(domain=simplex(), inside=in_simplex, corners=(E[0], E[4])),
    "simplex, total 7": Case(
        domain=simplex(total=7.0, size=D), inside=lambda rng: 7 * in_simplex(rng), corners=(7 * E[0], 7 * E[4])
    ),
    "half-space": Case(domain=half_space(normal=NORMAL, offset=-2.0), inside=below),
    "product": Case(
        domain=product([l1_ball(radius=1.0), box(low=-1, high=2, size=1), l2_ball(radius=2.0)], [2, 1, 2]),
        inside=lambda rng: np.concatenate(
            [in_l1(rng)[:2], rng.uniform(-1, 2, 1), np.sqrt(2) * rng.uniform(-1, 1, 2) * (1 - 1e-12)]
        ),
        corners=(np.array([1.0, 0, -1, 2, 0]), np.array([-1.0, 0, 2, -2, 0])),
    ),
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
bounded = pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.corners], ids=[k for k, c in CASES.items() if c.corners]
)
points = arrays(
    np.float64,
    D,
    elements=st.one_of(st.floats(-10, 10), st.floats(-1e9, 1e9), st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 5e-324])),
)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@pytest.mark.medium
@each
@given(x=points)
def test_projection_is_feasible_and_idempotent_to_the_last_bit(case: Case, x: Floats) -> None:
    """The set contains the projection with tolerance 0, and projecting it again changes no bit."""
    p = case.domain.project(x)
    assert case.domain.contains(p)
    assert case.domain.project(p).tobytes() == p.tobytes()


@pytest.mark.medium
@each
@given(rng=seeds)
def test_points_of_the_set_stay_where_they_are(case: Case, rng: np.random.Generator) -> None:
    """A point of the set is contained and comes back bit for bit, as a copy."""
    for q in (case.inside(rng), *case.corners):
        assert case.domain.contains(q, tolerance=1e-12)
        if case.domain.contains(q):
            p = case.domain.project(q)
            assert p.tobytes() == q.tobytes()
            assert not np.shares_memory(p, q)


@pytest.mark.medium
@each
@given(x=points, rng=seeds)
def test_variational_inequality(case: Case, x: Floats, rng: np.random.Generator) -> None:
    """⟨x − p, q − p⟩ ≤ 0 for every q of the set: this and feasibility are what makes p the nearest point."""
    p = case.domain.project(x)
    for q in (case.inside(rng), *case.corners):
        # p is off by some 1e-15 of its own size, which the length of x − p multiplies.
        scale = (np.linalg.norm(x - p) + np.linalg.norm(q - p)) * (np.linalg.norm(p) + np.linalg.norm(q) + 1)
        assert (x - p) @ (q - p) <= 1e-14 * scale


@pytest.mark.medium
@each
@given(x=points, rng=seeds)
def test_projection_contracts_distances_to_the_set(case: Case, x: Floats, rng: np.random.Generator) -> None:
    """No point of the set gets farther away (lecture 13, lemma 2.2); Pythagoras even leaves the distance moved."""
    p, q = case.domain.project(x), case.inside(rng)
    assert np.linalg.norm(p - q) <= np.linalg.norm(x - q) * (1 + 1e-14) + 1e-14
    moved, far = np.linalg.norm(x - p), np.linalg.norm(x - q)
    assert moved**2 + np.linalg.norm(p - q) ** 2 <= far**2 * (1 + 1e-12) + 1e-12


@pytest.mark.medium
@each
@given(x=points, y=points)
def test_projection_is_non_expansive(case: Case, x: Floats, y: Floats) -> None:
    """Two points never get farther apart, up to rounding."""
    distance = np.linalg.norm(case.domain.project(x) - case.domain.project(y))
    size = np.linalg.norm(x) + np.linalg.norm(y) + 10
    assert distance <= np.linalg.norm(x - y) + 1e-14 * size


@pytest.mark.medium
@each
@pytest.mark.parametrize("seed", range(3))
def test_no_solver_finds_a_nearer_point(case: Case, seed: int) -> None:
    """SciPy's solver, over mixtures of points of the set, finds nothing nearer than the projection."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=D) * 4
    nearest = float(np.linalg.norm(x - case.domain.project(x)))

    def distance(weights: Floats) -> float:
        """From x to a mixture of points of the set, which by convexity is one too."""
        share = np.square(weights) / np.sum(np.square(weights))
        return float(np.linalg.norm(x - share @ mixture))

    mixture = np.array([case.inside(rng) for _ in range(12)] + list(case.corners))
    best = min(minimize(distance, rng.normal(size=len(mixture)), method="Powell").fun for _ in range(2))
    assert best >= nearest - 1e-9


@pytest.mark.medium
@each
@given(direction=points, rng=seeds)
def test_support_is_never_passed(case: Case, direction: Floats, rng: np.random.Generator) -> None:
    """No point of the set lies farther in a direction than the support function says."""
    support = case.domain.support(direction)
    for q in (case.inside(rng), *case.corners):
        assert direction @ q <= support + 1e-12 * (np.linalg.norm(direction) * (np.linalg.norm(q) + 1) + 1)


@pytest.mark.medium
@bounded
@given(direction=arrays(np.float64, D, elements=st.floats(-10, 10)))
def test_support_is_reached(case: Case, direction: Floats) -> None:
    """Projecting a point far out in a direction lands where the support is taken; the width is at most the diameter."""
    size = float(np.linalg.norm(direction))
    support = case.domain.support(direction)
    if size > 1e-3:
        p = case.domain.project(direction / size * 1e6)
        assert direction @ p >= support - 1e-4 * size * (1 + abs(support))
    assert support + case.domain.support(-direction) <= case.domain.diameter * size * (1 + 1e-12) + 1e-12


@pytest.mark.medium
@bounded
@given(rng=seeds)
def test_diameter_and_radius_are_reached_and_never_passed(case: Case, rng: np.random.Generator) -> None:
    """The two named corners are a diameter apart, no two points more; the same for the radius and the centre."""
    domain, (a, b) = case.domain, case.corners[:2]
    assert np.linalg.norm(a - b) == pytest.approx(domain.diameter, rel=1e-14)
    p, q = case.inside(rng), case.inside(rng)
    assert np.linalg.norm(p - q) <= domain.diameter * (1 + 1e-14)
    for point in (p, q, a, b):
        assert np.linalg.norm(point - domain.centre(D)) <= domain.radius * (1 + 1e-12)
    farthest = max(np.linalg.norm(corner - domain.centre(D)) for corner in (a, b))
    if domain != simplex():  # which does not know its dimension, and gives the limit
        assert farthest == pytest.approx(domain.radius, rel=1e-12)


@each
def test_unbounded_sets_say_so(case: Case) -> None:
    """Without corners the diameter, the radius and the support in some direction are infinite."""
    unbounded = not case.corners
    assert math.isinf(case.domain.diameter) == unbounded
    assert math.isinf(case.domain.radius) == unbounded
    assert any(math.isinf(case.domain.support(s * e)) for e in E for s in (1, -1)) == unbounded
    assert case.domain.support(np.zeros(D)) == 0.0


@each
def test_centre_is_a_point_of_the_set(case: Case) -> None:
    """The public start is feasible, and a fresh array that the caller may change."""
    start = case.domain.centre(D)
    assert start.shape == (D,)
    assert case.domain.contains(start)
    start += 1e9
    assert case.domain.contains(case.domain.centre(D))


@each
@pytest.mark.parametrize("scale", [1e-300, 1e16, 1e100, 1e150, 1e200, 1e300])
def test_tiny_and_huge_points_are_harmless(case: Case, scale: float) -> None:
    """Points of size 1e-300 to 1e300 are projected without warning, feasibly, and nearly onto the right place."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.normal(size=D) * scale
        p = case.domain.project(x)
        assert case.domain.contains(p)
        if case.corners and scale > 1:
            unit = x / scale
            assert unit @ p == pytest.approx(case.domain.support(unit), rel=1e-9, abs=1e-9)


@each
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_points_that_are_not_finite_give_nan(case: Case, bad: float) -> None:
    """A NaN or infinite coordinate makes the projection all NaN; nothing raises, and the set has no such point."""
    x = np.zeros(D)
    x[3] = bad
    assert np.isnan(case.domain.project(x)).all()
    assert not case.domain.contains(x)
    assert not case.domain.contains(x, tolerance=math.inf)
    assert math.isnan(case.domain.support(x))


@each
def test_any_shape_is_one_point(case: Case) -> None:
    """Entries are coordinates in C order, whatever the shape; lists, integers and float32 become float64."""
    x = np.arange(D) * 3
    expected = case.domain.project(x.astype(np.float64))
    for form in (x, x.tolist(), x.astype(np.float32), x.reshape(1, D), x.reshape(D, 1)):
        got = case.domain.project(form)
        assert got.dtype == np.float64
        assert got.shape == np.shape(form)
        assert got.ravel().tobytes() == expected.tobytes()
        assert case.domain.contains(got)


@each
def test_wrong_shapes_and_types_are_refused(case: Case) -> None:
    """No coordinates, another number of them than the set has, or text: an error before anything is computed."""
    for method in (case.domain.project, case.domain.contains, case.domain.support):
        with pytest.raises(InvalidParameter):
            method([])
        with pytest.raises(InvalidParameter):
            method(["a"] * D)
    if case.domain.size is not None:
        assert case.domain.size == D
        with pytest.raises(InvalidParameter, match=f"with {D} coordinates, got {D + 1}"):
            case.domain.project(np.zeros(D + 1))
        with pytest.raises(InvalidParameter, match=f"with {D} coordinates, got {D + 1}"):
            case.domain.centre(D + 1)
    for d in (0, -1, 2.5, None):
        with pytest.raises(InvalidParameter):
            case.domain.centre(d)  # type: ignore[arg-type]  # which is the point
    for tolerance in (-1.0, math.nan, "0", None):
        with pytest.raises(InvalidParameter, match="tolerance"):
            case.domain.contains(np.zeros(D), tolerance=tolerance)  # type: ignore[arg-type]


@each
def test_sets_are_values(case: Case) -> None:
    """A set is equal to its copy, hashes alike, survives pickling, cannot be changed, and prints as it is written."""
    copy = pickle.loads(pickle.dumps(case.domain))
    assert copy == case.domain
    assert hash(copy) == hash(case.domain)
    assert len({c.domain for c in CASES.values()}) == len(CASES)
    written = eval(repr(case.domain), {**globals(), "array": np.array, "inf": math.inf})
    assert written == case.domain
    with pytest.raises((AttributeError, TypeError)):
        case.domain.radius = 1.0  # type: ignore[misc]  # which is the point
