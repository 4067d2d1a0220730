"""The plan: every release of a run, in order, with its relation: one value to account for, reserve, run and report."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from privet import accounting
from privet._checks import whole
from privet.accounting import Event
from privet.accounting.numerics import upward
from privet.accounting.theorems.gaussian_profile import largest_mu
from privet.clipping import Bounding
from privet.clipping.lattice import MOST_RECORDS
from privet.errors import InvalidParameter, NoProvenBound
from privet.noise import Strategy
from privet.plan.correlation import explain
from privet.plan.found_noise import least_scale
from privet.plan.release import Release
from privet.privacy import (
    Budget,
    Guarantee,
    Neighbours,
    Unit,
    check_delta,
    check_neighbours,
    check_unit,
    sensitivity_factor,
)
from privet.sampling import Cyclic, CyclicPoisson, FullBatch, Sampling

if TYPE_CHECKING:
    from privet.problems import Facts

PERSON = "a person's share is the mean over all rows of that person, which are under one label"
"""What a guarantee for people rests on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A private run, described before it happens; all of it public.

    `plan.event` is what the accountants read; a `Meter` that holds the plan draws exactly its batches and noise, in
    its order, and refuses anything else. So what is run is what the guarantee covers. `records` is the number of
    records; under "add_remove", where that is private, it is a public guess that scales steps and nothing else; None
    where nothing depends on it. With `unit="person"`, for a user-level guarantee, a record is all that one person has.
    `budget` is what the plan was calibrated to, if it was. A release may stand in the plan several times, where others
    come between.

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> from privet.plan import Histograms, Release
    >>> plan = Plan(
    ...     releases=(
    ...         Release(name="range", of="octaves of one column", bound=Histograms()),
    ...         Release(name="gradients", of="gradients", bound=Clip(clip=1.0), times=100),
    ...     ),
    ...     records=10_000, neighbours="replace_one",
    ... ).calibrated(Budget(epsilon=1.0, delta=1e-6), shares={"range": 0.1})
    >>> plan.guarantee().epsilon <= 1.0
    True
    >>> print(plan)  # doctest: +SKIP
    """

    releases: tuple[Release, ...]
    neighbours: Neighbours
    records: int | None = None
    unit: Unit = "record"
    budget: Budget | None = None

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        check_unit(self.unit)
        if self.records is not None or not all(isinstance(r.sampling, FullBatch) for r in self.releases):
            because, use = "rates, divisors and steps follow from it", "Pass a public number of records."
            object.__setattr__(self, "records", whole("records", self.records, because=because, use=use))
        if self.budget is not None:
            check_delta(self.budget.delta, self.records)
        object.__setattr__(self, "releases", tuple(self.releases))
        named: dict[str, Release] = {}
        for release in self.releases:
            if not isinstance(release, Release) or named.setdefault(release.name, release) != release:
                raise InvalidParameter(f"""Expected releases of different names, or the same again, got two different
                    ones of one name, or no release: {release!r}. It could not be told which one runs. Rename one.""")
        if self.unit == "person" and any(isinstance(r.sampling, Cyclic | CyclicPoisson) for r in self.releases):
            raise NoProvenBound("""Expected batches of people drawn at random, or all of them, got batches by place:
                another label of one person, or none, could move others to other batches. Use Poisson, FixedSize or
                FullBatch.""")
        if not self.releases:
            raise InvalidParameter("""Expected at least one release, got none: a plan without any releases nothing, and
                needs no budget. Write down what will be released.""")

    @classmethod
    def of(cls, facts: "Facts", releases: tuple[Release, ...], budget: Budget | None = None) -> "Plan":
        """The plan of these releases for a problem with such public facts."""
        known, unit = facts.records, facts.unit
        return cls(releases=releases, records=known, neighbours=facts.neighbours, unit=unit, budget=budget)

    def __getitem__(self, name: str) -> Release:
        """The release of that name."""
        for release in self.releases:
            if release.name == name:
                return release
        raise InvalidParameter(f"""Expected one of the planned releases ({", ".join(map(repr, self.names))}), got
            {name!r}: it is not part of the plan. Plan it first.""")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the releases, each once, in order."""
        return tuple(dict.fromkeys(release.name for release in self.releases))

    def times(self, name: str) -> int:
        """How often a release happens in all."""
        return sum(release.times for release in self.releases if release.name == name)

    @property
    def event(self) -> Event:
        """What the whole run releases, for the accountants."""
        run: Event | None = None
        for name in self.names:
            part = self[name].event(records=self.records or 1, neighbours=self.neighbours, times=self.times(name))
            run = part if run is None else run + part
        return run  # type: ignore[return-value]  # there is at least one

    @property
    def count(self) -> int:
        """The public number of records, which a sum is divided by; refused where the plan has none."""
        because, use = "sums are divided by it", "Plan with records=..., a public number."
        return whole("records", self.records, because=because, use=use)

    def batch_size(self, name: str) -> float:
        """The public divisor that turns a sum into a mean."""
        return self[name].sampling.batch_size(self.count)

    def max_records(self, name: str) -> int:
        """A public bound on the records of one sum, for its lattice; of a guess, what four times as many would need."""
        if self.records is None or self.neighbours == "add_remove":
            return max(MOST_RECORDS, 4 * (self.records or 0))
        most = self[name].sampling.most(self.records)
        return MOST_RECORDS if most is None else most

    def guarantee(self, *, delta: float | None = None) -> Guarantee:
        """What the run promises at `delta` (the budget's, if left out), with its assumptions."""
        found = accounting.guarantee(self.event, delta=self._delta(delta), neighbours=self.neighbours)
        bounds = tuple(dict.fromkeys(self[name].bound.describe() for name in self.names))
        people = (PERSON,) if self.unit == "person" else ()
        bounds += tuple(dict.fromkeys(explain(r.correlation) for r in self.releases if r.correlation is not None))
        unproven = dict.fromkeys(sentence for release in self.releases for sentence in release.unproven)
        return replace(found, unit=self.unit, assumptions=(*found.assumptions, *bounds, *people, *unproven))

    def calibrated(
        self, budget: Budget, *, shares: Mapping[str, float] | None = None, ratios: Mapping[str, float] | None = None
    ) -> "Plan":
        """The same plan with the least noise that meets `budget`, on the safe side.

        Releases that have noise keep it. Those named in `shares` get the noise of that share of the budget: of the
        squared μ of the one Gaussian release that would spend all of it. The others take what is left, with noise
        multipliers in the proportions of `ratios`, 1 where nothing is said.
        """
        check_budget(budget)
        parts, relative = dict(shares or {}), dict(ratios or {})
        if not (set(parts) <= set(self.names) and all(p > 0 for p in parts.values()) and sum(parts.values()) <= 1):
            raise InvalidParameter(f"""Expected shares of planned releases, positive and at most 1 together, got
                {parts!r}: more cannot be spent than there is. Lower them.""")
        all_of_it = whole_noise(budget, self.neighbours)
        fixed = {name: upward(all_of_it * math.sqrt(self.times(name) / share)) for name, share in parts.items()}
        known = self._with_noise(fixed)
        free = [release.name for release in known.releases if not release.calibrated]
        if not free:
            return replace(known, budget=budget)._within()
        searched = replace(known, releases=tuple(release.without_limit() for release in known.releases))

        def at(scale: float) -> dict[str, float]:
            return {name: scale * relative.get(name, 1.0) for name in free}

        guess = searched._closed_form(at(1.0), all_of_it)
        scale = least_scale(lambda s: searched._with_noise(at(s)).event, budget, self.neighbours, guess=guess)
        return replace(known._with_noise(at(scale)), budget=budget)

    def _closed_form(self, free: Mapping[str, float], all_of_it: float) -> float:
        """The scale of the free multipliers if all is Gaussian noise on all records, rounded up; else NaN.

        Theorem: such releases compose to one of multiplier (Σ times ÷ multiplier²)^(−1/2), which may be `all_of_it`.
        """
        if not all(release.plain for release in self.releases):
            return math.nan
        spent = math.fsum(
            self.times(name) / self[name].noise_multiplier ** 2 for name in self.names if name not in free
        )
        wanted = math.fsum(self.times(name) / ratio**2 for name, ratio in free.items())
        left = all_of_it**-2 - spent
        return math.sqrt(wanted / left) * (1 + 2.0**-40) if left > 2.0**-10 * all_of_it**-2 else math.nan

    def _within(self) -> "Plan":
        """The plan, if its noise, all of it known, meets its budget."""
        if self.budget is not None and self.guarantee().epsilon > self.budget.epsilon:
            raise InvalidParameter(f"""Expected releases that meet epsilon = {self.budget.epsilon:g} at delta =
                {self.budget.delta:g}, got epsilon = {self.guarantee().epsilon:.6g}: all noise is known, and none is
                left to raise. Leave some noise out, or raise the budget.""")
        return self

    def _with_noise(self, noise: Mapping[str, float]) -> "Plan":
        """The plan with these noise multipliers for releases that have none."""
        return replace(
            self,
            releases=tuple(
                replace(release, noise_multiplier=noise[release.name])
                if release.name in noise and not release.calibrated
                else release
                for release in self.releases
            ),
        )

    def _delta(self, delta: float | None) -> float:
        if delta is None and self.budget is None:
            raise InvalidParameter("""Expected delta=..., or a plan that was calibrated to a budget, got neither: an
                epsilon means nothing without its delta. Use a delta well below 1/n, e.g. 1e-6.""")
        return check_delta(self.budget.delta if delta is None else delta, self.records)  # type: ignore[union-attr]

    def __str__(self) -> str:
        from privet.plan.printed import printed

        return printed(self)

    def _repr_html_(self) -> str:
        from privet.plan.printed import as_html

        return as_html(self)


