"""The unknown part of a schema, learnt in one private release that is planned before the table is opened."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from privet import accounting
from privet.accounting import Event, calibrate
from privet.data import grouped_by
from privet.data.people import one_row_each
from privet.errors import InvalidParameter
from privet.plan import check_budget
from privet.preprocessing.categories import category_release, private_categories
from privet.preprocessing.ranges import private_ranges, range_releases
from privet.preprocessing.schema import Category, Column, Schema, Target
from privet.privacy import Budget, Guarantee, Neighbours, check_neighbours
from privet.randomness import Random, system_random

__all__ = ["LearntSchema", "SchemaPlan", "learn_schema"]

_ASSUMPTION = "a record is one row of the table; the columns' names and kinds are public"
_ONE_ROW = "all rows of a person are under one label, and one is learnt from; the columns' names and kinds are public"


@dataclass(frozen=True, kw_only=True, slots=True)
class LearntSchema:
    """A complete schema that may be shown, the event that pays for it, and what that event alone promises.

    Compose `event` with what is done next, under the same relation, for one guarantee: `Plan(also=(learnt.event,))`.
    """

    schema: Schema
    event: Event
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaPlan:
    """How the unknown columns of a schema will be learnt; all of it public, and priced before a row is read.

    Every unknown column, the target included, has the same share of the signal: numbers by `private_ranges`, names by
    `private_categories`. `threshold_delta` is charged only if there are names to learn. `groups` names the column that
    says whose row it is: then one row of each person, drawn at random, is learnt from, and a record is a person.

    Examples
    --------
    >>> from privet.preprocessing import Number
    >>> schema = Schema(columns={"age": Number(), "job": Category()})
    >>> plan = SchemaPlan(schema=schema, neighbours="zero_out", threshold_delta=1e-7, noise_multiplier=10.0)
    >>> plan.event
    Gaussian(noise_multiplier=20.0...) * 2 + Gaussian(noise_multiplier=14.14...) + Approximate(epsilon=0.0, delta=1e-07)
    """

    schema: Schema
    neighbours: Neighbours
    threshold_delta: float
    noise_multiplier: float = math.nan
    tail: float = 0.005
    groups: str | None = None

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        if not self.schema.unknown:
            raise InvalidParameter(
                "Expected a schema with columns of unknown range or names, got one that is complete: there is nothing "
                "to learn, and nothing should be charged. Use it as it is."
            )
        if self.groups is not None and self.groups in self.schema.unknown:
            raise InvalidParameter(
                f"Expected the column {self.groups!r} of groups to be no feature, got it among those to learn: whose "
                "row it is must not be learnt from. List it under ignored in the schema."
            )

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns whose range is learnt."""
        return tuple(name for name in self.schema.unknown if not self._is_name(name))

    @property
    def names(self) -> tuple[str, ...]:
        """Columns whose names are learnt."""
        return tuple(name for name in self.schema.unknown if self._is_name(name))

    @property
    def event(self) -> Event:
        """What learning releases."""
        events: list[Event] = []
        if self.numbers:
            coarse, _ = range_releases(
                len(self.numbers), noise_multiplier=self._part(self.numbers), neighbours=self.neighbours
            )
            events.append(coarse.event * 2)
        if self.names:
            _, counted = category_release(
                len(self.names),
                noise_multiplier=self._part(self.names),
                threshold_delta=self.threshold_delta,
                neighbours=self.neighbours,
            )
            events.append(counted)
        return events[0] if len(events) == 1 else events[0] + events[1]

    def guarantee(self, *, delta: float) -> Guarantee:
        """What learning alone promises at `delta`."""
        found = accounting.guarantee(self.event, delta=delta, neighbours=self.neighbours)
        if self.groups is None:
            return replace(found, assumptions=(*found.assumptions, _ASSUMPTION))
        return replace(found, unit="person", assumptions=(*found.assumptions, _ONE_ROW))

    def calibrated(self, budget: Budget) -> SchemaPlan:
        """The same plan with the least noise that meets `budget`."""
        check_budget(budget)
        noise = calibrate(
            lambda z: replace(self, noise_multiplier=z).event,
            epsilon=budget.epsilon,
            delta=budget.delta,
            neighbours=self.neighbours,
        )
        return replace(self, noise_multiplier=noise)

    def learn(self, table: Any, *, delta: float, random: Random | None = None) -> LearntSchema:
        """Run the plan on a table, which is private; `delta` is for the guarantee of this step alone."""
        random = random if random is not None else system_random()
        guarantee = self.guarantee(delta=delta)
        facts: dict[str, Any] = {}
        rows = None if self.groups is None else one_row_each(grouped_by(table, self.groups), random)
        if self.numbers:
            columns = {**self.schema.columns, **self._target()}
            ranges = private_ranges(
                table,
                columns=self.numbers,
                noise_multiplier=self._part(self.numbers),
                neighbours=self.neighbours,
                log=[name for name in self.numbers if getattr(columns[name], "log", False)],
                tail=self.tail,
                rows=rows,
                random=random,
            )
            facts.update({name: {"low": low, "high": high} for name, (low, high) in ranges.ranges.items()})
        if self.names:
            learnt = private_categories(
                table,
                columns=self.names,
                noise_multiplier=self._part(self.names),
                threshold_delta=self.threshold_delta,
                neighbours=self.neighbours,
                rows=rows,
                random=random,
            )
            facts.update({name: {"values": values} for name, values in learnt.values.items()})
        if random.void:
            guarantee = guarantee.voided("fixed seed: whoever knows it can subtract the noise")
        return LearntSchema(schema=self._completed(facts), event=self.event, guarantee=guarantee)

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

    def _target(self) -> dict[str, Target]:
        return {self.schema.target.column: self.schema.target} if self.schema.target else {}

    def _is_name(self, name: str) -> bool:
        fact = {**self.schema.columns, **self._target()}[name]
        return isinstance(fact, Category) or (isinstance(fact, Target) and fact.kind == "label")

    def _part(self, columns: tuple[str, ...]) -> float:
        """The noise multiplier of these columns, whose share of the squared signal is their share of the columns."""
        if math.isnan(self.noise_multiplier):
            raise InvalidParameter(
                "Expected a plan with a noise_multiplier, got one without: it can be neither priced nor run. "
                "Pass noise_multiplier=..., or call .calibrated(budget) first."
            )
        return self.noise_multiplier * math.sqrt(len(self.schema.unknown) / len(columns))


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
    To pay for it out of a larger budget, make a `SchemaPlan`, which is priced without the table.

    Parameters
    ----------
    table : any table with the schema's columns; private
    schema : kinds of all columns; ranges and names where they are public
    threshold_delta : the part of delta for names that one record alone holds; a tenth of it by default
    tail : share of records that may be clipped at either end of a range
    groups : the column that says whose row it is; then the promise is for a person with all rows
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
    check_budget(budget)
    part = budget.delta / 10 if threshold_delta is None else threshold_delta
    plan = SchemaPlan(schema=schema, neighbours=neighbours, threshold_delta=part, tail=tail, groups=groups).calibrated(
        budget
    )
    return plan.learn(table, delta=budget.delta, random=random)
