"""What docs/proofs/contour.md, section 7, assumes of NumPy, SciPy and the C library, against mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from privet.accounting.numerics import gauss_legendre

UNIT = 2.0**-53
Range = tuple[float, float]


def gaps(found: Any, exact: Callable[[Any], Any], x: Any) -> Any:
    """Relative errors, with 40 digits."""
    with mp.workdps(40):
        truth = [exact(mp.mpmathify(z)) for z in x.tolist()]
        return np.array([float(abs(mp.mpmathify(f) - t) / abs(t)) for f, t in zip(found.tolist(), truth, strict=True)])


PLAIN: dict[str, tuple[Any, Callable[[Any], Any], Range]] = {
    "exp": (np.exp, mp.exp, (-700, 700)),
    "expm1": (np.expm1, mp.expm1, (-30, 700)),
    "log": (np.log, mp.log, (1e-300, 1e6)),
    "log1p": (np.log1p, mp.log1p, (-0.9, 1e3)),
    "sin": (np.sin, mp.sin, (-1e6, 1e6)),
    "cos": (np.cos, mp.cos, (-1e6, 1e6)),
    "tan": (np.tan, mp.tan, (-1e4, 1e4)),
    "arctan": (lambda x: np.arctan2(x, 1.0), mp.atan, (-1e3, 1e3)),
    "hypot": (lambda x: np.hypot(x, 1.0), lambda x: mp.sqrt(x * x + 1), (-1e3, 1e3)),
    "arcsinh": (np.arcsinh, mp.asinh, (-1e8, 1e8)),
    "logaddexp": (lambda x: np.logaddexp(x, 1.0), lambda x: mp.log(mp.exp(x) + mp.e), (0, 300)),
}


def check_plain(name: str, count: int, seed: int) -> None:
    ours, exact, (low, high) = PLAIN[name]
    rng = np.random.default_rng(seed)
    # all sizes, and both signs where the range has both
    small = 10 ** rng.uniform(-9, math.log10(high), count // 2) * np.where(
        rng.random(count // 2) < 0.5, np.sign(low), 1
    )
    x = np.concatenate([rng.uniform(low, high, count - count // 2), small])
    x = x[(x >= low) & (x <= high) & (x != 0)]
    assert gaps(ours(x), exact, x).max() <= 8 * UNIT


def check_inverse(x: Any, given: Any, chance: Callable[[Any], Any], allowed: float) -> None:
    """x is within `allowed` of the normal quantile, seen by the normal tail there and its slope."""
    with mp.workdps(40):
        for at, told in zip(x.tolist(), given.tolist(), strict=True):
            wrong = mp.erfc(-mp.mpf(at) / mp.sqrt(2)) / 2 - chance(mp.mpf(told))
            assert abs(wrong / mp.npdf(at)) <= allowed * abs(at)


def check_special(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-37.5, 9, count)
    wrong = gaps(special.ndtr(x), lambda z: mp.erfc(-z / mp.sqrt(2)) / 2, x)
    assert np.all(wrong <= UNIT * (16 + 2 * x * x))
    x = 10 ** rng.uniform(-9, 2, count)
    assert gaps(special.erfcx(x), lambda z: mp.erfc(z) * mp.exp(z * z), x).max() <= 1e-14
    assert gaps(np.array([math.erf(z) for z in x]), mp.erf, x).max() <= 1e-14
    p = 10 ** rng.uniform(-300, -0.31, count)
    check_inverse(special.ndtri(p), p, lambda z: z, 1e-14)
    check_inverse(special.ndtri_exp(np.log(p)), np.log(p), mp.exp, 1e-14)
    x = 10 ** rng.uniform(-9, -0.1, count)
    assert gaps(special.erfinv(x), mp.erfinv, x).max() <= 1e-14
    z = rng.uniform(-7, 26, count) + 1j * rng.uniform(-3.2, 3.2, count)
    assert gaps(special.erfc(z), mp.erfc, z).max() <= 1e-13
    z = rng.uniform(-7, 5, count) + 1j * 10 ** rng.uniform(-9, 0.5, count)
    assert gaps(special.erfc(z), mp.erfc, z).max() <= 1e-13


@pytest.mark.parametrize("name", PLAIN)
def test_elementary_functions_are_good_to_four_units(name: str) -> None:
    """Each is within 4 units in the last place of the exact value."""
    check_plain(name, 200, 1)


def test_normal_tails_and_error_functions_are_as_exact_as_assumed() -> None:
    """ndtr to two units of its argument, erf and erfcx to 1e-14, the complex erfc to 1e-13."""
    check_special(25, 2)


@pytest.mark.parametrize(("points", "allowed"), [(24, 2e-14), (48, 1e-13)])
def test_quadrature_weights_are_as_exact_as_assumed(points: int, allowed: float) -> None:
    """The nodes are the roots of the Legendre polynomial, and their weights are right to what is allowed for."""
    nodes, weights = gauss_legendre(points)
    half = slice(points // 2, None)  # they are symmetric
    with mp.workdps(60):
        roots = [mp.findroot(lambda z: mp.legendre(points, z), mp.mpf(x), tol=1e-80) for x in nodes[half].tolist()]
        exact = [2 * (1 - r * r) / (points * mp.legendre(points - 1, r)) ** 2 for r in roots]
        assert max(abs(float(r - x)) for r, x in zip(roots, nodes[half].tolist(), strict=True)) <= 1e-15
        assert max(abs(float(w / e - 1)) for w, e in zip(weights[half].tolist(), exact, strict=True)) <= allowed
    assert np.allclose(nodes, -nodes[::-1], atol=1e-15)
    assert np.allclose(weights, weights[::-1], rtol=allowed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_library_functions_wide(seed: int) -> None:
    """The same at ten thousands of points."""
    for name in PLAIN:
        check_plain(name, 3000, seed)
    check_special(1500, seed)
