"""Tables made up for weak spots that no shared table has; seed 0 is reported on, others are for choosing settings.

Everything but the noise of a fit follows from the seed: two benchmarks see the same rows. What scikit-learn reaches
without privacy is said with each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from accuracy_tables import Table
from scipy.special import expit

from privet.preprocessing import Category, Number, Schema, Target

ISLANDS, SEXES, SPECIES = ("Biscoe", "Dream", "Torgersen"), ("female", "male"), ("Adelie", "Chinstrap", "Gentoo")
TRAITS = {"bill_length": (30, 60), "bill_depth": (12, 23), "flipper": (170, 235), "mass": (2500, 6500)}


def weak(seed: int = 0) -> Table:
    """24,000 rows of 33 columns, little signal, 22 % positives: amounts with long tails, grades, flags; 79.8 %."""
    rng, rows = np.random.default_rng([33, seed]), 30_000
    factors = rng.standard_normal((rows, 5))
    seen = factors @ rng.standard_normal((5, 22)) * 0.6 + rng.standard_normal((rows, 22))
    amounts = np.exp(0.9 * seen[:, :12])
    grades = np.clip(np.round(seen[:, 12:] * 2), -6, 6)
    flags = (rng.random((rows, 11)) < rng.uniform(0.05, 0.5, 11)).astype(float)
    X = np.hstack([np.minimum(amounts, 60.0), grades, flags])
    scores = 0.55 * factors[:, 0] + seen[:, 12:] @ rng.normal(0, 0.18, 10) + flags @ rng.normal(0, 0.35, 11)
    y = _labels(scores, 0.22, rng)
    low = np.repeat([0.0, -6.0, 0.0], [12, 10, 11])
    high = np.repeat([60.0, 6.0, 1.0], [12, 10, 11])
    return _made("weak", "made up, weak signal, 33 columns", X, y, 24_000, (low, high), 2)


def rare(seed: int = 0) -> Table:
    """50,000 rows of 20 columns with 0.5 % positives, and as many to test on; log-loss 0.027, guess 0.034."""
    rng, rows = np.random.default_rng([5, seed]), 100_000
    X = np.clip(_correlated(rng, rows, 20, 0.5), -4, 4)
    y = _labels(X @ rng.normal(0, 0.35, 20), 0.005, rng)
    order = np.argsort(y, kind="stable")
    order = np.concatenate([order[::2], order[1::2]])  # the rate is the same in both halves
    X, y = X[order], y[order]
    return _made("rare", "made up, 0.5 % positives", X, y, 50_000, (-4.0, 4.0), 2)


def letters(seed: int = 0) -> Table:
    """26 classes from 16 whole numbers between 0 and 15, correlated, as in letter recognition; 76.8 %."""
    return _whole_numbers("letters", seed, classes=26, columns=16, rows=20_000, apart=0.85)


def hundred(seed: int = 0) -> Table:
    """100 classes from 32 whole numbers between 0 and 15, correlated; 71.6 %."""
    return _whole_numbers("hundred", seed, classes=100, columns=32, rows=30_000, apart=0.7)


def spam(seed: int = 0) -> Table:
    """3,700 rows of 57 columns, mostly 0, with long tails; honest ranges are wide; 72.8 %, of logarithms 77.4 %."""
    rng, rows = np.random.default_rng([57, seed]), 5_700
    topics = rng.standard_normal((rows, 6))
    leaning = topics @ rng.standard_normal((6, 54)) * 0.5
    used = rng.random((rows, 54)) < expit(leaning - rng.uniform(0.5, 3.0, 54))
    words = np.where(used, np.exp(rng.normal(-0.7, 1.0, (rows, 54)) + 0.3 * leaning), 0.0)
    told = used @ rng.standard_normal(54) + topics[:, 0]
    y = _labels(5 * told / told.std(), 0.39, rng)
    runs = np.exp(rng.normal([1.0, 2.5, 4.5], [0.7, 1.1, 1.4], (rows, 3)) + 0.8 * topics[:, :1])
    X, ends = np.hstack([words, runs]), [100.0] * 54 + [2_000.0, 10_000.0, 20_000.0]
    X = np.round(np.minimum(X, ends), 3)
    names = [f"x{place}" for place in range(57)]
    schema = Schema(
        columns={n: Number(low=0, high=high) for n, high in zip(names, ends, strict=True)},
        target=Target(column="y", kind="label", values=("0", "1")),
    )
    cells = {n: X[:, place] for place, n in enumerate(names)} | {"y": y}
    made = _made("spam", "made up, long tails, 57 columns", X, y, 3_700, (0.0, np.array(ends)), 2)
    raw, raw_test = ({n: c[part] for n, c in cells.items()} for part in (slice(3_700), slice(3_700, None)))
    return replace(made, schema=schema, raw=raw, raw_test=raw_test)


def _whole_numbers(name: str, seed: int, *, classes: int, columns: int, rows: int, apart: float) -> Table:
    rng = np.random.default_rng([classes, seed])
    spectrum = 1 / np.arange(1, columns + 1)  # most of the spread is in a few directions
    turn = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    centres = rng.standard_normal((classes, columns)) * spectrum * apart
    y = rng.integers(classes, size=rows)
    z = (centres[y] + rng.standard_normal((rows, columns)) * spectrum) @ turn
    X = np.clip(np.round(7.5 + 2.3 * z / z.std(axis=0)), 0, 15)
    title = f"made up, {classes} classes, {columns} whole numbers"
    return _made(name, title, X, y, rows * 4 // 5, (0.0, 15.0), classes)


def plain_labels(seed: int = 0) -> Table:
    """20,000 rows of 10 correlated numbers in units of their own, two classes; 80.2 %."""
    rng, rows = np.random.default_rng([10, seed]), 25_000
    z, unit = np.clip(_correlated(rng, rows, 10, 0.5), -4, 4), _UNITS[:10]
    y = _labels(1.1 * z @ rng.standard_normal(10), 0.4, rng)
    return _made("plain_labels", "made up, labels", z * unit, y, 20_000, (-4 * unit, 4 * unit), 2)


def plain_numbers(seed: int = 0) -> Table:
    """20,000 rows of 10 correlated numbers in units of their own; a target that they explain to 89.2 %."""
    rng, rows = np.random.default_rng([11, seed]), 25_000
    z, unit = np.clip(_correlated(rng, rows, 10, 0.5), -4, 4), _UNITS[:10]
    signal = z @ rng.standard_normal(10)
    y = np.clip(signal / signal.std() + 0.35 * rng.standard_normal(rows), -4, 4) / 4
    return _made("plain_numbers", "made up, numbers", z * unit, y, 20_000, (-4 * unit, 4 * unit), 0)


def penguins(seed: int = 0) -> Table:
    """344 birds of three species: four measures, island and sex, a few of them missing; a table with named columns."""
    rng, rows = np.random.default_rng([3, seed]), 344 + 1_000
    species, sex = rng.choice(3, rows, p=(0.44, 0.2, 0.36)), rng.integers(2, size=rows)
    means = np.array([[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3730], [47.5, 15.0, 217, 5080]])
    spread = np.array([2.2, 0.9, 5.5, 330.0])
    bulk = rng.standard_normal((rows, 1))
    shape = 0.5 * bulk + 0.75 * rng.standard_normal((rows, 4)) + (sex[:, None] - 0.5)
    X = np.round(means[species] + spread * shape, 1)
    homes = np.array([[0.3, 0.35, 0.35], [0, 1, 0], [1, 0, 0]])
    island = np.array([rng.choice(3, p=homes[s]) for s in species])
    cells: dict[str, Any] = {n: X[:, i].astype(object) for i, n in enumerate(TRAITS)}
    cells |= {"island": np.array(ISLANDS, dtype=object)[island], "sex": np.array(SEXES, dtype=object)[sex]}
    for column in cells.values():
        column[rng.random(rows) < 0.01] = ""
    cells["species"] = np.array(SPECIES, dtype=object)[species]
    columns: dict[str, Any] = {n: Number(low=low, high=high) for n, (low, high) in TRAITS.items()}
    columns |= {"island": Category(values=ISLANDS), "sex": Category(values=SEXES)}
    schema = Schema(columns=columns, target=Target(column="species", kind="label", values=SPECIES))
    return Table(
        name="penguins",
        title="made up, penguins",
        X=X[:344],
        y=species[:344],
        X_test=X[344:],
        y_test=species[344:],
        classes=3,
        low=np.full(4, -1.0),
        bounds=tuple(np.array([ends[i] for ends in TRAITS.values()], dtype=float) for i in (0, 1)),
        schema=schema,
        raw={n: c[:344] for n, c in cells.items()},
        raw_test={n: c[344:] for n, c in cells.items()},
    )


_UNITS = np.array([1.0, 100.0, 0.01, 20.0, 1.0, 5_000.0, 0.2, 3.0, 1.0, 40.0])
MADE: dict[str, Callable[[int], Table]] = {
    "weak": weak,
    "rare": rare,
    "letters": letters,
    "hundred": hundred,
    "plain_labels": plain_labels,
    "plain_numbers": plain_numbers,
    "penguins": penguins,
    "spam": spam,
}


def _correlated(rng: np.random.Generator, rows: int, columns: int, shared: float) -> np.ndarray:
    """Standard normal columns, each correlated with its neighbours by about `shared`."""
    z = rng.standard_normal((rows, columns))
    for j in range(1, columns):
        z[:, j] = shared * z[:, j - 1] + np.sqrt(1 - shared**2) * z[:, j]
    return z


def _labels(scores: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Labels whose log odds are the scores, shifted so that about `rate` of them are 1."""
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(scores + middle).mean() < rate else (low, middle)
    return (rng.random(len(scores)) < expit(scores + low)).astype(np.int64)


def _made(
    name: str, title: str, X: np.ndarray, y: np.ndarray, train: int, bounds: tuple[Any, Any], classes: int
) -> Table:
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), X.shape[1]) for end in bounds)
    return Table(
        name=name,
        title=title,
        X=X[:train],
        y=y[:train],
        X_test=X[train:],
        y_test=y[train:],
        classes=classes,
        low=np.where(low == 0, 0.0, -1.0),
        bounds=(low, high),
    )
