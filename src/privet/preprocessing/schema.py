"""A schema: what is known in public of a table's columns. Nothing in it is read off the rows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from privet import _html
from privet._checks import is_number, one_of
from privet.data.cells import text_of
from privet.errors import InvalidParameter
from privet.preprocessing.dates import Date
from privet.preprocessing.missing import Missing, check_missing

Kind = Literal["label", "number", "count"]
_SHOWN = 12  # names in a notebook's table


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """A column of numbers with a public range; `log` is a public log1p before scaling.

    Without a range the column is declared but not yet known: `learn_schema` learns the range privately.

    Examples
    --------
    >>> Number(low=0, high=120)
    Number(low=0.0, high=120.0, log=False, missing='neutral')
    >>> Number(log=True).known
    False
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    missing: Missing = "neutral"

    def __post_init__(self) -> None:
        _keep_range(self)
        check_missing(self.missing)

    @property
    def known(self) -> bool:
        """Whether the range is declared."""
        return self.low is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Category:
    """A column of names from a public code book; a name that is not listed counts as missing.

    Names are compared as text without surrounding blanks: 3, 3.0 and "3" are one name. Without `values` the column is
    declared but not yet known: `learn_schema` learns the names privately.

    Examples
    --------
    >>> Category(values=("yes", "no")).values
    ('yes', 'no')
    """

    values: tuple[str, ...] | None = None
    missing: Missing = "neutral"

    def __post_init__(self) -> None:
        _keep_names(self, self.values)
        check_missing(self.missing)

    @property
    def known(self) -> bool:
        """Whether the code book is declared."""
        return self.values is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What is to be predicted: a label from a public list, a number in a public range, or a count up to a public bound.

    `other`, for labels, is one more class that holds every value not listed ("normal" against the rest); without it an
    unlisted label makes the record count as empty.

    Examples
    --------
    >>> Target(column="income", kind="label", values=("<=50K", ">50K")).classes
    ('<=50K', '>50K')
    >>> Target(column="label", kind="label", values=("normal",), other="attack").classes
    ('normal', 'attack')
    """

    column: str
    kind: Kind
    values: tuple[str, ...] | None = None
    other: str | None = None
    low: float | None = None
    high: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        _check_name(self.column)
        use = 'Write kind = "label" with its list of values, or kind = "number" with its range.'
        one_of("the target's kind", self.kind, get_args(Kind), because="nothing says how to read it", use=use)
        _keep_range(self)
        _keep_names(self, self.values)
        label = self.kind == "label"
        stray = [n for n in ("low", "high", "log") if getattr(self, n)] if label else []
        stray += [n for n in ("values", "other") if not label and getattr(self, n) is not None]
        if stray:
            raise InvalidParameter(
                f"Expected no {stray[0]!r} for a target of kind {self.kind!r}, got one: a label has values, a number "
                "or count has a range. Drop it, or change the kind."
            )
        if self.kind == "count" and (self.log or (self.low or 0.0) != 0.0):
            raise InvalidParameter(
                "Expected a count's range to start at 0, without log: it is used as it is. Write range = [0, most]."
            )
        if self.other is not None:
            object.__setattr__(self, "other", text_of(self.other) or None)
            if self.other is None or self.other in (self.values or ()):
                raise InvalidParameter(
                    "Expected `other` to be a name that is not among the values, got one that is, or none: it names "
                    "the class of all the rest. Choose another name."
                )

    @property
    def known(self) -> bool:
        """Whether the list of values, or the range, is declared."""
        return (self.values if self.kind == "label" else self.high) is not None

    @property
    def classes(self) -> tuple[str, ...]:
        """The public list of labels, in the order of their indices."""
        return (self.values or ()) + ((self.other,) if self.other is not None else ())


Column = Number | Category | Date


@dataclass(frozen=True, kw_only=True, slots=True)
class Schema:
    """The public facts of a table: its columns by name, its target, and the columns to pass over.

    Promise: fields are public information; the order of `columns` is the order of the encoded features.

    Examples
    --------
    >>> schema = Schema(columns={"age": Number(low=0, high=120), "job": Category()},
    ...                 target=Target(column="y", kind="label", values=("no", "yes")))
    >>> schema.unknown
    ('job',)
    """

    columns: Mapping[str, Column]
    target: Target | None = None
    ignored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise InvalidParameter(
                "Expected columns to map at least one name to Number(...), Category(...) or Date(...), got none: there "
                'would be nothing to learn from. Write e.g. "age" = { kind = "number", range = [0, 120] }.'
            )
        for name, column in self.columns.items():
            _check_name(name)
            if not isinstance(column, Column):
                raise InvalidParameter(
                    f"Expected column {name!r} to be Number(...), Category(...) or Date(...), got "
                    f"{type(column).__name__}: nothing says how to read it. Use e.g. Number(low=..., high=...)."
                )
        if not (self.target is None or isinstance(self.target, Target)):
            raise InvalidParameter(
                f"Expected target to be Target(...) or None, got {type(self.target).__name__}: nothing says how to "
                'read it. Use e.g. Target(column="y", kind="label", values=("no", "yes")).'
            )
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(self, "ignored", tuple(_check_name(name) for name in self.ignored))
        target = (self.target.column,) if self.target else ()
        names = [*self.columns, *target, *self.ignored]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidParameter(
                f"Expected each column in one role, got {twice!r} in two: it would be a feature and the target, or "
                "both used and ignored. Keep it in one place."
            )

    @property
    def known_target(self) -> Target:
        """The target; refused if there is none."""
        if self.target is None:
            raise InvalidParameter(
                "Expected a schema with a target, got one without: nothing says what to predict. "
                'Write target = { column = "y", kind = "label", values = ["no", "yes"] }.'
            )
        return self.target

    @property
    def unknown(self) -> tuple[str, ...]:
        """Columns, target included, whose range or names are not declared."""
        target = (self.target.column,) if self.target is not None and not self.target.known else ()
        return (*(name for name, column in self.columns.items() if not column.known), *target)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = [(n, _kind(each), _known(each), each.missing) for n, each in self.columns.items()]
        if self.target is not None:
            rows.append((self.target.column, f"target: {self.target.kind}", _known(self.target), ""))
        rows += [(name, "ignored", "", "") for name in self.ignored]
        return _html.table(rows, head=("column", "kind", "known in public", "missing"), title="Schema")


def _kind(column: Column) -> str:
    return "number" if isinstance(column, Number) else "category" if isinstance(column, Category) else "date"


def _known(fact: Column | Target) -> str:
    """The range or the names of a column, as far as they are declared, in a few words."""
    if not fact.known:
        return "to be learnt"
    if isinstance(fact, Date):
        return " to ".join(fact.ends) + "".join(f", {part}" for part in fact.parts)
    if not isinstance(fact, Number) and fact.values is not None:
        names = fact.classes if isinstance(fact, Target) else fact.values
        more = len(names) - _SHOWN
        return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    ends = "" if isinstance(fact, Category) else f"{fact.low:g} to {fact.high:g}{', log1p' if fact.log else ''}"
    return ends


def _keep_range(fact: Number | Target) -> None:
    """Check low < high, with -1 < low where log1p is taken, and keep them as floats."""
    if not isinstance(fact.log, bool):
        raise InvalidParameter(
            f"Expected log to be true or false, got {fact.log!r}: it says whether log1p is taken. Write log = true."
        )
    if fact.low is None and fact.high is None:
        return
    ends = (fact.low, fact.high)
    if not all(map(is_number, ends)):
        raise InvalidParameter(
            f"Expected a range of two finite numbers, got {ends!r}: a value could not be bounded. "
            "Write range = [low, high], known without looking at the data, or leave it out to have it learnt."
        )
    low, high = (float(end) for end in ends)  # type: ignore[arg-type]  # checked above
    least = -1.0 if fact.log else -math.inf
    scaled = (math.log1p(low), math.log1p(high)) if fact.log and least < low < high else (low, high)
    if not (least < low < high and math.isfinite(high - low) and scaled[1] / 2 - scaled[0] / 2 > 0):
        raise InvalidParameter(
            f"Expected range = [low, high] with low < high{' and low > -1, as log is true' if fact.log else ''}, got "
            f"[{low:g}, {high:g}]: nothing can be scaled by it. Write the least and the largest value that can occur."
        )
    object.__setattr__(fact, "low", low)
    object.__setattr__(fact, "high", high)


def _keep_names(fact: Category | Target, values: Iterable[Any] | None) -> None:
    """Keep the code book as a tuple of distinct texts."""
    if values is None:
        return
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidParameter(
            f"Expected values to be a list of names, got {type(values).__name__}: each name is one level. "
            'Write values = ["a", "b"].'
        )
    names = [text_of(value) for value in values]
    if None in names or len(set(names)) < len(names):
        raise InvalidParameter(
            "Expected values to be distinct, non-empty names, got one that is empty or listed twice (blanks around a "
            "name do not count): a level would be ambiguous. Write each name once."
        )
    object.__setattr__(fact, "values", tuple(names))


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not name or any(0xD800 <= ord(letter) < 0xE000 for letter in name):
        raise InvalidParameter(
            f"Expected a column's name to be a non-empty text, got {name!r}: columns are matched by name. "
            "Use the name in the table's header."
        )
    return name
