"""Strategies of correlated noise: lower triangular Toeplitz matrices C that, or whose inverses, have few bands.

Sums x are released as x + C⁻¹z, z independent noise. What C weighs together makes a record dearer; what C⁻¹ subtracts
again makes running sums of the releases, which is what descent adds up, less noisy.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

import numpy as np

from privet._checks import between, is_number, whole
from privet.accounting import Event, toeplitz_mechanism
from privet.errors import InvalidParameter
from privet.noise.fast import Floats

BITS = 24  # behind the binary point of a coefficient, so that whole numbers of 64 bits can be weighed by them exactly
_MOST = 64.0  # of their absolute values together
_LONGEST = 1 << 14


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bands:
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        given = tuple(self.coefficients)
        rounded = tuple(_rounded(float(c)) if is_number(c) else math.nan for c in given)
        if not 0 < len(given) <= _LONGEST or rounded[0] != 1.0 or not sum(map(abs, rounded)) <= _MOST:
            raise InvalidParameter(f"""Expected from 1 to {_LONGEST:,} coefficients, the first of them 1 and their
                absolute values together at most {_MOST:g}, got {len(given):,} others: noise is in units of the first,
                and sums of 64 bits could overflow. Divide all by the first.""")
        object.__setattr__(self, "coefficients", rounded)

    @property
    def bands(self) -> int:
        """How many coefficients there are: so many vectors, less one, are kept while a run goes on."""
        return len(self.coefficients)

    def __repr__(self) -> str:
        shown = ", ".join(f"{c:g}" for c in self.coefficients[:3]) + (", ..." if self.bands > 3 else "")
        return f"{type(self).__name__}({self.bands} bands: {shown})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Banded(_Bands):
    """C has these coefficients: a sum is weighed with `bands` − 1 sums before it, and with no others.

    Coefficients are rounded to multiples of 2⁻²⁴; what is rounded is what is used and what is accounted for.
    Sampling amplifies such a strategy: see `CyclicPoisson`.

    Examples
    --------
    >>> strategy = Banded(coefficients=(1, 0.5))
    >>> strategy.noise_coefficients(4).tolist(), strategy.sum_coefficients(4).tolist()
    ([1.0, -0.5, 0.25, -0.125], [1.0, 0.5, 0.0, 0.0])
    """

    of_inverse: ClassVar[bool] = False

    def sum_coefficients(self, steps: int) -> Floats:
        """The first column of C."""
        return _padded(self.coefficients, _steps(steps))

    def noise_coefficients(self, steps: int) -> Floats:
        """The first column of C⁻¹, up to rounding."""
        return inverse_series(self.coefficients, _steps(steps))

    def bounds(self, steps: int) -> Floats:
        """Upper bounds of the absolute values of C's first column."""
        found: Floats = np.abs(np.array(self.coefficients[: _steps(steps)]))
        return found


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class InverseBanded(_Bands):
    """C⁻¹ has these coefficients: the noise of a step is weighed with that of `bands` − 1 steps before it.

    Coefficients are rounded to multiples of 2⁻²⁴; what is rounded is what is used and what is accounted for.

    Examples
    --------
    >>> strategy = InverseBanded(coefficients=(1, -0.5))
    >>> strategy.noise_coefficients(4).tolist(), strategy.sum_coefficients(4).tolist()
    ([1.0, -0.5, 0.0, 0.0], [1.0, 0.5, 0.25, 0.125])
    """

    of_inverse: ClassVar[bool] = True

    def sum_coefficients(self, steps: int) -> Floats:
        """The first column of C, up to rounding."""
        return inverse_series(self.coefficients, _steps(steps))

    def noise_coefficients(self, steps: int) -> Floats:
        """The first column of C⁻¹."""
        return _padded(self.coefficients, _steps(steps))

    def bounds(self, steps: int) -> Floats:
        """Upper bounds of the absolute values of C's first column; those themselves where noise is only subtracted.

        Theorem: c_t = −Σ_j w_j c_{t−j}, so |c_t| is at most the same sum over |w_j| and |c_{t−j}|. All its terms are
        positive, so that each c_t loses at most (bands + 2) roundings more, relatively, than those before it.
        """
        count = _steps(steps)
        size = np.abs(np.array(self.coefficients))
        size[1:] *= -1.0
        found = inverse_series(tuple(size), count)
        if not np.isfinite(found).all():
            raise InvalidParameter(f"""Expected coefficients whose inverse is bounded over {count:,} steps, got ones
                that outgrow all floats: no finite noise hides a record. Use ones whose absolute values after the first
                are at most 1 together.""")
        raised: Floats = found * np.exp(np.arange(count) * ((self.bands + 2) * 2.0**-52))
        return raised


