"""Conversions between the notions of privacy, group privacy, and the privacy-loss tail theorem.

Write L for the privacy loss of a release (the log of its likelihood ratio, under the first of two neighbours),
K(t) = log E[e^{tL}] for its log moment, α = 1 + t for the Rényi order: D_α = K(t)/t. Every bound must be asked for both
directions (either neighbour first), and the worse one counts. Results are rounded to the safe side
(see :mod:`privet.accounting.numerics`).

| from | to | theorem |
|---|---|---|
| Rényi (α, D) | (ε, δ) | Canonne, Kamath and Steinke 2020, proposition 12: the best constant for one order |
| ρ-zCDP | (ε, δ) | Bun and Steinke 2016: ρ + 2√(ρ ln 1/δ), as the lectures use it; or all orders of the row above |
| pure ε | ρ-zCDP, μ-GDP | ε²/2; −2Φ⁻¹(1/(1 + e^ε)) (Dong, Roth and Su 2022) |
| bounded range ε | ρ-zCDP | ε²/8 (Cesar and Rogers 2021) |
| μ-GDP Gaussian | ρ-zCDP | μ²/2, an equality for Gaussian noise |
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfinv, ndtr, ndtri, ndtri_exp

from privet._checks import positive, whole
from privet.accounting.numerics import bracketed_root, downward, upward
from privet.errors import InvalidParameter
from privet.privacy import check_delta, check_epsilon


def renyi_delta(exponents: ArrayLike, log_moments: ArrayLike, *, epsilon: float) -> float:
    """Return the least delta at `epsilon` that any of the given log moments proves, rounded upwards.

    δ <= e^{K(t) − tε} t^t / (1 + t)^{1+t}, from (1 − e^{ε−x})₊ <= e^{t(x−ε)} max_y e^{−ty}(1 − e^{−y}).
    Theorem: Canonne, Kamath and Steinke 2020, proposition 12.

    Parameters
    ----------
    exponents : t = α − 1 > 0, one or many; they must not depend on the data
    log_moments : K(t) = (α − 1) D_α at the same places, the worse direction; infinity where there is none

    Examples
    --------
    >>> f"{renyi_delta([9.0], [9.0 * 10.0 / 2 * 0.1], epsilon=1.0):.6g}"     # mu² = 0.1, order 10
    '0.000430385'
    """
    t, k = _moments(exponents, log_moments)
    epsilon = check_epsilon(epsilon)
    log = float(np.min(_log_constant(t) + k - t * epsilon + _rounding(t, k, epsilon)))
    return min(1.0, upward(math.exp(min(max(log, -690.0), 0.0))))  # 1e-300 at least: exp must not underflow


def renyi_epsilon(exponents: ArrayLike, log_moments: ArrayLike, *, delta: float) -> float:
    """Return the least epsilon >= 0 at `delta` that any of the given log moments proves, rounded upwards.

    ε = (K(t) + ln(1/δ) + t ln t − (1 + t) ln(1 + t)) / t. Theorem and parameters: as `renyi_delta`.

    Examples
    --------
    >>> t = np.arange(1, 64)
    >>> f"{renyi_epsilon(t, t * (t + 1) / 2, delta=1e-5):.4f}"      # mu = 1; the exact value is 4.3772
    '4.7527'
    """
    t, k = _moments(exponents, log_moments)
    best = (_log_constant(t) + k - math.log(check_delta(delta)) + _rounding(t, k, 0.0)) / t
    return upward(max(0.0, float(np.min(best))))


def zcdp_epsilon(rho: float, *, delta: float) -> float:
    """Return ρ + 2√(ρ ln 1/δ), an epsilon at `delta` of any ρ-zCDP release, rounded upwards.

    Theorem: Bun and Steinke 2016, proposition 1.3. `zcdp_tight_epsilon` is smaller.

    Examples
    --------
    >>> f"{zcdp_epsilon(0.5, delta=1e-5):.12f}"
    '5.298525912188'
    """
    rho = _amount("rho", rho)
    return upward(rho + 2.0 * math.sqrt(rho * -math.log(check_delta(delta))))


def zcdp_rho(epsilon: float, *, delta: float) -> float:
    """Return the largest rho for which `zcdp_epsilon` is at most `epsilon`, rounded downwards.

    ρ = (√(ln 1/δ + ε) − √(ln 1/δ))², written as (ε / (√… + √…))² so that nothing cancels.

    Examples
    --------
    >>> f"{zcdp_rho(1.0, delta=1e-5):.12f}"
    '0.020819938340'
    """
    epsilon, log = check_epsilon(epsilon), -math.log(check_delta(delta))
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))
    return downward(downward(downward(root * root)))  # rho rounds into epsilon: twice the room


def zcdp_tight_epsilon(rho: float, *, delta: float) -> float:
    """Return the epsilon at `delta` that all Rényi orders of a ρ-zCDP release prove together, rounded upwards.

    K(t) = t(1 + t)ρ in `renyi_epsilon`; one order, fixed beforehand, attains it, so filters may use it too.

    Examples
    --------
    >>> f"{zcdp_tight_epsilon(0.5, delta=1e-5):.6f}"
    '4.728387'
    """
    rho = _amount("rho", rho)
    log = -math.log(check_delta(delta))
    if rho == 0.0:
        return 0.0
    # The derivative of the bound in t vanishes where t²ρ + ln(1 + t) = ln(1/δ); any t is valid, this one is best.
    t = bracketed_root(lambda t: t * t * rho + math.log1p(t) - log, 0.0, 1.01 * math.sqrt(log / rho))[1]
    return min(renyi_epsilon(t, t * (1.0 + t) * rho, delta=delta), zcdp_epsilon(rho, delta=delta))


def zcdp_tight_rho(epsilon: float, *, delta: float) -> float:
    """Return a rho, the largest up to 1e-12, for which `zcdp_tight_epsilon` is at most `epsilon`.

    Examples
    --------
    >>> rho = zcdp_tight_rho(1.0, delta=1e-5)
    >>> rho > zcdp_rho(1.0, delta=1e-5), zcdp_tight_epsilon(rho, delta=1e-5) <= 1.0
    (True, True)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    low = zcdp_rho(epsilon, delta=delta)
    high = max(2.0 * low, 1e-12)
    while zcdp_tight_epsilon(high, delta=delta) <= epsilon:
        high *= 2.0
    return bracketed_root(lambda r: zcdp_tight_epsilon(r, delta=delta) - epsilon, low, high, tolerance=1e-12)[0]


