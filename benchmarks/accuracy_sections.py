"""The sections beside the main tables, as cases: what carelessness and few rows do to a fit.

small, tables   the tables of `accuracy_tables.py`; here only for choosing settings
probabilities   log-loss, calibration, mean against rate
bounds          public ranges 10, 100 and 1,000 times too wide
undeclared      nothing declared, on a few hundred to a few thousand rows
classes         26 and 100 classes, and digits
constant        every estimator on few rows, in its own score: `accuracy_constant.py`
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_constant import constant
from accuracy_made import MADE
from accuracy_runs import Case, declared, resampled
from accuracy_tables import (
    CUT,
    EPSILONS,
    FLOORS,
    SMALL,
    Table,
    breast_cancer,
    diabetes,
    digits,
    large,
    pooled_mnist,
    without_ranges,
)

from privet.estimators import fit_table
from privet.preprocessing import Category, Number
from privet.privacy import Budget, Neighbours

SHIPPED: dict[str, Callable[[], Table]] = {
    "digits": digits,
    "digits_small": functools.partial(digits, odd=True),
    "breast_cancer": breast_cancer,
    "diabetes": diabetes,
}
FACTORS = (10, 100, 1_000)
_PATHS = {"tight": 1, "1,000×": 1_000, "learnt": None}
BOOTSTRAPS = (300, 1_000, 5_000)
Source = Callable[[int], Table]


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where tables are got by name; with `dev`, of training rows alone."""

    data: Path
    dev: bool = False

    def __call__(self, name: str) -> Source:
        """What the run of a number is fitted to."""
        if name in MADE:  # other seeds are other tables, of the same kind
            return lambda run: _made(name, 1 + run % 5 if self.dev else 0)
        if name in SHIPPED:
            return self._split(SHIPPED[name])
        if name.endswith("_numbers"):
            return self._split(lambda: _numbers(self._read(name.removesuffix("_numbers"))))
        if not name.endswith("_small"):
            return self._split(lambda: self._read(name))
        most = 50_000 if self.dev else None  # more take long to encode, and a fifth is enough to score on
        whole = self._split(lambda: self._read(name.removesuffix("_small"), most))
        cut = pooled_mnist if name == "mnist_small" else functools.partial(Table.first, rows=SMALL)
        return _by_fold(lambda run: cut(whole(run)))

    def _read(self, name: str, most: int | None = None) -> Table:
        return _read(self.data, name, most)

    def _split(self, make: Callable[[], Table]) -> Source:
        whole = functools.cache(make)  # read when a run needs it
        return (lambda run: whole().fold(run)) if self.dev else lambda _run: whole()

    def has(self, name: str) -> bool:
        """Whether the table can be had: some are not in the repository."""
        if name in MADE or name in SHIPPED:
            return True
        file = name.removesuffix("_small").removesuffix("_numbers")
        return (self.data / (f"{file}.npz" if file == "mnist" else f"{file}.csv.gz")).exists()


def _by_fold(source: Source) -> Source:
    kept = functools.cache(source)
    return lambda run: kept(run % 5)


@functools.lru_cache(maxsize=6)
def _made(name: str, seed: int) -> Table:
    return MADE[name](seed)


@functools.cache
def _read(data: Path, name: str, most: int | None) -> Table:
    return large(data, [name], most=most)[0]


def _numbers(table: Table) -> Table:
    """The columns of numbers alone, as an array without a schema."""
    kept = np.flatnonzero(table.low < 0)
    return replace(
        table,
        name=f"{table.name}_numbers",
        title=f"{table.title}, numbers only",
        X=table.X[:, kept],
        X_test=table.X_test[:, kept],
        low=table.low[kept],
        bounds=tuple(np.asarray(end)[kept] for end in table.bounds),
        schema=None,
        raw={},
        raw_test={},
    )


def cases(section: str, shelf: Shelf, names: list[str] | None = None) -> list[Case]:
    """The cases of a section, of those tables that are asked for and can be had."""

    def wanted(name: str) -> bool:
        return (names is None or name in names) and shelf.has(name)

    if section == "constant":
        return [case for case in constant(dev=shelf.dev) if names is None or case.name in names]
    return _SECTIONS[section](shelf, wanted)


def _tables(shelf: Shelf, wanted: Callable[[str], bool]) -> list[Case]:
    known = {"epsilons": EPSILONS}
    return [Case(section="tables", name=n, table=shelf(n), **known) for n in FLOORS if wanted(n)]  # type: ignore[arg-type]


def _small(shelf: Shelf, wanted: Callable[[str], bool]) -> list[Case]:
    names = [*(f"{name}_small" for name in (*CUT, "mnist")), "digits_small", "breast_cancer", "diabetes", "spam"]
    return [Case(section="small", name=n, table=shelf(n)) for n in names if wanted(n)]


def _probabilities(shelf: Shelf, wanted: Callable[[str], bool]) -> list[Case]:
    common: dict[str, Any] = {"section": "probabilities", "probabilities": True}
    names = ["adult", "bank", "weak", "rare", "adult_small", "kddcup99_10pct_small", "digits_small", "breast_cancer"]
    names.append("spam")
    found = [Case(name=n, table=shelf(n), **common) for n in names if wanted(n)]
    balance = {"fit": _balanced, "setting": "balanced", "balanced": True}
    return found + [Case(name=n, table=shelf(n), **common, **balance) for n in ("adult", "rare") if wanted(n)]


def _balanced(table: Table, epsilon: float, neighbours: Neighbours) -> Any:
    return table.model(epsilon, neighbours).set_params(class_weight="balanced").fit(table.X, table.y)


