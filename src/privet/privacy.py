"""The words of a privacy statement: neighbours, budget, guarantee."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from privet import _html
from privet._checks import between, one_of, positive
from privet.errors import InvalidParameter

Neighbours = Literal["replace_one", "zero_out", "add_remove"]
"""Which two data sets must look alike.

`"replace_one"`: n is public, one record is replaced by any other; a clipped sum moves by up to 2·clip.
`"zero_out"`: n is public, one record is zeroed out: it becomes the empty record, all of whose cells are missing, which
adds exactly nothing to any release, so that inside a batch it is the same as its absence; clip.
`"add_remove"`: n is private, one record joins or leaves; clip.
"""

Unit = Literal["record", "person"]
"""Whom the relation is about: one row of the table, or (user-level) all rows of one person together, however many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """How a relation is said of its unit: the one vocabulary of guarantees, reports and commands.

    `change` is what happens to one record or person, `count` whether their number is public, `others` what an attacker
    is supposed to know, `question` what the attacker wants to know, and `found` what of it is found, with {} for the
    rate. `level` stands before "(epsilon, delta)-differentially private": "user-level" where a person is the unit.
    `short` is the change in a few words.

    Examples
    --------
    >>> words("zero_out", "person").change
    'all rows of one person zeroed out'
    """

    change: str
    count: str
    others: str
    question: str
    found: str
    short: str
    level: str = ""


_CHANGE: dict[tuple[Neighbours, Unit], str] = {
    ("replace_one", "record"): "one record replaced by any other",
    ("zero_out", "record"): "one record zeroed out",
    ("add_remove", "record"): "one record added or removed",
    ("replace_one", "person"): "all rows of one person replaced by any others",
    ("zero_out", "person"): "all rows of one person zeroed out",
    ("add_remove", "person"): "one person with all rows added or removed",
}


_SHORT: dict[Neighbours, str] = {
    "replace_one": "replace one",
    "zero_out": "zero out one",
    "add_remove": "add or remove one",
}
_MORE = "; .details for all of it"
_OTHERWISE = ". Otherwise it would read: "


def words(neighbours: Neighbours, unit: Unit = "record") -> Words:
    """Return how the relation is said of that unit."""
    change = _CHANGE[check_neighbours(neighbours), check_unit(unit)]
    many, others, gone, level = "records that", "every other record", "been zeroed out", ""
    if unit == "person":
        many, others, gone, level = "people who", "all rows of every other person", "all rows zeroed out", "user-level "
    units, question = many.split()[0], f"whether one given {unit} was in the data"
    found = f"finds at most {{}} of the {many} are there"
    if neighbours == "replace_one":
        question = f"which of two given {units}, one or the other, was in the data"
        found = "recognises the other in at most {} of cases"
    elif neighbours == "zero_out":
        question += f" or had {gone}"
    count = f"the number of {units} {'private' if neighbours == 'add_remove' else 'public'}"
    short = _SHORT[neighbours] + (" person" if unit == "person" else "")
    return Words(change=change, count=count, others=others, question=question, found=found, short=short, level=level)


def sensitivity_factor(neighbours: Neighbours) -> int:
    """By how many clips one record, or one person, moves a sum of vectors of l2 norm at most one clip each: 2 or 1.

    Promise: the l2 sensitivity of such a sum is at most this factor times the clip.
    Theorem: triangle inequality. Replacing takes one vector away and brings another, ‖a − b‖ ≤ ‖a‖ + ‖b‖ ≤ 2·clip,
    attained by b = −a; a vector that is added, removed or zeroed out moves the sum by itself, by at most one clip.

    Examples
    --------
    >>> sensitivity_factor("replace_one"), sensitivity_factor("zero_out"), sensitivity_factor("add_remove")
    (2, 1, 1)
    """
    return 2 if check_neighbours(neighbours) == "replace_one" else 1


def check_neighbours(neighbours: str) -> Neighbours:
    """Return `neighbours` if it is one of the three relations, else say which there are."""
    found: Any = one_of(
        "neighbours",
        neighbours,
        get_args(Neighbours),
        because="an epsilon without its relation can be wrong by a factor of two",
        use="Use 'replace_one' if the number of records is public and a record may change arbitrarily.",
    )
    return found  # type: ignore[no-any-return]  # one of the names above


def check_unit(unit: str) -> Unit:
    """Return `unit` if it is one of the two, else say which there are."""
    found: Any = one_of(
        "unit",
        unit,
        get_args(Unit),
        because="a promise must say whom it protects",
        use="Use 'person' where rows are grouped by whom they belong to.",
    )
    return found  # type: ignore[no-any-return]  # one of the names above


def check_delta(delta: float, records: int | None = None, *, or_more: bool = False) -> float:
    """Return `delta` as a float in (0, 1), and below 1/n where the number of records is public, else say why not.

    With `or_more`, there are that many records at least.
    """
    why = "(epsilon, delta) with such a delta promises nothing, or more than Gaussian noise can keep"
    found = between("delta", delta, 0, 1, because=why, use="Use a delta well below 1/n, e.g. 1e-6.")
    if records is not None and records > 1 and found >= 1 / records:
        most = f", which is at most {1 / records:g}" if or_more else f" = {1 / records:g}"
        raise InvalidParameter(f"""Expected delta below 1/n{most}, got {delta!r}: publishing one record at random would
            meet it. Use a delta well below 1/n.""")
    return found


