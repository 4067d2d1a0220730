"""What to run, as a value: steps, step sizes, noise, and the excess risk that is proved for them."""

import math
from dataclasses import dataclass
from typing import Literal

from privet.accounting.events import Event, ExponentialMechanism, Gaussian
from privet.errors import InvalidParameter
from privet.privacy import Budget, Neighbours
from privet.theory.risk import RiskBound, whole

Method = Literal["average", "last", "last_linear", "rank", "nikolov", "output_perturbation", "exponential"]
"""What is released, and by which theorem: see `plan_for`."""

Schedule = Literal["constant", "inverse_sqrt", "linear_decay"]
"""How the step size depends on the update t = 1, 2, …: η, η/√t, or η (1 − t/T)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prescription:
    """A run that a theorem prescribes, with the excess risk it proves. Made by `plan_for`.

    Descent runs `noisy_steps` updates w_t = project(w_{t−1} − η_t (mean gradient + noise)), η_t = `step_size_at(t)`.
    What is None has no part in the method: the exponential mechanism has an `exponent` and neither steps nor noise.

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.theory import plan_for
    >>> plan = plan_for(n=1000, d=10, radius=1.0, lipschitz=1.0, budget=Budget(epsilon=1, delta=1e-5),
    ...                 neighbours="replace_one", method="average")
    >>> print(plan)
    average: 1796 noisy gradients, noise multiplier 316.203; excess risk at most 0.0333552 \
(lemma 2.7 with (13), claims 31, 34, 35)
    >>> f"{plan.step_size_at(1):.6f}", plan.event.count, f"{plan.event.event.noise_multiplier:.2f}"
    ('0.016684', 1796, '316.20')
    """

    method: Method
    budget: Budget
    neighbours: Neighbours
    bound: RiskBound
    """The proven excess risk, the theorem by name, and what it assumes."""
    trivial: float
    """What releasing the public start would give: lipschitz × radius. A plan at or above it is `vacuous`."""
    floor: float | None = None
    """What the bound tends to with ever more steps, if it falls with them."""
    clip: float
    """The bound on one record's gradient norm, of which `noise_multiplier` is a multiple."""
    divisor: int
    """The public n that sums are divided by."""
    steps: int | None = None
    """T of the theorem: iterates with the start for averages and linear decay, updates for c/√t."""
    noisy_steps: int | None = None
    """How many noisy gradients the release depends on: the updates to run."""
    step_size: float | None = None
    schedule: Schedule | None = None
    noise_multiplier: float | None = None
    """Noise stddev of the *sum* of clipped gradients ÷ clip; for output perturbation, of the minimiser ÷ clip/(λn)."""
    noise_stddev: float | None = None
    """Noise stddev of a coordinate of the *mean* gradient; for output perturbation, of the released parameters."""
    regularisation: float | None = None
    """λ of output perturbation."""
    exponent: float | None = None
    """β of the exponential mechanism: density proportional to exp(−β L)."""

    @property
    def excess_risk(self) -> float:
        """The proven bound on the expected excess empirical risk."""
        return self.bound.value

    @property
    def theorem(self) -> str:
        """The theorem behind `excess_risk`."""
        return self.bound.theorem

    @property
    def vacuous(self) -> bool:
        """Whether releasing the public start, without any data, is proved to do as well."""
        return self.bound.value >= self.trivial

    @property
    def event(self) -> Event:
        """What the accountants read: its privacy cost meets `budget` under `neighbours`."""
        if self.noise_multiplier is None:
            return ExponentialMechanism(epsilon=self.budget.epsilon)
        return Gaussian(noise_multiplier=self.noise_multiplier) * max(1, self.noisy_steps or 1)

    def step_size_at(self, t: int) -> float:
        """Return η_t, the size of update t = 1, …, `noisy_steps`; the lectures' loop from 0 is t − 1."""
        if self.step_size is None or self.steps is None or self.noisy_steps is None:
            raise InvalidParameter(f"""Expected a method that descends, got {self.method!r}: it has no step size. Use
                method 'average', 'last', 'last_linear', 'rank' or 'nikolov'.""")
        if whole("t", t) > self.noisy_steps:
            raise InvalidParameter(f"""Expected an update from 1 to {self.noisy_steps}, got {t!r}: the theorem has no
                step size for it. Plan for more steps.""")
        if self.schedule == "inverse_sqrt":
            return self.step_size / math.sqrt(t)
        return self.step_size * (1.0 - t / self.steps) if self.schedule == "linear_decay" else self.step_size

    def __str__(self) -> str:
        if self.exponent is not None:
            what = f"one exact draw with exponent {self.exponent:.6g}"
        elif self.regularisation is not None:
            what = f"regularisation {self.regularisation:.6g}, noise stddev {self.noise_stddev:.6g} on the minimiser"
        else:
            what = f"{self.noisy_steps} noisy gradients, noise multiplier {self.noise_multiplier:.6g}"
        return f"{self.method}: {what}; {self.bound}"
