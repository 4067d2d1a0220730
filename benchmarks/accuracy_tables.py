"""The tables that accuracy is measured on, encoded once by public facts alone."""

from __future__ import annotations

import csv
import functools
import gzip
import json
import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

from privet.estimators import LinearRegression, LogisticRegression
from privet.preprocessing import Category, Number, Schema, TableEncoder, parse_schema
from privet.preprocessing.encoding import number_ends
from privet.privacy import Neighbours

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"  # beside the repository
EPSILONS = (0.1, 1.0, 8.0)
DELTA = 1e-5
SMALL = 3_000  # rows of a small table cut from a large one
CUT = ("adult", "bank", "kddcup99_10pct", "california_housing")  # those it is cut from

SLOW = ("kddcup99_10pct", "mnist")  # to fit

# The floors that we hold ourselves to, under zero_out at 0.1 / 1 / 8, and its non-private ceiling; accuracies, or R².
FLOORS = {
    "adult": ((0.842, 0.847, 0.847), 0.847),
    "bank": ((0.897, 0.906, 0.906), 0.905),
    "kddcup99_10pct": ((0.989, 0.995, 0.996), 0.996),
    "mnist": ((0.870, 0.912, 0.916), 0.923),
    "california_housing": ((0.596, 0.647, 0.669), 0.670),
    "diamonds": ((0.961, 0.968, 0.972), 0.970),
}
TITLES = {
    "adult": "Adult",
    "bank": "Bank",
    "kddcup99_10pct": "KDD99 10 %",
    "california_housing": "California",
    "diamonds": "Diamonds",
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Table:
    """One table, split and ready to fit.

    `X` holds features in their own units, with the public ranges `bounds`; of a table with a schema, a `TableEncoder`
    makes them. `raw` is the training table as read, for what encodes it anew.
    """

    name: str
    title: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: int  # 0: the target is a number in [-1, 1]
    low: np.ndarray  # of a feature scaled to at most 1: -1 or 0; public
    bounds: tuple[Any, Any]
    schema: Schema | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    raw_test: dict[str, Any] = field(default_factory=dict)

    @property
    def delta(self) -> float:
        """1e-5, or the next power of ten that is below one over the number of rows: privet refuses others."""
        return min(DELTA, 10.0 ** math.ceil(-1 - math.log10(len(self.X))))

    @property
    def floors(self) -> tuple[float, ...] | None:
        """The floors of this table, if it has any."""
        return FLOORS[self.name][0] if self.name in FLOORS else None

    def model(self, epsilon: float, neighbours: Neighbours, *, delta: float | None = None) -> Any:
        """The estimator at its defaults; only public facts are passed."""
        rows: dict[str, Any] = {"bounds": self.bounds}
        if self.schema is not None:  # as `fit_table` does
            rows["row_norm"] = self.norm
        rows |= {"epsilon": epsilon, "delta": delta or self.delta, "neighbours": neighbours}
        if self.classes:
            return LogisticRegression(classes=list(range(self.classes)), **rows)
        return LinearRegression(target_range=(-1.0, 1.0), **rows)

    def features(self, X: np.ndarray) -> np.ndarray:
        """The same features for others: each in [-1, 1] or [0, 1], without the constant."""
        low, high = (np.asarray(end, dtype=np.float64) for end in self.bounds)
        middle = np.where(self.low == 0, low, low / 2 + high / 2)
        return np.where(
            np.isnan(X), 0.0, (np.clip(X, low, high) - middle) / np.where(high > middle, high - middle, 1.0)
        )

    @property
    def norm(self) -> float:
        """A public bound on the norm of a row of `features`."""
        return math.sqrt(len(self.schema.columns) if self.schema is not None else self.X.shape[1])

    def first(self, rows: int) -> Table:
        """A small table: so many of the training rows, chosen once and for all."""
        kept = np.random.default_rng(20240101).permutation(len(self.X))[:rows]
        small = replace(self.of(kept), name=f"{self.name}_small", title=f"{self.title}, {rows:,} rows")
        return replace(small, raw={}, raw_test={})

    def fold(self, place: int) -> Table:
        """Four fifths of the training rows, and the other fifth to score on: no test row is seen."""
        order = np.random.default_rng(20240102).permutation(len(self.X))
        held = np.zeros(len(order), dtype=bool)
        held[order[place % 5 :: 5]] = True
        raw_test = {name: cells[held] for name, cells in self.raw.items()}
        return replace(self.of(~held), X_test=self.X[held], y_test=self.y[held], raw_test=raw_test)

    def of(self, rows: np.ndarray) -> Table:
        """The table with these of its training rows, by number (then with repetitions, if any) or by mask."""
        return replace(self, X=self.X[rows], y=self.y[rows], raw={n: cells[rows] for n, cells in self.raw.items()})


def large(data: Path = SHARED, names: Sequence[str] | None = None, *, most: int | None = None) -> list[Table]:
    """The tables that have floors; without the shared data, what scikit-learn ships. Of a file, at most `most` rows."""
    makers: dict[str, Callable[[], Table]] = {}
    if (data / "schemas.toml").exists():
        makers = {name: functools.partial(_from_csv, data, name, most) for name in TITLES}
        makers["mnist"] = functools.partial(_mnist, data)
    else:
        makers = {"digits": digits, "breast_cancer": breast_cancer, "wine": wine, "diabetes": diabetes}
    order = [n for n in (*FLOORS, *makers) if n in makers and (names is None or n in names)]
    return [makers[name]() for name in dict.fromkeys(order)]


def small(tables: Sequence[Table]) -> list[Table]:
    """Weak spots to watch: a few thousand rows or less, up to some sixty columns."""
    by_name = {table.name: table for table in tables}
    cut = [by_name[n].first(SMALL) for n in CUT if n in by_name]
    pooled = [pooled_mnist(by_name["mnist"])] if "mnist" in by_name else []
    shipped = [t for t in (digits(odd=True), breast_cancer(), diabetes()) if t.name not in by_name]
    return [*cut, *pooled, *shipped]


def _from_csv(data: Path, name: str, most: int | None) -> Table:
    facts = tomllib.loads((data / "schemas.toml").read_text(encoding="utf-8"))[name]
    if name == "kddcup99_10pct":
        facts["target"] |= {"values": ["normal"], "other": "attack"}  # as the note there says
    schema = parse_schema(json.dumps(facts), form="json")
    assert schema.target is not None
    with gzip.open(data / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        names = next(lines)
        columns = {n: np.array(cells, dtype=object) for n, cells in zip(names, zip(*lines, strict=True), strict=True)}
    if most is not None and len(columns["split"]) > most:
        kept = np.random.default_rng(20240103).permutation(len(columns["split"]))[:most]
        columns = {n: cells[kept] for n, cells in columns.items()}
    train = columns.pop("split") == "train"
    encoder = TableEncoder(schema)
    parts = [{n: cells[rows] for n, cells in columns.items()} for rows in (train, ~train)]
    (X, y), (X_test, y_test) = ((encoder.features(p), _target(encoder, p)) for p in parts)
    low: list[float] = []
    for column in schema.columns.values():
        low += [0.0] * len(column.values or ()) if isinstance(column, Category) else [-1.0]
    keep_raw = name in ("adult", "bank")
    return Table(
        name=name,
        title=TITLES[name],
        X=X,
        y=y,
        X_test=X_test,
        y_test=y_test,
        classes=len(schema.target.classes) if schema.target.kind == "label" else 0,
        low=np.array(low),
        bounds=encoder.bounds,
        schema=schema,
        raw=parts[0] if keep_raw else {},
        raw_test=parts[1] if keep_raw else {},
    )


def _target(encoder: TableEncoder, table: dict[str, Any]) -> np.ndarray:
    """Class indices, or numbers scaled to [-1, 1]."""
    target, y = encoder.schema.target, encoder.encode_target(table)
    if target.kind == "label":
        return y
    low, high = number_ends(target)
    return (y - (low + high) / 2) / ((high - low) / 2)


def without_ranges(schema: Schema) -> Schema:
    """The schema with the range of every number left to be learnt; code books and the logarithms stay public."""
    columns = {n: Number(log=c.log) if isinstance(c, Number) else c for n, c in schema.columns.items()}
    return replace(schema, columns=columns)


def _mnist(folder: Path) -> Table:
    """60,000 handwritten digits of 784 pixels."""
    with np.load(folder / "mnist.npz") as data:
        images = [data[f"X_{part}"].reshape(len(data[f"y_{part}"]), -1) for part in ("train", "test")]
        labels = [data[f"y_{part}"].astype(np.int64) for part in ("train", "test")]
    return Table(
        name="mnist",
        title="MNIST, multinomial",
        X=images[0].astype(np.float64),
        y=labels[0],
        X_test=images[1].astype(np.float64),
        y_test=labels[1],
        classes=10,
        low=np.zeros(784),
        bounds=(0.0, 255.0),
    )


def pooled_mnist(whole: Table) -> Table:
    """Odd or even, from 49 means of 16 pixels each: few rows, and as many columns as the weak spot has."""

    def means(X: np.ndarray) -> np.ndarray:
        return np.asarray(X.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(len(X), 49))

    part = whole.first(SMALL)
    return replace(
        part,
        title=f"MNIST odd or even, 49 columns, {SMALL:,} rows",
        X=means(part.X),
        y=part.y % 2,
        X_test=means(part.X_test),
        y_test=part.y_test % 2,
        classes=2,
        low=np.zeros(49),
    )


def _shipped(name: str, title: str, X: Any, y: Any, low: Any, high: Any, classes: int) -> Table:
    """A table of scikit-learn's, a quarter of it kept for the test; ranges as its description or the subject has it."""
    order = np.random.default_rng(20240101).permutation(len(y))
    train, test = order[: 3 * len(y) // 4], order[3 * len(y) // 4 :]
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), X.shape[1]) for end in (low, high))
    return Table(
        name=name,
        title=title,
        X=np.asarray(X, dtype=np.float64)[train],
        y=np.asarray(y)[train],
        X_test=np.asarray(X, dtype=np.float64)[test],
        y_test=np.asarray(y)[test],
        classes=classes,
        low=np.where(low == 0, 0.0, -1.0),
        bounds=(low, high),
    )


