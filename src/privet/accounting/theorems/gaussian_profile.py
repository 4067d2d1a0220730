"""The exact privacy cost of Gaussian noise.

A release that is exactly a unit-variance Gaussian whose mean moves by `mu` has the privacy profile

    delta(eps) = Phi(mu/2 − eps/mu) − e^eps Phi(−mu/2 − eps/mu)            (Balle and Wang 2018, theorem 8)

and T adaptive Gaussian releases of sensitivities Δ_i and noise σ_i are one such release with
mu² = Σ (Δ_i/σ_i)² (Dong, Roth and Su 2022). `mu` has no unit: sensitivity ÷ noise standard deviation.

How it is evaluated. With u = eps/mu − mu/2 and Mills' ratio m(x) = Phi(−x)/phi(x), the profile is

    delta = phi(u) (m(u) − m(u + mu)) = phi(u) ∫_0^∞ e^{−ut − t²/2} (1 − e^{−mu t}) dt.

The difference is used where mu is large enough that it does not cancel, the integral (whose integrand is positive)
elsewhere, and phi(u) gets u²/2 in twice the working precision, since exp magnifies its rounding by u²/2 up to 700.
The relative error is below `MARGIN` = 1e-12 (docs/proofs/contour.md, section 8; tests hold it below 2e-13 against
60-digit arithmetic, for mu from 1e-6 to 1e3, eps up to 1e5 and delta down to 1e-300); every bound returned here is
widened by `MARGIN`.
"""

import math
import sys
from fractions import Fraction

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from privet._checks import is_number
from privet.accounting.numerics import bracketed_root, gauss_legendre
from privet.errors import InvalidParameter
from privet.privacy import check_delta, check_epsilon

MARGIN = 1e-12
_WIDER = 1.25e-12  # for inversions: what they return also passes the check by `delta_bounds`, rounding included
_NODES, _WEIGHTS = gauss_legendre(48)
_NODES, _WEIGHTS = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0
_ROOT_HALF = math.sqrt(0.5)
_ROOT_2PI = math.sqrt(2.0 * math.pi)
_MILLS_0 = math.sqrt(math.pi / 2.0)
_TINY = 1e-300
_SMALL = 1e-280


def profile(mu: float, epsilon: float) -> float:
    """Return delta(epsilon) of a Gaussian release, to a relative error below `MARGIN` wherever it exceeds 1e-300.

    Theorem: Balle and Wang 2018, theorem 8. For a bound with a side, see `delta_bounds`.
    Edges: mu = 0 gives 0, mu = ∞ gives 1.

    Examples
    --------
    >>> f"{profile(1.0, 1.0):.12g}"
    '0.126936737507'
    """
    exponent, correction, factor = _pieces(_check_mu(mu), check_epsilon(epsilon))
    return min(1.0, math.exp(-exponent) * (1.0 - correction) * factor)


def delta_bounds(mu: float, epsilon: float) -> tuple[float, float]:
    """Return (lower, upper) that hold the true delta(epsilon), `MARGIN` relative to either side.

    Theorem: Balle and Wang 2018, theorem 8. Below 1e-300 the bracket is (0, 2e-300).

    Parameters
    ----------
    mu : at least 0, sensitivity ÷ noise standard deviation of the whole run
    epsilon : at least 0, nats

    Examples
    --------
    >>> lower, upper = delta_bounds(1.0, 1.0)
    >>> lower < 0.126936737506644 < upper, upper / lower < 1 + 3e-12
    (True, True)
    >>> delta_bounds(0.0, 0.0), delta_bounds(float("inf"), 3.0)
    ((0.0, 0.0), (1.0, 1.0))
    """
    value = profile(mu, epsilon)
    if mu == 0.0 or mu == math.inf:
        return value, value
    if value < _TINY:
        return 0.0, 2.0 * _TINY
    return value * (1.0 - MARGIN), min(1.0, value * (1.0 + MARGIN))


