"""A random tilt of an objective: its penalty, noise and blur by (epsilon, delta) and public facts, and its cost."""

import math
from dataclasses import dataclass, replace

from privet.accounting import Approximate
from privet.accounting.numerics import downward, upward
from privet.accounting.theorems.gaussian_profile import epsilon_bounds, largest_mu
from privet.errors import InvalidParameter
from privet.privacy import Neighbours, check_neighbours
from privet.problems import Facts
from privet.solvers.minimise import Minimiser

_BLUR_EPSILON = 0.02  # of epsilon, for the noise that hides the solver's tolerance
_BLUR_DELTA = 0.01  # of delta
_CURVATURE = 0.1  # of epsilon, what the default penalty lets the Jacobian cost at most; log 2 at the very most
_TILT_BITS = 45  # of the tilt's standard deviation
_FAR = 40.0  # standard deviations that no draw reaches: probability below 1e-300
_BLUR = 0.05  # the blur aimed at, as a part of the least noise that the tilt can cause


@dataclass(frozen=True, kw_only=True, slots=True)
class Tilt:
    """How an objective is tilted and its minimiser blurred; all of it public.

    `jacobian` is log(1 + bend/strength), `bend` the smoothness of one record's loss. The tilt costs what
    `tilt_epsilon` says at `delta`; the blur, Gaussian noise for what the solver left over, costs (`blur_epsilon`,
    `blur_delta`) by itself, and basic composition adds it. `tolerance`, `step` and `blur` are 0 until the solver is
    known.
    """

    clip: float
    bend: float
    strength: float
    noise_multiplier: float
    delta: float
    blur_epsilon: float
    blur_delta: float
    neighbours: Neighbours
    tolerance: float = 0.0
    step: float = 0.0
    blur: float = 0.0

    @property
    def noise_stddev(self) -> float:
        """Standard deviation of each coordinate of the tilt."""
        return upward(self.noise_multiplier * self.clip)

    @property
    def unit(self) -> float:
        """The power of two of which the tilt is a whole multiple."""
        return math.ldexp(1.0, math.frexp(self.noise_stddev)[1] - _TILT_BITS)

    @property
    def jacobian(self) -> float:
        """What the change of variables can add to epsilon."""
        return _jacobian(self.bend, self.strength)

    @property
    def cost(self) -> Approximate:
        """What the whole release costs."""
        tilt = tilt_epsilon(
            noise_multiplier=self.noise_multiplier, jacobian=self.jacobian, delta=self.delta, neighbours=self.neighbours
        )
        return Approximate(epsilon=upward(tilt + self.blur_epsilon), delta=upward(self.delta + self.blur_delta))

    def left_over(self, d: int) -> float:
        """How far the computed minimiser can be from the exact one: by the tolerance, and by rounding the tilt."""
        return self.tolerance + math.sqrt(d) * self.unit / self.strength

    def excess_risk(self, *, radius: float, d: int, records: int) -> float:
        """Excess risk d σ²/(2Λn) + Λ R²/(2n) of the exact minimiser, section 5 of the proof, and what was added."""
        stddev, strength, root = self.noise_stddev, self.strength, math.sqrt(d)
        exact = (d * stddev * stddev / strength + strength * radius * radius) / (2.0 * records)
        room = 7.0 * radius * strength / stddev - root  # until the pull to within eight radii does anything
        pulled = stddev / strength * (math.exp(-room * room / 2.0) / room if room >= 1.0 else root)
        return upward(exact + self.clip * (self.blur * root * (1 + 2.0**-20) + self.left_over(d) + pulled))


def tilt_for(
    facts: Facts, cost: Approximate, *, clip: float, regularisation: float | None, radius: float | None
) -> Tilt:
    """The penalty and the tilt's noise that `cost` allows, on the safe side; without the blur as yet.

    Promise: `found.cost` is at most `cost`.
    """
    epsilon, delta = cost.epsilon * (1 - 2.0**-40), cost.delta * (1 - 2.0**-30)  # so that sums of parts stay within
    blur_epsilon, blur_delta = epsilon * _BLUR_EPSILON, delta * _BLUR_DELTA
    left, left_delta = epsilon - blur_epsilon, delta - blur_delta
    bend = (facts.smoothness or 0.0) * (facts.row_norm or 0.0) ** 2

    def multiplier(strength: float) -> float:
        jacobian = _jacobian(bend, strength)
        return tilt_multiplier(epsilon=left, jacobian=jacobian, delta=left_delta, neighbours=facts.neighbours)

    own, count = facts.ridge.alpha, facts.records
    if regularisation is not None:
        strength = (own + regularisation) * count
        noise = multiplier(strength) if strength > 0 else math.inf
        if not math.isfinite(noise):
            least = bend / math.expm1(min(left, 700.0)) / count
            raise InvalidParameter(
                f"Expected regularisation and ridge together above {least:g}, got {own + regularisation:g}: with so "
                "little strong convexity the change of variables alone costs more than epsilon. Pass more, or leave "
                "regularisation out."
            )
    else:
        least = bend / math.expm1(min(_CURVATURE * left, math.log(2.0)))
        strength = max(own * count, least if bend > 0 else clip)
        noise = multiplier(strength)
        if radius is not None and own == 0:
            strength = max(strength, math.sqrt(facts.dimension) * noise * clip / radius)
            noise = multiplier(strength)
    return Tilt(
        clip=clip,
        bend=bend,
        strength=strength,
        noise_multiplier=noise,
        delta=left_delta,
        blur_epsilon=blur_epsilon,
        blur_delta=blur_delta,
        neighbours=facts.neighbours,
    )