def check_epsilon(epsilon: float) -> float:
    """Return `epsilon` as a finite float of at least 0, else say why not."""
    why = "no run can be compared with it"
    return positive("epsilon", epsilon, zero=True, because=why, use="Use a small positive number, e.g. 1.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The most that may be spent: a pair (epsilon, delta).

    Budgets are ordered as pairs are: `a <= b` when both numbers are, so two budgets may be incomparable.

    Examples
    --------
    >>> Budget(epsilon=1, delta=1e-6) <= Budget(epsilon=2, delta=1e-5)
    True
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    def __le__(self, other: "Budget") -> bool:
        return self.epsilon <= other.epsilon and self.delta <= other.delta


@dataclass(frozen=True, kw_only=True, slots=True)
class Guarantee:
    """What is promised, to whom, and on what it rests. Its `str` is one line, `details` all of it: a sentence to sign.

    The run as described has at least the epsilon `lower` on some two tables: the bracket [lower, epsilon] holds the
    truth, so it shows how much of `epsilon` is slack of the accounting. It is 0 where nothing is proven from below, and
    the sentence then says "at most". `unit` says who is protected: one
    record, or one person with all rows. `invalidated`, if not empty, says why nothing is promised although the privacy
    cost was computed, e.g. because the noise came from a fixed seed. `sampling` says what ran, `releases` the same in a
    few words.

    Examples
    --------
    >>> promise = Guarantee(epsilon=1.0, delta=1e-6, neighbours="add_remove", accountant="closed form",
    ...                     theorem="Balle and Wang 2018", lower=1.0, sampling="no sampling")
    >>> print(promise)
    ε = 1, δ = 1e-06, add or remove one, no sampling; .details for all of it
    >>> print(promise.details)
    The release is (1, 1e-06)-differentially private for one record added or removed, the number of \
records private; no sampling; computed by the closed form accountant (Balle and Wang 2018), which puts \
the true epsilon in [1, 1].
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    accountant: str
    theorem: str
    lower: float
    sampling: str
    assumptions: tuple[str, ...] = ()
    invalidated: str = ""
    unit: Unit = "record"
    releases: str = ""

    def invalidate(self, reason: str) -> "Guarantee":
        """The same statement, withdrawn: an infinite epsilon, and `reason` in front of what would have held."""
        return replace(self, epsilon=math.inf, invalidated=f"{reason}{_OTHERWISE}{self.details}")

    def __str__(self) -> str:
        if self.invalidated:
            return f"NOT PRIVATE: {self.invalidated.split(_OTHERWISE)[0]}{_MORE}"
        whom = words(self.neighbours, self.unit).short
        told = f"{whom}, {self.releases or self.sampling}{_MORE}"
        if math.isinf(self.epsilon):
            return f"promises nothing at δ = {up(self.delta, 6)}, as ε is infinite, {told}"
        return f"ε = {up(self.epsilon, 6)}, δ = {up(self.delta, 6)}, {told}"

    @property
    def details(self) -> str:
        """All of it, as a sentence to sign: whom it protects, what ran, by which theorem, what it assumes."""
        if self.invalidated:
            return f"NOT PRIVATE: {self.invalidated}"
        said = words(self.neighbours, self.unit)
        if math.isinf(self.epsilon):
            return (
                f"The release promises nothing at delta = {up(self.delta, 6)}: epsilon is infinite for "
                f"{said.change}, {said.count}; {self.sampling}. Add noise, or accept a larger delta."
            )
        low, high = down(self.lower), up(self.epsilon)
        truth = f"in [{low}, {high}]" if self.lower > 0 else f"at {high} at most"
        sentence = (
            f"The release is {said.level}({high}, {up(self.delta, 6)})-differentially private for "
            f"{said.change}, {said.count}; {self.sampling}; computed by the {self.accountant} accountant "
            f"({self.theorem}), which puts the true epsilon {truth}."
        )
        return sentence if not self.assumptions else sentence + " It assumes: " + "; ".join(self.assumptions) + "."

    def _repr_html_(self) -> str:
        said = words(self.neighbours, self.unit)
        rows = [
            ("ε", "none: NOT PRIVATE" if self.invalidated else up(self.epsilon, 6)),
            ("δ", up(self.delta, 6)),
            ("for", f"{said.change}, {said.count}"),
            ("what ran", self.releases or self.sampling),
            ("computed by", f"the {self.accountant} accountant"),
        ]
        return _html.table(rows, title="Guarantee") + _html.folded("all of it", self.details)


def up(value: float, digits: int = 9) -> str:
    """Print `value` in `digits` significant digits, rounded towards plus infinity."""
    return _directed(value, digits, towards=math.inf)


def down(value: float, digits: int = 9) -> str:
    """Print `value` in `digits` significant digits, rounded towards minus infinity."""
    return _directed(value, digits, towards=-math.inf)


def _directed(value: float, digits: int, towards: float) -> str:
    if not math.isfinite(value) or value == 0.0:
        return f"{value:g}"
    text = f"{value:.{digits}g}"
    wrong_side = float(text) < value if towards > 0 else float(text) > value
    if wrong_side:
        unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits)
        text = f"{value + math.copysign(unit, towards):.{digits}g}"
    return text
