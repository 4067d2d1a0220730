"""The unknown part of a schema, learnt in one private release that is planned before the table is opened."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from privet.accounting import calibrate
from privet.arrays import IntArray
from privet.data import grouped_by, one_row_each
from privet.data.cells import Names, RawNumbers
from privet.data.tables import read
from privet.errors import InvalidParameter
from privet.plan import Histograms, Meter, Plan, Release
from privet.plan.influence import unit_clip
from privet.plan.plan import check_budget
from privet.preprocessing.categories import NameFinder
from privet.preprocessing.encoding import ends_of
from privet.preprocessing.opened import Opened
from privet.preprocessing.ranges import RangeFinder
from privet.preprocessing.schema import Category, Column, Schema, Target
from privet.preprocessing.tails import Root
from privet.privacy import Budget, Guarantee, Neighbours, Unit, check_neighbours
from privet.randomness import Random
from privet.sampling import Poisson

ASSUMPTION = "a record is one row of the table; the columns' names and kinds are public"
ONE_ROW = "all rows of a person are under one label, and one is learnt from; the columns' names and kinds are public"


@dataclass(frozen=True, kw_only=True, slots=True)
class LearntSchema:
    """A complete schema that may be shown, the plan of what it was learnt from, and what that alone promises.

    To go on under the same budget, put the plan's releases first: `solve(..., before=learnt.plan.releases)`.
    """

    schema: Schema
    plan: Plan
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """A complete schema, the columns of which counts said nothing, and maps of those with long tails; public."""

    schema: Schema
    unsure: tuple[str, ...]
    roots: Mapping[str, Root] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaLearner:
    """How the unknown columns of a schema will be learnt; all of it public.

    Every unknown column has the same share of the budget, a target of numbers up to that of all the features together:
    numbers by `private_ranges`, names by `private_categories`. `threshold_delta` is charged only if there are names to
    learn. `inside` names columns of numbers whose declared range is a hull, inside which the range is learnt. `groups`
    names the column that says whose row it is: then one row of each person, drawn at random, is learnt from, and a
    record is a person. `records`, a public number, and `neighbours` say how fine ranges are worth learning. With a
    `rate` below 1, ranges of features are learnt from a sample in which each record is by itself with that probability,
    drawn beside the data (docs/proofs/whitening.md, section 6). With `tails`, long ones of features are looked for.
    `beyond` are the widths that are added at either end of the ranges of features, and of a target of numbers.

    Examples
    --------
    >>> from privet.preprocessing import Number
    >>> schema = Schema(columns={"age": Number(), "job": Category()})
    >>> learner = SchemaLearner(schema=schema, threshold_delta=1e-7)
    >>> [release.name for release in learner.releases(noise_multiplier=10.0)]
    ['ranges: octaves', 'ranges: bins', 'counts of names', 'names above the threshold']
    """

    schema: Schema
    threshold_delta: float
    tail: float = 0.005
    groups: str | None = None
    inside: tuple[str, ...] = ()
    records: int | None = None
    neighbours: Neighbours = "replace_one"
    rate: float = 1.0
    tails: bool = False
    beyond: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidParameter(
                "Expected a schema with columns of unknown range or names, got one that is complete: there is nothing "
                "to learn, and nothing should be charged. Use it as it is."
            )
        if self.groups is not None and self.groups in self.columns:
            raise InvalidParameter(
                f"Expected the column {self.groups!r} of groups to be no feature, got it among those to learn: whose "
                "row it is must not be learnt from. List it under ignored in the schema."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of which something is learnt."""
        unknown = self.schema.unknown
        return unknown + tuple(name for name in self.inside if name not in unknown)

    @property
    def target(self) -> tuple[str, ...]:
        """The target, if it is one of numbers whose range is learnt; else empty."""
        facts = self._facts
        return tuple(name for name in self.columns if isinstance(facts[name], Target) and not _is_name(facts[name]))

    @property
    def numbers(self) -> tuple[str, ...]:
        """Features whose range is learnt."""
        facts = self._facts
        return tuple(name for name in self.columns if not _is_name(facts[name]) and not isinstance(facts[name], Target))

    @property
    def names(self) -> tuple[str, ...]:
        """Columns whose names are learnt."""
        facts = self._facts
        return tuple(name for name in self.columns if _is_name(facts[name]))

    @property
    def weight(self) -> float:
        """How many columns the budget is shared by; that of a target of numbers counts as several."""
        return len(self.numbers) + len(self.names) + self._target_weight

    @property
    def _target_weight(self) -> float:
        return max(1.0, (len(self.numbers) + len(self.names)) / 2) if self.target else 0.0

    def releases(self, *, noise_multiplier: float) -> tuple[Release, ...]:
        """What learning releases: all of it one Gaussian release of `noise_multiplier`, and what names may leak."""
        found: tuple[Release, ...] = ()
        for finder, weight in self._finders(noise_multiplier):
            found += finder.releases(noise_multiplier=noise_multiplier * math.sqrt(self.weight / weight))
        return found

    def plan(self, budget: Budget, neighbours: Neighbours) -> Plan:
        """Learning alone, for all of a budget."""
        unit: Unit = "record" if self.groups is None else "person"

        def at(noise: float) -> Plan:
            return Plan(releases=self.releases(noise_multiplier=noise), neighbours=neighbours, unit=unit, budget=budget)

        check_budget(budget)
        noise = calibrate(
            lambda z: at(z).event, epsilon=budget.epsilon, delta=budget.delta, neighbours=check_neighbours(neighbours)
        )
        return at(noise)

    def read(self, table: Any) -> Opened:
        """The columns of a table that are learnt from; private."""
        names = {name: Names() for name in self.names}
        columns = read(table, {**{name: RawNumbers() for name in (*self.target, *self.numbers)}, **names})
        people = None if self.groups is None else grouped_by(table, self.groups, hashed=True)
        return Opened(columns=columns, names=names, people=people)

    def run(self, opened: Opened, meter: Meter) -> Completed:
        """Learn from what was read, and complete the schema, which is then public."""
        facts: dict[str, Any] = {}
        unsure: tuple[str, ...] = ()
        roots: dict[str, Root] = {}
        rows = None if opened.people is None else one_row_each(opened.people, meter.random)
        some = self._sample(opened, meter) if self.rate < 1 and self.numbers else rows
        for finder, places, rate in (
            (self._planned(meter, "target", self.target), rows, 1.0),
            (self._planned(meter, "ranges", self.numbers), some, self.rate),
        ):
            if finder is not None:
                learnt = finder.learn(opened.numbers(finder.columns, places), meter, rate=rate)
                facts.update({name: {"low": low, "high": high} for name, (low, high) in learnt.ranges.items()})
                unsure += tuple(name for name in learnt.unsure if name in self.schema.unknown)
                roots.update(learnt.roots)
        if self.names:
            listed = opened.learnt_names(self._names, rows, meter)
            facts.update({name: {"values": found} for name, found in listed.items()})
            unsure += tuple(name for name, found in listed.items() if not found)
        return Completed(schema=self._completed(facts), unsure=unsure, roots=roots)

    def _sample(self, opened: Opened, meter: Meter) -> IntArray | None:
        """The places of a sample; refused where it is not proven to cost no more than all records."""
        if opened.people is not None or meter.plan.neighbours == "add_remove":
            raise InvalidParameter(
                f"Expected rate=1 with groups or under 'add_remove', got {self.rate!r}: a sample is only proven to be "
                "as private as all rows where rows are records and their number is public. Leave rate out."
            )
        return Poisson(sampling_rate=self.rate).indices(opened.count, 0, meter.random)

    def _planned(self, meter: Meter, what: str, columns: tuple[str, ...]) -> RangeFinder | None:
        """The finder of ranges whose releases the meter's plan has."""
        if not columns:
            return None
        finder, bins = self._ranges(what, columns), f"{what}: bins"
        if bins not in meter.plan.names:
            return replace(finder, rounds=0)
        return replace(finder, rounds=meter.plan.times(bins), bins=meter.plan[bins].size // len(columns) or finder.bins)

    def _finders(self, noise_multiplier: float) -> list[tuple[RangeFinder | NameFinder, float]]:
        """Who learns, and the weight of each."""
        found: list[tuple[RangeFinder | NameFinder, float]] = []
        for what, columns, weight in (("target", self.target, self._target_weight), ("ranges", self.numbers, 0.0)):
            if columns:
                weight = weight or len(columns)
                finder = self._ranges(what, columns)
                if self.records is not None:
                    unit = unit_clip(Histograms(columns=len(columns)), self.neighbours)
                    noise = noise_multiplier * math.sqrt(self.weight / weight)
                    seen = self.records * (self.rate if what == "ranges" else 1.0)
                    finder = finder.sized(seen / (noise * unit))
                found.append((finder, weight))
        return found + ([(self._names, float(len(self.names)))] if self.names else [])

    def _ranges(self, what: str, columns: tuple[str, ...]) -> RangeFinder:
        facts = self._facts
        log = frozenset(name for name in columns if getattr(facts[name], "log", False))
        hulls = tuple(ends_of(facts[name]) if name in self.inside else None for name in columns)  # type: ignore[arg-type]
        tails = self.tails and what == "ranges"
        beyond = self.beyond[what == "target"]
        return RangeFinder(columns=columns, log=log, tail=self.tail, what=what, hulls=hulls, tails=tails, beyond=beyond)

    @property
    def _names(self) -> NameFinder:
        return NameFinder(columns=self.names, threshold_delta=self.threshold_delta)

    def _completed(self, facts: dict[str, Any]) -> Schema:
        columns: dict[str, Column] = {
            name: replace(column, **facts.get(name, {})) for name, column in self.schema.columns.items()
        }
        target = self.schema.target
        if target is not None and target.column in facts:
            found = dict(facts[target.column])
            if target.kind == "count":
                found = {"low": 0.0, "high": max(1.0, math.ceil(found["high"]))}
            target = replace(target, **found)
        return replace(self.schema, columns=columns, target=target)

    @property
    def _facts(self) -> dict[str, Column | Target]:
        target = self.schema.target
        return {**self.schema.columns, **({target.column: target} if target else {})}


def _is_name(fact: Column | Target) -> bool:
    return isinstance(fact, Category) or (isinstance(fact, Target) and fact.kind == "label")


def learn_schema(
    table: Any,
    schema: Schema,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    threshold_delta: float | None = None,
    tail: float = 0.005,
    groups: str | None = None,
    random: Random | None = None,
) -> LearntSchema:
    """Learn the ranges and names that a schema leaves open, for all of `budget`.

    Promise: (budget.epsilon, budget.delta)-private under `neighbours`; see `private_ranges` and `private_categories`.
    To take it out of a larger budget, put the releases of a `SchemaLearner` into a plan of more.

    Parameters
    ----------
    table : any table with the schema's columns; private
    schema : kinds of all columns; ranges and names where they are public
    threshold_delta : the part of delta for names that one record alone holds; a tenth of it by default
    tail : share of records that may be clipped at either end of a range
    groups : the column that says whose row it is; then the promise is user-level, for a person with all rows
    random : the system's, unless for a test

    Examples
    --------
    >>> from privet.preprocessing import Number
    >>> table = {"age": [20 + i % 40 for i in range(20_000)], "job": ["baker", "smith"] * 10_000}
    >>> learnt = learn_schema(table, Schema(columns={"age": Number(), "job": Category()}),
    ...                       budget=Budget(epsilon=0.5, delta=1e-6), neighbours="zero_out")
    >>> learnt.schema.columns["job"].values, learnt.guarantee.epsilon <= 0.5
    (('baker', 'smith'), True)
    """
    part = check_budget(budget).delta / 10 if threshold_delta is None else threshold_delta
    learner = SchemaLearner(schema=schema, threshold_delta=part, tail=tail, groups=groups)
    plan = learner.plan(budget, neighbours)
    meter = Meter(plan, random=random)
    found = learner.run(learner.read(table), meter).schema
    meter.finish()
    guarantee = meter.guarantee()
    more = ASSUMPTION if groups is None else ONE_ROW
    return LearntSchema(
        schema=found, plan=plan, guarantee=replace(guarantee, assumptions=(*guarantee.assumptions, more))
    )