def pure_rho(epsilon: float) -> float:
    """Return the zCDP rho = ε²/2 of any pure ε-private release, rounded upwards (Bun and Steinke 2016).

    Examples
    --------
    >>> f"{pure_rho(1.0):.3f}"
    '0.500'
    """
    return _half_square(check_epsilon(epsilon))


def bounded_range_rho(epsilon: float) -> float:
    """Return the zCDP rho = ε²/8 of any ε-bounded-range release (Cesar and Rogers 2021), rounded upwards.

    Examples
    --------
    >>> f"{bounded_range_rho(1.0):.3f}"
    '0.125'
    """
    return _half_square(check_epsilon(epsilon) / 2.0)


def gaussian_rho(mu: float) -> float:
    """Return the zCDP rho = μ²/2 of Gaussian noise with sensitivity ÷ standard deviation `mu`, rounded upwards.

    T steps of sensitivity Δ and noise σ: TΔ²/(2σ²). Nikolov's notes write ρ for twice this number.

    Examples
    --------
    >>> f"{gaussian_rho(50**0.5 * 0.002 / 0.05):.6f}"
    '0.040000'
    """
    mu = _amount("mu", mu)
    return _half_square(mu)


def pure_mu(epsilon: float) -> float:
    """Return the mu of the Gaussian test that is nowhere harder than any pure ε-private one, rounded upwards.

    μ = −2Φ⁻¹(1/(1 + e^ε)): randomized response sits on that Gaussian curve at its corner (Dong, Roth and Su 2022).

    Examples
    --------
    >>> f"{pure_mu(1.0):.6f}"
    '1.232035'
    """
    epsilon = check_epsilon(epsilon)
    if epsilon < 2.0:  # Φ⁻¹((1 − x)/2) = −√2 erfinv(x), x = tanh(ε/2): accurate down to ε = 0
        return upward(upward(2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(epsilon / 2.0)))))
    return upward(upward(-2.0 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))))