def gradient_plan(
    *,
    bounding: Bounding,
    steps: int,
    records: int,
    neighbours: Neighbours,
    sampling: Sampling = FullBatch(),  # noqa: B008  # a frozen value without state
    noise_multiplier: float = math.nan,
    correlation: Strategy | None = None,
    unit: Unit = "record",
) -> Plan:
    """A plan of noisy gradients alone: how batches are drawn, how a record is bounded, what noise, how many steps.

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> from privet.sampling import Poisson
    >>> plan = gradient_plan(sampling=Poisson(sampling_rate=0.01), bounding=Clip(clip=1.0), noise_multiplier=1.0,
    ...                      steps=1_000, records=10_000, neighbours="add_remove")
    >>> plan.event
    Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 1000
    >>> round(plan.guarantee(delta=1e-5).epsilon, 6)
    1.828237
    """
    because, use = "without a step nothing is learnt", "Use e.g. 100."
    gradients = Release(
        name="gradients",
        of="gradients of the loss",
        bound=bounding,
        noise_multiplier=noise_multiplier,
        times=whole("steps", steps, because=because, use=use),
        sampling=sampling,
        correlation=correlation,
    )
    count = whole("records", records, because="sums are divided by it", use="Pass a public number of records.")
    return Plan(releases=(gradients,), records=count, neighbours=neighbours, unit=unit)


def whole_noise(budget: Budget, neighbours: Neighbours) -> float:
    """The noise multiplier of the one Gaussian release that spends the whole budget, rounded up.

    Theorem: Balle and Wang 2018, theorem 8.

    Examples
    --------
    >>> round(whole_noise(Budget(epsilon=1, delta=1e-6), "replace_one"), 3)
    8.449
    """
    check_budget(budget)
    return upward(sensitivity_factor(neighbours) / largest_mu(budget.epsilon, budget.delta))


def check_budget(budget: Budget) -> Budget:
    """Return `budget` if noise can meet it, else say why not."""
    if not isinstance(budget, Budget) or budget.epsilon == 0:
        raise InvalidParameter(f"""Expected budget=Budget(epsilon=..., delta=...) with a positive epsilon, got
            {budget!r}: no finite noise meets it. Use e.g. Budget(epsilon=1, delta=1e-6).""")
    return budget
