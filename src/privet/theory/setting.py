"""The public facts that every plan rests on, checked, and the ratio on which the bounds for descent depend.

With μ = μ(ε, δ) exact, and s = 2 (replace_one) or 1 (zero_out, add_remove) so that a mean of n gradients of norm at
most G moves by sG/n, k noisy gradients take noise σ = sG√k/(nμ), rounded upwards. The bounds depend on
a = d (s/(nμ))², the noise-to-signal ratio: d σ² = a k G².
"""

import math
from dataclasses import dataclass, replace

from scipy.special import lambertw

from privet.accounting.numerics import upward
from privet.accounting.theorems.gaussian_profile import largest_mu
from privet.errors import InvalidParameter
from privet.privacy import Budget, Neighbours, sensitivity_factor
from privet.theory.least_noise import exact_noise
from privet.theory.risk import RiskBound, positive, whole

MOST_STEPS = 2**62
_PRIVATE_COUNT = "the number of records is private: `n` is a public number that is at least as large, the risk is sum/n"


def noise_to_signal(*, n: int, d: int, budget: Budget, neighbours: Neighbours) -> float:
    """Return a = d (s/(nμ))², the noise-to-signal ratio on which all bounds for descent depend; rounded upwards.

    s is 2 under "replace_one", else 1; μ = μ(ε, δ) is exact. More steps help until 1/T is of the order of a.

    Examples
    --------
    >>> a = noise_to_signal(n=1000, d=10, budget=Budget(epsilon=1, delta=1e-5), neighbours="replace_one")
    >>> f"{a:.6e}"  # its root is the floor of the average-iterate bound, in units of radius × lipschitz
    '5.567045e-04'
    """
    per_record = sensitivity_factor(neighbours) / (whole("n", n) * largest_mu(budget.epsilon, budget.delta))
    return upward(whole("d", d) * per_record * per_record)


def last_iterate_steps(ratio: float) -> float:
    """Return the T > 1 at which (2 + ln T) √(1/T + ratio) has its inner minimum; 1 if there is none.

    Where 2 ratio T = ln T: T = −W(−2 ratio)/(2 ratio), W the lower branch of Lambert's function, if 2 ratio < 1/e.
    Lecture: Razaviyayn, "optimizing T" (claim 89).

    Examples
    --------
    >>> a = noise_to_signal(n=1000, d=10, budget=Budget(epsilon=1, delta=1e-5), neighbours="replace_one")
    >>> f"{last_iterate_steps(a):.3f}"
    '8080.811'
    """
    twice = 2.0 * positive("ratio", ratio)
    if twice >= math.exp(-1.0):
        return 1.0
    return float(-lambertw(-twice, k=-1).real / twice)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What all methods share, checked."""

    n: int
    d: int
    radius: float
    diameter: float
    lipschitz: float
    budget: Budget
    neighbours: Neighbours

    def noise(self, k: int) -> float:
        """Noise stddev of the mean gradient for k noisy gradients."""
        sensitivity = upward(sensitivity_factor(self.neighbours) * self.lipschitz / self.n)
        epsilon, delta = self.budget.epsilon, self.budget.delta
        return exact_noise(epsilon=epsilon, delta=delta, steps=max(k, 1), sensitivity=sensitivity)

    @property
    def ratio(self) -> float:
        return noise_to_signal(n=self.n, d=self.d, budget=self.budget, neighbours=self.neighbours)

    @property
    def trivial(self) -> float:
        return self.lipschitz * self.radius

    def stated(self, bound: RiskBound) -> RiskBound:
        """Add what the relation assumes."""
        if self.neighbours != "add_remove":
            return bound
        return replace(bound, assumptions=(*bound.assumptions, _PRIVATE_COUNT))


def checked_diameter(radius: float, diameter: float | None) -> float:
    """Return the diameter of a set of that radius about the start: twice it, unless known better."""
    if diameter is None:
        return 2.0 * radius
    width = positive("diameter", diameter)
    if not radius <= width <= 2.0 * radius:
        raise InvalidParameter(f"""Expected a diameter between the radius {radius:g} and twice that, got {diameter!r}:
            no set about its start has it, so one of the two was meant for the other. Check which one you have.""")
    return width


def whole_steps(wanted: float, limit: int) -> int:
    """Round up to a whole number from 1 to `limit`; refuse what no machine could run, unless it was capped."""
    if limit < MOST_STEPS:
        return max(1, limit if wanted >= limit else math.ceil(wanted))
    if not wanted < MOST_STEPS:
        raise InvalidParameter("""Expected a theorem that prescribes fewer than 2**62 steps, got more: no run has that
            many. Pass max_steps; the bound is then for so many steps.""")
    return max(1, math.ceil(wanted))
