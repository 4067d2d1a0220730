"""The lemmas of docs/proofs/contour.md, sections 3 to 5, at random points, and the bounds that are taken from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privet.accounting.pairs import mixture_grid
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.mixture_grid import Grid, exponents, power
from privet.accounting.pairs.mixture_moments import _LINE, _REAL, _sizes

KINDS = ["remove", "add", "replace"]
rng = np.random.default_rng(11)
R = np.exp(rng.uniform(-12, 12, 20_000))  # ρ/A
RIGHT = rng.uniform(0.0, math.pi / 2, 20_000)  # angles in the right half plane
ANY = rng.uniform(0.01, math.pi - 0.01, 20_000)


def log_w(r: np.ndarray, angle: np.ndarray | float) -> Any:
    """log(1 + r·e^{iθ}): log |w/A| and arg w."""
    return np.log(1 + r * np.exp(1j * np.asarray(angle)))


def kappa(r: np.ndarray, angle: np.ndarray | float) -> Any:
    """d log|w| / d log r."""
    z = r * np.exp(1j * np.asarray(angle))
    return (z / (1 + z)).real


def test_powers_grow_at_most_like_the_shift() -> None:
    """0 ≤ κ ≤ min(1, r), 1 - κ(r) = κ(1/r), and κ falls with the angle where r ≤ 1."""
    k = kappa(R, RIGHT)
    assert np.all((k >= 0) & (k <= np.minimum(1, R) + 1e-12))
    assert np.allclose(1 - k, kappa(1 / R, RIGHT), atol=1e-12)
    low = np.minimum(R, 1 / R)
    assert np.all(kappa(low, RIGHT) <= kappa(low, RIGHT * 0.7) + 1e-12)


def test_the_curvature_of_log_w_is_small_and_local() -> None:
    """κ rises in log r by at most min(½, 2Aρ/(A+ρ)²) per unit, and e^d times that within a distance of d."""
    d = rng.uniform(0.0, 0.3, len(R))
    slope = (kappa(R * np.exp(1e-4), RIGHT) - kappa(R * np.exp(-1e-4), RIGHT)) / 2e-4
    share = R / (1 + R) ** 2
    assert np.all((slope >= -1e-9) & (slope <= np.minimum(0.5, 2 * share) + 1e-7))
    near = (kappa(R * np.exp(d), RIGHT) - kappa(R, RIGHT)) / np.maximum(d, 1e-3)
    assert np.all(near * np.maximum(d, 1e-3) <= 2 * share * np.exp(d) * np.maximum(d, 1e-3) + 1e-9)


@pytest.mark.parametrize("turned", [False, True])
def test_exchanges_fall_like_a_gaussian_beyond_their_reach(turned: bool) -> None:
    """(log φw₊^{1+c}|w₋|^{-c})′ ≤ -(x - b) for x ≥ b, b the right end of the grid less its 11."""
    n = 20_000
    s, c = 10 ** rng.uniform(-2, 1, n), 10 ** rng.uniform(-2, 3, n)
    log_k = rng.uniform(-8, 8, n)  # log(q/(1-q))
    b = s * (1 + c) + np.where(log_k > 0, np.minimum(s * c, log_k / s), 0.0)
    x = b + 10 ** rng.uniform(-6, 2, n) * rng.integers(0, 2, n)
    with np.errstate(over="ignore", invalid="ignore"):
        up = 1 / (1 + np.exp(-(log_k + s * x - s * s / 2)))
        r = np.exp(np.minimum(log_k - s * x - s * s / 2, 30.0))
        down = kappa(r, RIGHT) if turned else kappa(r, 0.0)
    slope = -x + s * ((1 + c) * up + c * down)
    assert np.all(slope <= -(x - b) + 1e-9 * (1 + s * (1 + 2 * c)))


def test_turned_arguments_keep_their_order() -> None:
    """arg w(α+θ) ≥ arg w(α-θ) for 0 ≤ α ≤ π/2, 0 ≤ θ ≤ π - α: what is continued never grows with the frequency."""
    theta = rng.uniform(0, 1, len(R)) * (math.pi - RIGHT - 1e-3)
    assert np.all(log_w(R, RIGHT + theta).imag >= log_w(R, RIGHT - theta).imag - 1e-12)


def test_what_shrinks_turns() -> None:
    """-log|1+re^{iψ}| ≤ |cot ψ|·arg(1+re^{iψ}), so that e^{-y·arg} makes up for a negative power of order X ≤ y·tan."""
    obtuse = np.maximum(ANY, math.pi - ANY)
    value = log_w(R, obtuse)
    assert np.all(-value.real <= value.imag / -np.tan(obtuse) + 1e-12)


def test_moduli_on_the_lower_edge_are_monotone() -> None:
    """At 0.6π |log(1+re^{iψ})| and log⁺ rise with r, and log 1/|1+re^{iψ}| is at most min(r|cos ψ|, log 1/sin ψ)."""
    r, psi = np.sort(R), 0.6 * math.pi
    value = log_w(r, psi)
    assert np.all(np.diff(np.abs(value)) >= -1e-12)
    assert np.all(np.diff(np.maximum(value.real, 0.0)) >= -1e-12)
    assert np.all(-value.real <= np.minimum(r * abs(math.cos(psi)), -math.log(math.sin(psi))) + 1e-12)


def test_the_upper_edge_is_no_worse_than_the_lower() -> None:
    """Where |1+re^{0.9πi}| > 1, it is less than |1+re^{0.6πi}|, and its argument is larger."""
    high, low = log_w(R, 0.9 * math.pi), log_w(R, 0.6 * math.pi)
    grown = high.real > 0
    assert np.all(high.real[grown] <= low.real[grown])
    assert np.all(high.imag[grown] >= low.imag[grown])


def test_verticals_of_fixed_size_batches() -> None:
    """-log|1-q+qe^{iφ}| ≤ tan(φ/2)·arg(1-q+qe^{iφ}) for φ ≤ π/2, and φ - arg rises with φ."""
    q, phi = rng.uniform(0, 1, len(R)), RIGHT
    side = np.log(1 - q + q * np.exp(1j * phi))
    assert np.all(-side.real <= np.tan(phi / 2) * side.imag + 1e-12)
    more = np.log(1 - q + q * np.exp(1j * (phi + 1e-3)))
    assert np.all(more.imag - side.imag <= 1e-3 + 1e-12)


def log_integrand(pair: MixturePair, order: float, x: np.ndarray, angle: float) -> Any:
    """log φ|w₊^a w₋^b| at xi = x + i·angle/s, without the Gaussian's growth."""
    q, s = pair.rate, pair.shift

    def modulus(y: np.ndarray) -> Any:
        size = np.logaddexp(math.log1p(-q), math.log(q) + y)
        return size + np.log1p(2 * (math.cos(angle) - 1) * np.exp(math.log(q) + math.log1p(-q) + y - 2 * size)) / 2

    a, *b = (float(power[0]) for power in exponents(pair.kind, np.array([order])))
    out = a * modulus(s * x - s * s / 2) - x * x / 2 - math.log(2 * math.pi) / 2
    return out + b[0] * modulus(-s * x - s * s / 2) if b else out