def group(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Return (k ε, δ (e^{kε} − 1)/(e^ε − 1)), what k = `size` records at once lose, rounded upwards.

    Theorem: lecture 11, group privacy; Dwork and Roth 2014, theorem 2.2. A delta of 1 or more promises nothing.
    For Gaussian noise `group_mu` is exact and far better: (1, 1e-6) for 10 records is 1.3e-2 here, 4.8e-4 there.

    Examples
    --------
    >>> epsilon, delta = group(1.0, 1e-6, 3)
    >>> f"{epsilon:.6f} {delta:.12g}"
    '3.000000 1.11073379274e-05'
    """
    epsilon, k = check_epsilon(epsilon), _records(size)
    delta = check_delta(delta) if delta != 0.0 else 0.0
    # (e^{kε} − 1)/(e^ε − 1) = e^{(k−1)ε} (1 − e^{−kε})/(1 − e^{−ε}): no overflow until the result does.
    growth = math.expm1(-k * epsilon) / math.expm1(-epsilon) if epsilon > 0.0 else float(k)
    log = (k - 1) * epsilon + math.log(growth)
    total = delta * math.exp(log) * (1.0 + 1e-15 * log) if log < 700.0 else (1.0 if delta > 0.0 else 0.0)
    return upward(k * epsilon), min(1.0, upward(total))


def group_mu(mu: float, size: int) -> float:
    """Return k μ, exactly what a Gaussian release costs for k = `size` records at once, rounded upwards.

    Examples
    --------
    >>> f"{group_mu(0.3, 10):.6f}"
    '3.000000'
    """
    mu = _amount("mu", mu)
    return upward(_records(size) * mu)


def gaussian_tail(mu: float, *, epsilon: float) -> float:
    """Return P(L > ε) = Φ(μ/2 − ε/μ) of the Gaussian privacy loss, a valid but generous delta, rounded upwards.

    Theorem (privacy-loss tail; lecture 11, recap): P(L > ε) <= δ in both directions suffices for (ε, δ)-privacy,
    as δ(ε) = E[(1 − e^{ε−L})₊] <= P(L > ε). The converse is false: μ = ε = 1 has tail 0.309 but delta 0.127.

    Examples
    --------
    >>> f"{gaussian_tail(1.0, epsilon=1.0):.12f}"
    '0.308537538726'
    """
    mu, epsilon = _amount("mu", mu), check_epsilon(epsilon)
    if mu == 0.0:
        return 0.0
    a = mu / 2.0 - epsilon / mu
    # Φ magnifies the rounding of its argument by about (1 + |a|): give it room in proportion.
    room = 4e-16 * (1.0 + abs(a)) * (mu / 2.0 + epsilon / mu)
    return min(1.0, max(upward(float(ndtr(a)) * (1.0 + room) * (1.0 + 1e-15 * a * a)), 1e-300))


def gaussian_tail_epsilon(mu: float, *, delta: float) -> float:
    """Return μ²/2 + μ Φ⁻¹(1 − δ), the epsilon that the tail theorem proves for a Gaussian release, rounded upwards.

    Examples
    --------
    >>> f"{gaussian_tail_epsilon(1.0, delta=1e-5):.4f}"      # the exact value is 4.3772
    '4.7649'
    """
    mu = _amount("mu", mu)
    z = -float(ndtri(check_delta(delta)))
    return max(0.0, mu * mu / 2.0 + mu * z + 1e-14 * (mu * mu + mu * (1.0 + abs(z))))


def _moments(exponents: ArrayLike, log_moments: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    t = np.atleast_1d(np.asarray(exponents, dtype=np.float64))
    k = np.atleast_1d(np.asarray(log_moments, dtype=np.float64))
    if t.shape != k.shape or t.size == 0 or not np.all((t > 0.0) & np.isfinite(t)) or np.any(np.isnan(k)):
        raise InvalidParameter(
            f"Expected positive exponents and as many log moments, none of them NaN, got {t.size} and {k.size}: "
            "no bound follows. Pass t = order − 1 > 0 and K(t) at the same places."
        )
    return t, k


def _log_constant(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return t ln t − (1 + t) ln(1 + t), as −t ln(1 + 1/t) − ln(1 + t): both terms have one sign."""
    return np.asarray(-t * np.log1p(1.0 / t) - np.log1p(t), dtype=np.float64)


def _rounding(t: NDArray[np.float64], k: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Bound the rounding of the sums above, whose terms have both signs."""
    return np.asarray(4e-15 * (1.0 + np.abs(k) + t * epsilon + np.log1p(t)), dtype=np.float64)


def _amount(name: str, value: float) -> float:
    return positive(name, value, zero=True, because="no release has it", use="Pass a plain number, e.g. 0.5.")


def _records(size: int) -> int:
    return whole("size", size, because="a group is a whole number of records", use="Use e.g. 3.")


def _half_square(size: float) -> float:
    """size²/2, rounded up; infinite where it overflows, and not 0 where it underflows."""
    return upward(max(size * size / 2.0, 5e-324)) if size > 0.0 else 0.0