def digits(odd: bool = False) -> Table:
    """scikit-learn's digits: 64 pixels from 0 to 16."""
    X, y = load_digits(return_X_y=True)
    if odd:
        return _shipped("digits_small", "digits, odd or even", X, y % 2, 0, 16, 2)
    return _shipped("digits", "digits, multinomial", X, y, 0, 16, 10)


def breast_cancer() -> Table:
    """scikit-learn's breast cancer table; ranges are those its description prints, rounded up."""
    mean = (30, 40, 190, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1)
    error = (3, 5, 22, 550, 0.04, 0.15, 0.4, 0.06, 0.08, 0.03)
    worst = (40, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.21)
    X, y = load_breast_cancer(return_X_y=True)
    return _shipped("breast_cancer", "breast cancer", X, y, 0, (*mean, *error, *worst), 2)


def wine() -> Table:
    """scikit-learn's wine table; ranges are those its description prints, rounded."""
    low = (11, 0.7, 1.3, 10, 70, 0.9, 0.3, 0.1, 0.4, 1, 0.4, 1.2, 270)
    high = (15, 6, 3.3, 30, 165, 4, 5.1, 0.7, 3.6, 13, 1.8, 4, 1700)
    X, y = load_wine(return_X_y=True)
    return _shipped("wine", "wine, multinomial", X, y, low, high, 3)


def diabetes() -> Table:
    """scikit-learn's diabetes table; ranges are what a physician would write down, the target's is documented."""
    low = (18, 1, 15, 60, 80, 40, 20, 1, 3, 50)
    high = (90, 2, 45, 140, 320, 250, 100, 10, 6.5, 130)
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return _shipped("diabetes", "diabetes", X, (y - 185.5) / 160.5, low, high, 0)