def cases(kind: Any, count: int) -> list[tuple[MixturePair, float, Grid, bool]]:
    """Pairs, orders and grids of all sizes."""
    found: list[tuple[MixturePair, float, Grid, bool]] = []
    draw = np.random.default_rng(KINDS.index(kind))
    while len(found) < count:
        s, order = 10 ** draw.uniform(-1.3, 0.9), 10 ** draw.uniform(-1, 3.3 if kind == "add" else 1.6)
        q = 1 / (1 + math.exp(draw.uniform(-5, 10)))
        pair, real = MixturePair(q, float(s), kind), bool(draw.integers(2))
        with np.errstate(over="ignore"):  # e^{s·xi} of orders that no float holds; they are passed over
            grid = pair._moments()._grid(_REAL if real else _LINE, float(order), float(order))
        if abs(log_integrand(pair, order, grid.x, 0.0).max()) < 600:
            found.append((pair, float(order), grid, real))
    return found


def sizes(pair: MixturePair, order: float, grid: Grid) -> tuple[float, float]:
    powers = power(exponents(pair.kind, np.array([order])), grid.steepest)
    size, dropped = _sizes(grid, np.exp(powers + grid.log_cell))
    return float(size[0, 0]), float(dropped[0, 0])


def exceeded(kind: Any, count: int) -> int:
    """How often an integral along some line of the strip exceeds its bound."""
    bad = 0
    for pair, order, grid, real in cases(kind, count):
        size, _ = sizes(pair, order, grid)
        centre, half = pair._moments()._line(real)
        x = np.arange(grid.x[0] - 2, grid.x[-1] + 2, grid.step / 16)
        for share in (0.0, 0.5, 1.0):
            angle = pair.shift * (abs(centre) + half) * share
            exact = float(np.exp(log_integrand(pair, order, x, angle)).sum()) * grid.step / 16
            bad += exact > size * (1 + 1e-9)
    return bad


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_bound_every_line_of_the_strip(kind: Any) -> None:
    """∫φ|w₊^a w₋^b| along any line of the strip is at most the bound taken from the nodes."""
    assert exceeded(kind, 60) == 0