def settled(tilt: Tilt, solver: Minimiser, max_records: int) -> Tilt:
    """The same with the solver's tolerance, and the blur that hides what two data sets left over."""
    d, stddev = math.prod(solver.problem.shape), tilt.noise_stddev
    allowed = largest_mu(tilt.blur_epsilon, tilt.blur_delta)
    aim = _BLUR * stddev / (tilt.strength + max_records * tilt.bend)
    tolerance = max(
        allowed * max(aim, 2.0**-44 * solver.reach) / 4.0,
        solver.least_tolerance(records=max_records, tilt=_FAR * math.sqrt(d) * stddev),
    )
    solved = replace(tilt, tolerance=tolerance)
    # Whatever two data sets left over must be hidden: 2 × (tolerance + rounding of the tilt and of the result).
    left_over = solved.left_over(d)
    step = solver.lattice(2.0 * left_over / allowed)
    blur = upward(upward(2.0 * (left_over + solver.slack(step))) / downward(allowed))
    return replace(solved, step=step, blur=blur)


def _jacobian(bend: float, strength: float) -> float:
    return upward(math.log1p(upward(bend / strength)))


def tilt_epsilon(*, noise_multiplier: float, jacobian: float, delta: float, neighbours: Neighbours) -> float:
    """The epsilon of the exact minimiser of a tilted objective at `delta`; rounded upwards.

    With μ = 1/noise_multiplier, H the Gaussian profile and J = `jacobian`, δ(ε) is at most
    max(H(μ, ε − J), 2 H(μ, ε)) if a record is zeroed out, added or removed and ε − J ≥ μ²/2, and at most 2 H(2μ, ε − J)
    if one is replaced and (ε − J)² ≥ 4μ⁴ + 4μ².
    Theorem: docs/proofs/perturbation.md, section 3. The first sharpens Redberg, Koskela and Wang 2023 ("Improving
    the privacy and practicality of objective perturbation"), who have 2 H(μ, ε + log(1 − smoothness/strength)), and is
    attained for small J; the second extends it to records replaced.

    Parameters
    ----------
    noise_multiplier : standard deviation of the tilt ÷ clip
    jacobian : log(1 + smoothness/strength), both of the sum: what the change of variables can add

    Examples
    --------
    >>> known = dict(noise_multiplier=8.0, jacobian=0.05, delta=1e-6)
    >>> [round(tilt_epsilon(**known, neighbours=name), 4) for name in ("add_remove", "replace_one")]
    [0.5539, 1.1484]
    """
    mu = upward(1.0 / noise_multiplier)
    if check_neighbours(neighbours) == "replace_one":
        gaussian = epsilon_bounds(2.0 * mu, delta / 2.0)[1]
        return upward(jacobian + max(gaussian, 2.0 * mu * math.sqrt(1.0 + mu * mu)))
    inside = jacobian + max(epsilon_bounds(mu, delta)[1], mu * mu / 2.0)
    return upward(max(inside, epsilon_bounds(mu, delta / 2.0)[1]))


def tilt_multiplier(*, epsilon: float, jacobian: float, delta: float, neighbours: Neighbours) -> float:
    """The least noise multiplier of a tilt that meets (epsilon, delta), rounded upwards; infinite if none does.

    The inverse of `tilt_epsilon`.

    Examples
    --------
    >>> round(tilt_multiplier(epsilon=1.0, jacobian=0.05, delta=1e-6, neighbours="replace_one"), 4)
    9.1579
    """
    left = downward(epsilon) - upward(jacobian)
    if left <= 0.0:
        return math.inf
    left = downward(left)
    if check_neighbours(neighbours) == "replace_one":
        convex = left / math.sqrt(2.0 * (1.0 + math.hypot(1.0, left)))  # where left² = 4μ⁴ + 4μ²
        largest = min(largest_mu(left, delta / 2.0) / 2.0, convex)
    else:
        largest = min(largest_mu(left, delta), largest_mu(downward(epsilon), delta / 2.0), math.sqrt(2.0 * left))
    return upward(upward(1.0 / downward(largest))) if largest > 0.0 else math.inf