def _classes(shelf: Shelf, wanted: Callable[[str], bool]) -> list[Case]:
    common: dict[str, Any] = {"section": "classes", "probabilities": True}
    shares = {"letters": 1.0, "hundred": 0.6, "digits": 1.0}
    return [Case(name=n, table=shelf(n), share=share, **common) for n, share in shares.items() if wanted(n)]


def _bounds(shelf: Shelf, wanted: Callable[[str], bool]) -> list[Case]:
    found = []
    for name in ("adult_numbers", "california_housing_numbers", "plain_labels", "plain_numbers"):
        if not wanted(name):
            continue
        settings: dict[str, Any] = {"tight": declared}
        settings |= {f"bounds {k:,}×": functools.partial(_loose, bounds=k) for k in FACTORS}
        if name in ("california_housing_numbers", "plain_numbers"):
            settings |= {f"target {k:,}×": functools.partial(_loose, target=k) for k in FACTORS}
            settings["both 1,000×"] = functools.partial(_loose, bounds=1_000, target=1_000)
        settings["learnt"] = undeclared
        found += [_careless(name, shelf(name), setting, fit) for setting, fit in settings.items()]
    path = {f"table, {words}": functools.partial(_table_path, factor=k) for words, k in _PATHS.items()}
    if wanted("adult"):
        found += [_careless("adult", shelf("adult"), setting, fit) for setting, fit in path.items()]
    if wanted("spam"):  # whose honest ranges are wide
        ways = {"table, declared": path["table, tight"], "table, learnt": path["table, learnt"]}
        ways |= {"array, declared": declared, "array, learnt": undeclared}
        found += [_careless("spam", shelf("spam"), setting, fit) for setting, fit in ways.items()]
    return found


def _careless(name: str, table: Source, setting: str, fit: Any) -> Case:
    return Case(section="bounds", name=name, table=table, setting=setting, fit=fit, relations=("replace_one",))


def _loose(table: Table, epsilon: float, neighbours: Neighbours, *, bounds: float = 1, target: float = 1) -> Any:
    facts: dict[str, Any] = {"bounds": wider(table.bounds, bounds)}
    if not table.classes:
        facts["target_range"] = tuple(float(end) for end in wider((-1.0, 1.0), target))
    return table.model(epsilon, neighbours).set_params(**facts).fit(table.X, table.y)


def wider(ends: tuple[Any, Any], factor: float) -> tuple[Any, Any]:
    """Ranges so many times as wide: upwards where they begin at 0 or above, as for an amount, else both ways."""
    low, high = (np.asarray(end, dtype=np.float64) for end in ends)
    half, middle = (high - low) / 2, (low + high) / 2
    up = low >= 0
    wide = np.where(up, low, middle - factor * half), np.where(up, low + factor * 2 * half, middle + factor * half)
    return wide if factor != 1 else (low, high)


def undeclared(table: Table, epsilon: float, neighbours: Neighbours) -> Any:
    """The same estimator without a range or list of classes."""
    facts = {"bounds": None, "row_norm": None, "classes" if table.classes else "target_range": None}
    return table.model(epsilon, neighbours).set_params(**facts).fit(table.X, table.y)


def _table_path(table: Table, epsilon: float, neighbours: Neighbours, *, factor: float | None) -> Any:
    """As `privet fit`: the table with its schema, ranges of numbers as they are, too wide, or left out."""
    schema = table.schema
    assert schema is not None
    if factor is None:
        schema = without_ranges(schema)
    elif factor != 1:
        columns: dict[str, Any] = {}
        for name, column in schema.columns.items():
            if isinstance(column, Number):
                low, high = (float(end) for end in wider((column.low, column.high), factor))
                column = replace(column, low=low, high=high)
            columns[name] = column
        schema = replace(schema, columns=columns)
    budget = Budget(epsilon=epsilon, delta=table.delta)
    return fit_table(table.raw, schema, budget=budget, neighbours=neighbours)


def _nothing_known(table: Table, epsilon: float, neighbours: Neighbours) -> Any:
    """As `privet fit` with names of columns alone: ranges and code books are learnt, the target's labels are known."""
    schema = table.schema
    assert schema is not None
    columns = {n: Category() if isinstance(c, Category) else Number() for n, c in schema.columns.items()}
    budget = Budget(epsilon=epsilon, delta=table.delta)
    return fit_table(table.raw, replace(schema, columns=columns), budget=budget, neighbours=neighbours)


def _undeclared(shelf: Shelf, wanted: Callable[[str], bool]) -> list[Case]:
    found = []
    for name in ("diabetes", "breast_cancer", "penguins"):
        if not wanted(name):
            continue
        ways: dict[str, Any] = {"learnt": undeclared, "declared": declared}
        if name == "penguins":
            ways = {"learnt": _nothing_known, "declared": functools.partial(_table_path, factor=1)}
        source = shelf(name)
        tables = {"": source} | {f", {n:,} rows": resampled(source, n) for n in BOOTSTRAPS}
        for (size, table), (way, fit) in ((t, w) for t in tables.items() for w in ways.items()):
            share = 1.0 if way == "learnt" else 0.2
            common: dict[str, Any] = {"section": "undeclared", "relations": ("replace_one",), "share": share}
            found.append(Case(name=name, table=table, fit=fit, setting=way + size, **common))
    return found


_SECTIONS: dict[str, Callable[[Shelf, Callable[[str], bool]], list[Case]]] = {
    "tables": _tables,
    "small": _small,
    "probabilities": _probabilities,
    "bounds": _bounds,
    "undeclared": _undeclared,
    "classes": _classes,
}
RUNS = {"probabilities": 5, "bounds": 5, "undeclared": 200, "classes": 5, "constant": 50}