@pytest.mark.parametrize("kind", ["add", "replace"])
def test_sizes_of_the_real_line_alone_are_caught(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that takes negative powers on the real line is below the truth at the strip's edge."""
    honest = mixture_grid._dip
    monkeypatch.setattr(mixture_grid, "_dip", lambda q, rise, s, edge, step: honest(q, rise, s, 0.0, step))
    assert exceeded(kind, 60) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_that_are_left_out_are_counted(kind: Any) -> None:
    """The sum over all nodes without end, less that over the grid's, is at most the bound on what is dropped."""
    for pair, order, grid, real in cases(kind, 40):
        far = 60 + 3 * pair.shift * (1 + order)
        count = int(far / grid.step)
        if count > 50_000:
            continue
        x = grid.x[0] + grid.step * np.arange(-count, count)
        place = np.round((grid.x - grid.x[0]) / grid.step).astype(int) + count
        left_out = np.ones(len(x), dtype=bool)
        left_out[place[place < len(x)]] = False
        for share in (0.0, 1.0):
            centre, half = pair._moments()._line(real)
            rest = log_integrand(pair, order, x[left_out], pair.shift * (abs(centre) + half) * share)
            assert grid.step * float(np.exp(rest).sum()) <= sizes(pair, order, grid)[1]


@pytest.mark.medium
def test_decay_at_high_orders() -> None:
    """Of "add" at orders of hundreds, where its error of quadrature was once taken to be 1e-10: never too much."""
    draw = np.random.default_rng(3)
    for _ in range(60):
        q, s, c = 10 ** draw.uniform(-4, -0.02), 10 ** draw.uniform(-0.8, 0.3), 10 ** draw.uniform(1.5, 2.8)
        pair, u = MixturePair(float(q), float(s), "add"), 10 ** draw.uniform(-1, 2.5, 6)
        with np.errstate(all="ignore"):
            promised = pair.decay(float(c), u)
            value, error = pair.log_moment(np.concatenate([[c], c + 1j * u]))
        fallen = value[0].real - value[1:].real - np.log1p(-np.minimum(error[1:], 0.5))
        assert not np.any(promised > fallen + error[0] + 1e-12)


def test_few_moments_bound_the_moment_of_joining() -> None:
    """E[w^{-t}] is at most what the first moments of w allow, whatever rate, shift and order, and not far below."""
    draw = np.random.default_rng(5)
    for _ in range(200):
        q, s, t = 10 ** draw.uniform(-4, -0.02), 10 ** draw.uniform(-1.5, 0.7), 10 ** draw.uniform(-2, 2.3)
        pair = MixturePair(float(q), float(s), "add")
        with np.errstate(all="ignore"):
            value, error = pair.log_moment(np.array([complex(t)]))
        bound = pair.quick_log_moment(float(t))
        assert bound >= value[0].real - 2 * error[0]
        if q * (4 + t) < 0.01 and s < 0.5:
            assert bound <= value[0].real * 1.001 + 2 * error[0]


def test_moments_of_joining_without_the_remainder_are_caught() -> None:
    """A mutant that stops at the third moment is below the truth, so the remainder is needed."""
    q, s, t = 0.05, 0.8, 8.0
    pair, e = MixturePair(q, s, "add"), math.expm1(s * s)
    second = t * (t + 1) / 2 * q * q * e
    assert second * (1 - (t + 2) / 3 * q * e * (3 + e)) < pair.log_moment(np.array([complex(t)]))[0][0].real