def epsilon_bounds(mu: float, delta: float) -> tuple[float, float]:
    """Return (lower, upper) that hold the least epsilon >= 0 at which the release is (epsilon, delta)-private.

    Promise: `delta` is at least the true profile at `upper`, and at most the true profile at `lower` unless that is 0.
    Theorem: Balle and Wang 2018, theorem 8, inverted on the safe side.

    Examples
    --------
    >>> lower, upper = epsilon_bounds(1.0, 1e-5)
    >>> lower < 4.37717809568122 < upper, upper - lower < 1e-10
    (True, True)
    >>> epsilon_bounds(0.0, 1e-5), epsilon_bounds(float("inf"), 1e-5)
    ((0.0, 0.0), (inf, inf))
    """
    mu, delta = _check_mu(mu), check_delta(delta)
    target = math.log(delta)
    if mu == 0.0 or mu == math.inf:
        return mu, mu
    if mu < _SMALL:  # beyond what the integral resolves; epsilon and delta grow with mu
        return 0.0, epsilon_bounds(_SMALL, delta)[1] if delta < _SMALL else 0.0
    if mu > 2e154:  # delta is 1 to any precision below epsilon = mu²/2, which no float holds
        return sys.float_info.max, math.inf

    def excess(epsilon: float, sign: float) -> float:
        return _log_profile(mu, epsilon) + sign * _WIDER - target

    # The privacy-loss tail P(L > eps) is at least delta(eps), which puts the answer below mu²/2 + mu z.
    top = max(mu * (mu / 2.0 - float(ndtri(delta))), mu * mu * 1e-3, 1e-300)
    while excess(top, 1.0) > 0.0:
        if top == sys.float_info.max:
            return (top if excess(top, -1.0) > 0.0 else 0.0), math.inf
        top = min(2.0 * top, sys.float_info.max)
    upper = 0.0 if excess(0.0, 1.0) <= 0.0 else bracketed_root(lambda e: excess(e, 1.0), top, 0.0)[0]
    lower = 0.0 if excess(0.0, -1.0) <= 0.0 else bracketed_root(lambda e: excess(e, -1.0), top, 0.0)[1]
    return lower, upper


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu that is certainly (epsilon, delta)-private, about `MARGIN` below the exact root.

    Noise of standard deviation sensitivity ÷ mu is then the least that is certainly enough.
    Theorem: Balle and Wang 2018, theorem 8 and algorithm 1; delta(epsilon) increases with mu.

    Examples
    --------
    >>> mu = largest_mu(1.0, 1e-5)
    >>> f"{mu:.9f}", delta_bounds(mu, 1.0)[1] <= 1e-5
    ('0.268051123', True)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    target = math.log(delta)

    def excess(mu: float) -> float:
        return _log_profile(mu, epsilon) + _WIDER - target

    # Where the tail P(L > eps) = Phi(mu/2 − eps/mu) equals delta, the profile is below delta: start there.
    z = -float(ndtri(delta))
    root = math.sqrt(z * z + 2.0 * epsilon)
    guess = 2.0 * epsilon / (z + root) if z > 0.0 else root - z
    low = max(guess, 2.0 * delta) * (1.0 - 1e-9)  # delta(0) <= mu / sqrt(2 pi), so mu = 2 delta is always safe
    while excess(low) > 0.0:  # only where the guess itself was rounded up
        low /= 2.0
    high = 2.0 * low
    while excess(high) <= 0.0:
        high *= 2.0
    return bracketed_root(excess, low, high)[0]


def _check_mu(mu: float) -> float:
    if not (is_number(mu) or mu == math.inf) or mu < 0:
        raise InvalidParameter(
            f"Expected mu of at least 0 (sensitivity ÷ noise standard deviation), got {mu!r}: "
            "no Gaussian release has it. Pass a non-negative number."
        )
    return float(mu)


def _log_profile(mu: float, epsilon: float) -> float:
    """Return log delta(epsilon), off by less than `MARGIN` while it is above −1000; far below, by 1e-15 of itself."""
    exponent, correction, factor = _pieces(mu, epsilon)
    return math.log(factor) - correction - exponent if factor > 0.0 else -math.inf


def _pieces(mu: float, epsilon: float) -> tuple[float, float, float]:
    """Return (x, y, f) with delta = e^{−x} (1 − y) f, where y is of the order of the rounding of x."""
    if mu == 0.0:
        return 0.0, 0.0, 0.0
    u, u_low = _shift(mu, epsilon) if mu < math.inf else (-math.inf, 0.0)
    if abs(u) > 1e100:  # delta is 0 or 1 to any precision
        return (math.inf, 0.0, 1.0) if u > 0.0 else (0.0, 0.0, 1.0)
    if mu < 0.5 * (1.0 + abs(u)):
        # The integrand has fallen by e^{−40} at `reach`; Gauss–Legendre converges fast as it is entire.
        root = math.sqrt(u * u + 80.0)
        reach = 80.0 / (root + u) if u > 0.0 else root - u
        t = reach * _NODES
        mass = reach * float(np.dot(_WEIGHTS, np.exp(-t * (u + 0.5 * t)) * -np.expm1(-mu * t)))
    elif u >= 0.0:
        mass = _MILLS_0 * float(erfcx(u * _ROOT_HALF) - erfcx((u + mu) * _ROOT_HALF))
    else:
        # a = −u > 0: delta >= 0.17 here, so the plain difference loses no digits.
        return 0.0, 0.0, float(ndtr(-u)) - math.exp(-0.5 * u * u) * 0.5 * float(erfcx((u + mu) * _ROOT_HALF))
    square, square_low = _product(u, u)
    return 0.5 * square, 0.5 * square_low + u * u_low, mass / _ROOT_2PI


def _shift(mu: float, epsilon: float) -> tuple[float, float]:
    """Return u = eps/mu − mu/2 as a sum of two floats, the second far smaller (Dekker's arithmetic)."""
    ratio = epsilon / mu
    if ratio > 1e8 or mu > 1e8:  # what is left of the difference may be small, so it is taken exactly
        exact = Fraction(epsilon) / Fraction(mu) - Fraction(mu) / 2
        if abs(exact) > 1e100:
            return (math.inf if exact > 0 else -math.inf), 0.0
        return float(exact), float(exact - Fraction(float(exact)))
    scale = math.ldexp(1.0, min(1000, -math.frexp(mu)[1]))  # a power of two: keeps the products below from underflowing
    high, low = _product(ratio, mu * scale)
    ratio_low = ((epsilon * scale - high) - low) / (mu * scale)
    u = ratio - mu / 2.0
    rest = u - ratio
    u_low = (ratio - (u - rest)) + (-mu / 2.0 - rest) + ratio_low
    return u + u_low, u_low - ((u + u_low) - u)


def _product(x: float, y: float) -> tuple[float, float]:
    """Return x·y exactly as a sum of two floats (Dekker 1971; no fused multiply-add before Python 3.13)."""
    x_high = x * 134217729.0
    x_high -= x_high - x
    y_high = y * 134217729.0
    y_high -= y_high - y
    x_low, y_low = x - x_high, y - y_high
    high = x * y
    return high, ((x_high * y_high - high) + x_high * y_low + x_low * y_high) + x_low * y_low
