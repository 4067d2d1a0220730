"""The words of a privacy statement: neighbours, budget, guarantee."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Literal, get_args

from privet.errors import InvalidParameter

__all__ = [
    "Budget",
    "Guarantee",
    "Neighbours",
    "Unit",
    "check_delta",
    "check_epsilon",
    "check_neighbours",
    "check_unit",
    "sensitivity_factor",
]

Neighbours = Literal["replace_one", "zero_out", "add_remove"]
"""Which two data sets must look alike.

`"replace_one"`: n is public, one record is exchanged for any other; a clipped sum moves by up to 2·clip.
`"zero_out"`: n is public, one record is emptied, which inside a batch is the same as its absence; clip.
`"add_remove"`: n is private, one record joins or leaves; clip.
"""

Unit = Literal["record", "person"]
"""Whom the relation is about: one row of the table, or all rows of one person together, however many there are."""

_MEANING: dict[Unit, dict[Neighbours, str]] = {
    "record": {
        "replace_one": "one record exchanged for any other, the number of records public",
        "zero_out": "one record emptied, the number of records public",
        "add_remove": "one record added or removed, the number of records private",
    },
    "person": {
        "replace_one": "all rows of one person exchanged for any others, the number of people public",
        "zero_out": "all rows of one person emptied, the number of people public",
        "add_remove": "one person with all rows added or removed, the number of people private",
    },
}


def check_neighbours(neighbours: str) -> Neighbours:
    """Return `neighbours` if it is one of the three relations, else say which there are."""
    for known in get_args(Neighbours):
        if neighbours == known:
            return known  # type: ignore[no-any-return]  # get_args is untyped
    raise InvalidParameter(
        f"Expected neighbours to be one of 'replace_one', 'zero_out', 'add_remove', got {neighbours!r}: "
        "an epsilon without its relation can be wrong by a factor of two. "
        "Use 'replace_one' if the number of records is public and a record may change arbitrarily."
    )


def sensitivity_factor(neighbours: Neighbours) -> int:
    """How many clips one record can move a sum of clipped records by: 2 if it is replaced, 1 otherwise.

    Theorem: triangle inequality. A record that joins, leaves or is zeroed out changes one term, which is no longer than
    the clip; one that is replaced changes its own term from one such vector to another.

    Examples
    --------
    >>> sensitivity_factor("replace_one"), sensitivity_factor("zero_out"), sensitivity_factor("add_remove")
    (2, 1, 1)
    """
    return 2 if check_neighbours(neighbours) == "replace_one" else 1


def check_unit(unit: str) -> Unit:
    """Return `unit` if it is one of the two, else say which there are."""
    for known in get_args(Unit):
        if unit == known:
            return known  # type: ignore[no-any-return]  # get_args is untyped
    raise InvalidParameter(
        f"Expected unit to be 'record' or 'person', got {unit!r}: a promise must say whom it protects. "
        "Use 'person' where rows are grouped by whom they belong to."
    )


def check_delta(delta: float) -> float:
    """Return `delta` as a float in (0, 1), else say why not."""
    if not (isinstance(delta, numbers.Real) and 0.0 < delta < 1.0):
        raise InvalidParameter(
            f"Expected delta in (0, 1), got {delta!r}: (epsilon, delta) with such a delta promises nothing "
            "that a run could be priced at. Use a delta well below 1/n, e.g. 1e-6."
        )
    return float(delta)


def check_epsilon(epsilon: float) -> float:
    """Return `epsilon` as a finite float of at least 0, else say why not."""
    if not (isinstance(epsilon, numbers.Real) and 0.0 <= epsilon < math.inf):
        raise InvalidParameter(
            f"Expected a finite epsilon of at least 0, got {epsilon!r}: no run can be compared with it. "
            "Use a small positive number, e.g. 1."
        )
    return float(epsilon)


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

    def __le__(self, other: Budget) -> bool:
        return self.epsilon <= other.epsilon and self.delta <= other.delta


@dataclass(frozen=True, kw_only=True, slots=True)
class Guarantee:
    """What is promised, to whom, and on what it rests. Its `str` is a sentence to sign.

    `lower` is the least epsilon that the run as described can have: the bracket [lower, epsilon]
    holds the truth, so it shows how much of `epsilon` is slack of the accounting. `unit` says who is protected: one
    record, or one person with all rows. `void`, if not empty, says why
    nothing is promised although the run was priced, e.g. because its noise came from a fixed seed.

    Examples
    --------
    >>> print(Guarantee(epsilon=1.0, delta=1e-6, neighbours="add_remove", accountant="closed form",
    ...                 theorem="Balle and Wang 2018", lower=1.0, sampling="no sampling"))
    The release is (1, 1e-06)-differentially private for one record added or removed, the number of \
records private; no sampling; priced by the closed form accountant (Balle and Wang 2018), which puts \
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
    void: str = ""
    unit: Unit = "record"

    def voided(self, reason: str) -> Guarantee:
        """The same statement, withdrawn: an infinite epsilon, and `reason` in front of what would have held."""
        return replace(self, epsilon=math.inf, void=f"{reason}. Otherwise it would read: {self}")

    def __str__(self) -> str:
        if self.void:
            return f"NOT PRIVATE: {self.void}"
        if math.isinf(self.epsilon):
            return (
                f"The release promises nothing at delta = {up(self.delta, 6)}: epsilon is infinite for "
                f"{_MEANING[self.unit][self.neighbours]}; {self.sampling}. Add noise, or accept a larger delta."
            )
        sentence = (
            f"The release is ({up(self.epsilon)}, {up(self.delta, 6)})-differentially private for "
            f"{_MEANING[self.unit][self.neighbours]}; {self.sampling}; priced by the {self.accountant} accountant "
            f"({self.theorem}), which puts the true epsilon in [{down(self.lower)}, {up(self.epsilon)}]."
        )
        return sentence if not self.assumptions else sentence + " It assumes: " + "; ".join(self.assumptions) + "."


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
