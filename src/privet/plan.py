"""The plan: how records are drawn, how one is bounded, what noise, how many steps. One value prices and runs it."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace

from privet import accounting
from privet.accounting import Event, Gaussian, calibrate
from privet.clipping import Adaptive, Bounding, Clip
from privet.clipping.lattice import MOST_RECORDS
from privet.errors import InvalidParameter
from privet.privacy import Budget, Guarantee, Neighbours, Unit, check_neighbours, check_unit
from privet.sampling import FullBatch, Sampling

__all__ = ["PERSON", "Plan"]

PERSON = "a person's share is the mean over all rows of that person, which are under one label"
"""What a guarantee for people rests on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A private run, described before it happens; all of it public.

    `plan.event` is what the accountants price, and the solvers draw exactly its batches, bounds and noise, so the
    two cannot disagree. `records` is the number of records; under "add_remove", where that is private, it is a public
    guess that scales the step and nothing else. `also` are further releases of the same run, priced with it. With
    `unit="person"` a record is all that one person has, as in `glm(..., groups=...)`.

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> from privet.sampling import Poisson
    >>> plan = Plan(sampling=Poisson(sampling_rate=0.01), bounding=Clip(clip=1.0), noise_multiplier=1.0, steps=1_000,
    ...             records=10_000, neighbours="add_remove")
    >>> plan.event
    Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 1000
    >>> round(plan.guarantee(delta=1e-5).epsilon, 6)
    1.828237
    >>> round(plan.calibrated(Budget(epsilon=1.0, delta=1e-5)).noise_multiplier, 6)
    1.414619
    """

    bounding: Bounding
    steps: int
    records: int
    neighbours: Neighbours
    sampling: Sampling = FullBatch()  # noqa: RUF009  # a frozen value without state
    noise_multiplier: float = math.nan
    also: tuple[Event, ...] = ()
    unit: Unit = "record"

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        check_unit(self.unit)
        for name in ("steps", "records"):
            value = getattr(self, name)
            if not (isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1):
                raise InvalidParameter(
                    f"Expected {name} to be a whole number of at least 1, got {value!r}: a run has a public, whole "
                    f"number of steps and records. Pass {name} as a plain int."
                )
            object.__setattr__(self, name, int(value))
        if not isinstance(self.sampling, Sampling) or not isinstance(self.bounding, Bounding):
            wrong = self.bounding if isinstance(self.sampling, Sampling) else self.sampling
            raise InvalidParameter(
                f"Expected a sampling scheme and a way to bound gradients, got {wrong!r}: neither batches nor a price "
                "follow from it. Use e.g. sampling=Poisson(sampling_rate=0.01) and bounding=Clip(clip=1.0)."
            )
        real = isinstance(self.noise_multiplier, numbers.Real)
        if not real or not math.isnan(self.noise_multiplier):
            if not real or not 0 < self.noise_multiplier < math.inf:
                raise InvalidParameter(
                    f"Expected noise_multiplier to be a positive finite number, got {self.noise_multiplier!r}: "
                    "without noise nothing is private. Leave it out and call .calibrated(budget)."
                )
            self.gradient_multiplier  # noqa: B018  # refuses here what it would refuse at the first step

    @property
    def event(self) -> Event:
        """What the whole run releases."""
        mechanism = Gaussian(noise_multiplier=self._noise())
        run = self.sampling.event(mechanism, steps=self.steps, records=self.records, neighbours=self.neighbours)
        for other in self.also:
            run = run + other
        return run

    @property
    def gradient_multiplier(self) -> float:
        """Noise stddev ÷ clip of the gradient's own release: larger where a step also releases a count."""
        if isinstance(self.bounding, Adaptive):
            return self.bounding.gradient_multiplier(self._noise())
        return self._noise()

    @property
    def batch_size(self) -> float:
        """The public divisor that turns a sum into a mean."""
        return self.sampling.batch_size(self.records)

    @property
    def most_records(self) -> int:
        """A public bound on the records of one sum, for its lattice."""
        most = self.sampling.most(self.records)
        return MOST_RECORDS if most is None or self.neighbours == "add_remove" else most

    def guarantee(self, *, delta: float) -> Guarantee:
        """What the run promises at `delta`, with its assumptions."""
        found = accounting.guarantee(self.event, delta=delta, neighbours=self.neighbours)
        assumptions = (*found.assumptions, self.bounding.describe())
        if self.unit == "person":
            assumptions = (*assumptions, PERSON)
        return replace(found, unit=self.unit, assumptions=assumptions)

    def calibrated(self, budget: Budget) -> Plan:
        """The same plan with the least noise that meets `budget`, on the safe side."""
        check_budget(budget)
        priced = replace(self, bounding=Clip(clip=self.bounding.clip))  # of one price, and with no limit to the search
        noise = calibrate(
            lambda s: replace(priced, noise_multiplier=s).event,
            epsilon=budget.epsilon,
            delta=budget.delta,
            neighbours=self.neighbours,
        )
        return replace(self, noise_multiplier=noise)

    def _noise(self) -> float:
        if math.isnan(self.noise_multiplier):
            raise InvalidParameter(
                "Expected a plan with a noise_multiplier, got one without: it can be neither priced nor run. "
                "Pass noise_multiplier=..., or call .calibrated(budget) first."
            )
        return self.noise_multiplier


def check_budget(budget: Budget) -> Budget:
    """Return `budget` if noise can meet it, else say why not."""
    if not isinstance(budget, Budget) or budget.epsilon == 0:
        raise InvalidParameter(
            f"Expected budget=Budget(epsilon=..., delta=...) with a positive epsilon, got {budget!r}: no finite noise "
            "meets it. Use e.g. Budget(epsilon=1, delta=1e-6)."
        )
    return budget