Strategy: TypeAlias = Banded | InverseBanded
"""How noise is correlated over the steps of a run."""


def correlated_mechanism(
    strategy: Strategy, *, noise_multiplier: float, steps: int, participations: int = 1, separation: int = 1
) -> Event:
    """The event of a run that releases x + C⁻¹z: `steps` clipped sums x, z with standard deviation m × clip.

    Promise and theorem as of `toeplitz_mechanism`.

    Parameters
    ----------
    strategy : `Banded` or `InverseBanded`
    noise_multiplier : noise stddev ÷ clip, of z
    steps, participations, separation : of the whole run; a record's steps must not depend on the records

    Examples
    --------
    >>> from privet.accounting import epsilon
    >>> plain = correlated_mechanism(Banded(coefficients=(1,)), noise_multiplier=10.0, steps=1_000, participations=10,
    ...                              separation=100)
    >>> run = correlated_mechanism(banded_inverse_square_root(100), noise_multiplier=10.0, steps=1_000,
    ...                            participations=10, separation=100)
    >>> [round(epsilon(each, delta=1e-6, neighbours="zero_out"), 3) for each in (plain, run)]
    [1.368, 3.02]
    """
    return toeplitz_mechanism(
        strategy.bounds(steps),
        noise_multiplier=noise_multiplier,
        steps=steps,
        participations=participations,
        separation=separation,
    )


def banded_square_root(bands: int, *, momentum: float = 0.0, decay: float = 1.0) -> Banded:
    """C is the square root of the sums that descent takes, cut off after `bands` coefficients.

    Source: Kalinin and Lampert 2024 (arXiv 2405.13763). Descent with momentum β and weight decay α (a factor on the
    weights at each step, 1 for none) adds gradients up by the powers of 1/((1 − αx)(1 − βx)).

    Examples
    --------
    >>> [round(c, 4) for c in banded_square_root(4).coefficients]
    [1.0, 0.5, 0.375, 0.3125]
    """
    return Banded(coefficients=tuple(np.convolve(*_roots(bands, momentum, decay, -1))[:bands]))


def banded_inverse_square_root(bands: int, *, momentum: float = 0.0, decay: float = 1.0) -> InverseBanded:
    """C⁻¹ is the inverse of that square root, cut off after `bands` coefficients: BISR.

    Source: Kalinin, McKenna, Upadhyay and Lampert 2025 (arXiv 2505.12128), asymptotically optimal for several passes.

    Examples
    --------
    >>> [round(c, 4) for c in banded_inverse_square_root(4).coefficients]
    [1.0, -0.5, -0.125, -0.0625]
    """
    return InverseBanded(coefficients=tuple(np.convolve(*_roots(bands, momentum, decay, 1))[:bands]))


def _roots(bands: int, momentum: float, decay: float, sign: int) -> tuple[Floats, Floats]:
    """The first coefficients of (1 − αx)^{sign/2} and of (1 − βx)^{sign/2}."""
    count = whole("bands", bands, most=_LONGEST, because="so many vectors are kept", use="Use e.g. 100.")
    heavy = between("momentum", momentum, 0, 1, closed=(True, False), because="weights would grow", use="Use e.g. 0.9.")
    kept = between("decay", decay, 0, 1, closed=(False, True), because="weights would grow", use="Use 1 for none.")
    places = np.arange(1, count)
    factors = (places - 1 - sign / 2) / places
    first, second = (np.concatenate([[1.0], np.cumprod(factors * root)]) for root in (kept, heavy))
    return first, second


def _rounded(value: float) -> float:
    return math.ldexp(round(math.ldexp(value, BITS)), -BITS)


@lru_cache(maxsize=8)
def inverse_series(coefficients: tuple[float, ...], steps: int) -> Floats:
    """The first column of the inverse, by forward substitution; read-only."""
    rest = np.array(coefficients[steps:0:-1] if steps < len(coefficients) else coefficients[:0:-1])
    found = np.zeros(rest.size + steps)  # zeros come first, so that every product is of the same length
    found[rest.size] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for place in range(1, steps):
            found[rest.size + place] = -(rest @ found[place : rest.size + place])
    found.flags.writeable = False
    return found[rest.size :]


def _padded(coefficients: tuple[float, ...], steps: int) -> Floats:
    found = np.zeros(steps)
    kept = coefficients[:steps]
    found[: len(kept)] = kept
    return found


def _steps(steps: int) -> int:
    return whole("steps", steps, because="a run has a whole number of steps", use="Use e.g. 1000.")
