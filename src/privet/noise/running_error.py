"""How noisy running sums are under a strategy, at equal privacy; and the banded strategy that makes them least so."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from privet._checks import one_of, whole
from privet.accounting import toeplitz_sensitivity
from privet.errors import InvalidParameter
from privet.noise.fast import Floats
from privet.noise.strategies import Banded, Strategy, banded_square_root, inverse_series


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningError:
    """Standard deviations of the noise on x₁ + … + x_t, over all steps t: root mean square, and the largest.

    In units of clip × the noise multiplier of one Gaussian release that costs as much as the whole run.

    Examples
    --------
    >>> from privet.noise import Banded
    >>> round(running_error(Banded(coefficients=(1,)), steps=100).worst, 6)
    10.0
    """

    mean: float
    worst: float


def running_error(
    strategy: Strategy,
    *,
    steps: int,
    participations: int = 1,
    separation: int = 1,
    momentum: float = 0.0,
    decay: float = 1.0,
) -> RunningError:
    """The error of running sums x₁ + … + x_t that are released with noise C⁻¹z, without sampling, at equal privacy.

    It is ‖row t of A·C⁻¹‖ × sensitivity of C, A the running sums; with momentum β and weight decay α, what descent
    has moved by at step t. For information: unlike the price of a run, it is not rounded up.

    Examples
    --------
    >>> from privet.noise import Banded, banded_inverse_square_root
    >>> many = {"steps": 1_000, "participations": 10, "separation": 100}
    >>> for strategy in (Banded(coefficients=(1,)), banded_inverse_square_root(100)):
    ...     error = running_error(strategy, **many)
    ...     print(f"mean {error.mean:.3f}, worst {error.worst:.3f}")
    mean 70.746, worst 100.000
    mean 12.703, worst 15.167
    """
    found = toeplitz_sensitivity(
        strategy.bounds(steps), steps=steps, participations=participations, separation=separation
    )
    rows = running_rows(strategy, steps=steps, momentum=momentum, decay=decay)
    return RunningError(mean=found * math.sqrt(float(np.mean(rows))), worst=found * math.sqrt(float(rows.max())))


def running_rows(strategy: Strategy, *, steps: int, momentum: float = 0.0, decay: float = 1.0) -> Floats:
    """The variance of each running sum, z having variance 1."""
    weights = strategy.noise_coefficients(steps)
    for factor in (decay, momentum):
        weights = _accumulated(weights, factor)
    found: Floats = np.cumsum(weights**2)
    return found


def optimised_bands(bands: int, *, steps: int, of: str = "mean") -> Banded:
    """The Banded strategy of least running error over `steps`, for records whose steps are at least `bands` apart.

    The error is the root mean square over all steps (`of="mean"`), or the largest (`of="worst"`). As columns that far
    apart share no row, how often a record takes part does not change which strategy is best, up to those at the end.
    Source: banded Toeplitz strategies of Choquette-Choo et al. 2023 (arXiv 2306.08153) and McKenna 2024
    (arXiv 2405.15913), by L-BFGS. What is found is priced as any other strategy: a poor optimum is only noisier.

    Examples
    --------
    >>> strategy = optimised_bands(20, steps=500)
    >>> many = {"steps": 500, "participations": 5, "separation": 100}
    >>> running_error(strategy, **many).mean < running_error(banded_square_root(20), **many).mean
    True
    """
    one_of("of", of, ("mean", "worst"), because="an error has to be named", use='Use of="mean".')
    start = banded_square_root(bands)
    count = whole("steps", steps, because="a run has a whole number of steps", use="Use e.g. 1000.")
    if start.bands > count:
        raise InvalidParameter(f"Expected at most as many bands as steps, got {bands:,}: others do nothing. Lower it.")
    weights = np.arange(count, 0, -1) / count if of == "mean" else np.ones(count)

    def objective(rest: Floats) -> tuple[float, Floats]:
        # With B = 1/((1 − x)·c(x)): log Σ weights·B² + log Σ c²; ∂B/∂c_j is −xʲ·B/c.
        column = np.concatenate([[1.0], rest])
        inverse = inverse_series(tuple(column), count)
        sums = np.cumsum(inverse)
        further = _product(sums, inverse)
        heavy, own = weights * sums, float(column @ column)
        error = float(heavy @ sums)
        slopes = [-2 * float(heavy[place:] @ further[: count - place]) / error for place in range(1, bands)]
        return math.log(error) + math.log(own), np.array(slopes) + 2 * rest / own

    if bands == 1:
        return start
    first, span = start.coefficients[1:], [(0.0, 1.0)] * (bands - 1)
    found = optimize.minimize(objective, first, jac=True, method="L-BFGS-B", bounds=span)
    return Banded(coefficients=(1.0, *(float(c) for c in found.x)))


def _accumulated(values: Floats, factor: float) -> Floats:
    """y with y_t = factor · y_{t−1} + value_t."""
    if factor in (0.0, 1.0):
        return np.cumsum(values) if factor else values
    found = np.empty_like(values)
    last = 0.0
    for place, value in enumerate(values):
        last = factor * last + float(value)
        found[place] = last
    return found


def _product(first: Floats, second: Floats) -> Floats:
    """The product of two power series, as many terms of it as they have."""
    size = 2 * first.size
    found: Floats = np.fft.irfft(np.fft.rfft(first, size) * np.fft.rfft(second, size), size)[: first.size]
    return found
