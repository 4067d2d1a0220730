"""What tails="bend" buys over "clip": made-up columns with long tails, and folds of training rows of shared tables.

    python benchmarks/tails.py made --task numbers --rows 10000 --runs 6
    python benchmarks/tails.py shared --names california_housing --rows 3000 13000 --runs 12

Nothing is declared: ranges, and with "bend" which columns have a long tail, are learnt in the fit. Of
shared tables numbers are as they are, without the schema's logarithms, and no test row is read. Prints a table.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_tables import SHARED, large
from scipy.special import expit
from scipy.stats import rankdata

from privet.errors import SmallEffectiveSample
from privet.estimators import LinearRegression, LogisticRegression
from privet.preprocessing import Number, TableEncoder

DELTA, TEST = 1e-5, 10_000
LONG = ("lognormal 1", "lognormal 1.5", "lognormal 2", "pareto 1.5", "counts", "spikes", "student 1.5")
MIXED = ("lognormal 1.5", "pareto 1.5", "counts", "spikes", "student 1.5", "normal", "uniform", "exponential")
LIGHT = ("normal",) * 4 + ("uniform",) * 2 + ("exponential",) * 2
KINDS = {kind: (kind,) * 4 + ("normal",) * 4 for kind in LONG}
KINDS |= {"mixed": MIXED, "light": LIGHT, "about 0": ("centred",) * 8}
TRUTHS = ("linear", "log", "rank")
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def column(kind: str, rng: np.random.Generator, rows: int) -> np.ndarray:
    """Made-up values of a kind."""
    name, _, shape = kind.partition(" ")
    if name == "lognormal":
        return 100 * np.exp(float(shape) * rng.standard_normal(rows))
    if name == "pareto":
        return 10 * (rng.pareto(float(shape), rows) + 1)
    if name == "student":
        return 20 * rng.standard_t(float(shape), rows)
    if name == "counts":
        return rng.negative_binomial(0.3, 0.05, rows).astype(float)
    if name == "spikes":  # as a capital gain has: mostly 0
        return np.where(rng.random(rows) < 0.92, 0.0, np.minimum(np.exp(rng.normal(8.7, 0.9, rows)), 99_999.0))
    if name == "centred":
        return 1.1 * rng.standard_normal(rows)  # whose octaves look long
    light = {"normal": rng.normal(3, 2, rows), "uniform": rng.uniform(0, 10, rows)}
    return light[name] if name in light else rng.exponential(50, rows)


def made(table: str, truth: str, rows: int, seed: int, *, classes: bool) -> Split:
    """A table of eight columns whose target is linear in values, in their logarithms, or in their ranks."""
    rng = np.random.default_rng([list(KINDS).index(table), TRUTHS.index(truth), seed])
    X = np.column_stack([column(kind, rng, rows + TEST) for kind in KINDS[table]])
    shapes = {
        "linear": lambda x: np.clip(x, *np.quantile(x, [0.001, 0.999])),
        "log": lambda x: np.sign(x) * np.log1p(2 * np.abs(x) / np.median(np.abs(x[x != 0]))),
        "rank": rankdata,
    }
    Z = np.column_stack([shapes[truth](x) for x in X.T])
    score = (Z - Z.mean(axis=0)) / Z.std(axis=0) @ (rng.choice([-1, 1], 8) * rng.uniform(0.5, 1.5, 8))
    score /= score.std()
    y = rng.random(len(X)) < expit(2.5 * score) if classes else score + 0.7 * rng.standard_normal(len(X))
    y = y.astype(np.int64) if classes else y
    return X[:rows], y[:rows], X[rows:], y[rows:]


def shared(name: str, rows: int, runs: int, data: Path = SHARED) -> Iterator[Split]:
    """Folds of the training rows, numbers in their own units."""
    (table,) = large(data, [name])
    schema = table.schema
    low = [bool(column.log) for column in schema.columns.values() if isinstance(column, Number)]
    places = np.cumsum([0] + [1 if isinstance(c, Number) else len(c.values or ()) for c in schema.columns.values()])
    numbers = [p for p, c in zip(places, schema.columns.values(), strict=False) if isinstance(c, Number)]
    X = table.X.copy()
    for place, logged in zip(numbers, low, strict=True):
        X[:, place] = np.expm1(X[:, place]) if logged else X[:, place]
    assert X.shape[1] == len(TableEncoder(schema).bounds[0])
    for run in range(runs):
        order = np.random.default_rng([9, run]).permutation(len(X))
        train, test = order[:rows], order[rows : rows + TEST]
        yield X[train], table.y[train], X[test], table.y[test]


def compared(splits: Sequence[Split], epsilon: float, *, classes: bool) -> str:
    """Mean scores by clipping and by bending, the difference with its standard error, and columns with a tail."""
    found: dict[str, list[float]] = {"clip": [], "bend": []}
    bent = []
    for X, y, X_test, y_test in splits:
        for tails, scores in found.items():
            known: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "tails": tails}
            model = LogisticRegression(classes=[0, 1], **known) if classes else LinearRegression(**known)
            scores.append(model.fit(X, y).score(X_test, y_test))
            if tails == "bend":
                bent.append(sum(each is not None for each in model.transforms_))
    clip, bend = (np.array(scores) for scores in found.values())
    error = (bend - clip).std() / np.sqrt(max(len(clip) - 1, 1))
    return (
        f"{clip.mean():.3f} | {bend.mean():.3f} | {(bend - clip).mean():+.3f} ± {error:.3f} "
        f"| {np.mean(bent):.1f} of {splits[0][0].shape[1]}"
    )


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["made", "shared"])
    parser.add_argument("--names", nargs="+", help="which tables")
    parser.add_argument("--truths", nargs="+", default=list(TRUTHS))
    parser.add_argument("--task", choices=["numbers", "classes"], default="numbers", help="of made-up tables")
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 8.0])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--data", type=Path, default=SHARED)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SmallEffectiveSample)
    print("| table | truth | rows | ε | clip | bend | difference | bent |\n|---|---|---|---|---|---|---|---|")
    of_made = asked.what == "made"
    for name in asked.names or (list(KINDS) if of_made else ["california_housing"]):
        for truth in asked.truths if of_made else ["as it is"]:
            for rows in asked.rows:
                classes = asked.task == "classes" if of_made else name in ("adult", "bank", "kddcup99_10pct")
                if of_made:
                    splits = [made(name, truth, rows, seed, classes=classes) for seed in range(asked.runs)]
                else:
                    splits = list(shared(name, rows, asked.runs, asked.data))
                for epsilon in asked.epsilons:
                    line = compared(splits, epsilon, classes=classes)
                    print(f"| {name} | {truth} | {rows:,} | {epsilon:g} | {line} |", flush=True)


if __name__ == "__main__":
    main()
