"""What a fit costs in time and memory, and what is left of the noise at epsilon = 1e6.

`python accuracy_costs.py TABLE.npz` measures one fit's memory in a process of its own and prints JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_tables import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression as PlainLinear
from sklearn.linear_model import LogisticRegression as PlainLogistic

from privet.estimators import LinearRegression, LogisticRegression

Results = dict[str, Any]
HUGE = 1e6
STATUS = Path("/proc/self/status")


def times(table: Table, *, rounds: int) -> Results:
    """Seconds of one fit, and of scikit-learn's LogisticRegression() on scaled rows, in turn; best of `rounds`."""
    ours, theirs, scaled = [], [], table.features(table.X)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for _ in range(rounds):
        start = time.perf_counter()
        table.model(1.0, "replace_one").fit(table.X, table.y)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        PlainLogistic().fit(scaled, table.y)
        theirs.append(time.perf_counter() - start)
    return {"privet": ours, "scikit-learn": theirs, "ratio": min(ours) / min(theirs)}


def memory(table: Table) -> Results:
    """Peak memory of one fit beyond what the process held before it, by the size of the float64 matrix."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        facts = {
            "classes": table.classes,
            "bounds": table.bounds and [np.asarray(end).tolist() for end in table.bounds],
        }
        np.savez(path, X=table.X, y=table.y, facts=np.array(json.dumps(facts)))
        found = subprocess.run(
            [sys.executable, __file__, str(path)], capture_output=True, text=True, check=True, timeout=600
        )
    return dict(json.loads(found.stdout))


def _memory_here(path: Path) -> Results:
    with np.load(path) as data:
        X, y, facts = data["X"], data["y"], json.loads(str(data["facts"]))
    table = Table(
        name="", title="", X=X, y=y, X_test=X, y_test=y, low=X[0], classes=facts["classes"], bounds=facts["bounds"]
    )
    few = slice(0, 1000)
    table.model(1.0, "replace_one", delta=1e-6).fit(X[few], y[few])  # what is imported or made once does not count
    before = _now()
    model = table.model(1.0, "replace_one").fit(X, y)
    extra = _peak() - before
    return {"input": X.nbytes, "extra": extra, "ratio": extra / X.nbytes, "steps": int(model.n_iter_)}


def _now() -> int:
    """Bytes resident now; from here on the peak is counted afresh, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        return _status("VmRSS")
    except OSError:
        return _peak()


def _peak() -> int:
    if STATUS.exists():
        return _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status(name: str) -> int:
    line = next(line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith(name + ":"))
    return int(line.split()[1]) * 1024


def limits(tables: Sequence[Table]) -> list[Results]:
    """How far coefficients at epsilon = 1e6 are from those without noise: max |difference| / max |coefficient|.

    The reference is scikit-learn's unpenalised solution, solved to 1e-10 by Newton steps. Where code books make the
    columns dependent, coefficients are not unique; there, only the columns of numbers and the constant are used, and
    the whole table is compared in its predictions.
    """
    found = [_synthetic(kind, d) for kind in ("binary", "multinomial", "linear") for d in (3, 10)]
    for table in tables:
        if table.schema is None:
            continue
        numbers, scaled, scaled_test = (
            np.flatnonzero(table.low < 0),
            table.features(table.X),
            table.features(table.X_test),
        )
        kept = scaled[:, numbers]
        facts = {"bounds": None, "row_norm": np.sqrt(len(numbers))}  # no row is shortened
        ours = table.model(HUGE, "replace_one").set_params(**facts).fit(kept, table.y)
        plain = _plain(table.classes, constant=True).fit(kept, table.y)
        row = {"name": f"{table.title}, numbers only", "coefficients": _distance(ours, plain)}
        if len(numbers) < table.X.shape[1]:
            ours = table.model(HUGE, "replace_one").fit(table.X, table.y)
            plain = _plain(table.classes, constant=True, ridge=1e-9 * len(table.X)).fit(scaled, table.y)
            row["predictions"] = float(np.max(np.abs(_says(ours, table.X_test) - _says(plain, scaled_test))))
        found.append(row)
    return found


def _synthetic(kind: str, d: int, rows: int = 20_000) -> Results:
    rng = np.random.default_rng(d)
    X = rng.uniform(-1, 1, (rows, d))
    scores = X @ rng.standard_normal((d, 3)) + rng.standard_normal(3)
    common: dict[str, Any] = {"epsilon": HUGE, "delta": 1e-6, "bounds": (-1, 1)}
    if kind == "linear":
        y = scores[:, 0] + 0.3 * rng.standard_normal(rows)
        ours: Any = LinearRegression(target_range=(-20, 20), **common)
        classes = 0
    else:
        classes = 2 if kind == "binary" else 3
        y = np.argmax(scores[:, :classes] + rng.gumbel(size=(rows, classes)), axis=1)
        ours = LogisticRegression(classes=list(range(classes)), **common)
    plain = _plain(classes, constant=True).fit(X, y)
    return {"name": f"synthetic, {kind}, d = {d}", "coefficients": _distance(ours.fit(X, y), plain)}


def _plain(classes: int, *, constant: bool, ridge: float = 0.0) -> Any:
    if not classes:
        return PlainLinear(fit_intercept=constant)
    return PlainLogistic(
        C=1 / ridge if ridge else np.inf, solver="newton-cholesky", tol=1e-10, max_iter=200, fit_intercept=constant
    )


def _distance(ours: Any, plain: Any) -> float:
    one, other = (_coefficients(model) for model in (ours, plain))
    return float(np.max(np.abs(one - other)) / np.max(np.abs(other)))


def _coefficients(model: Any) -> np.ndarray:
    """With the intercept; for several classes less their mean, as only differences matter."""
    found = np.column_stack([np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_) * np.ones(1)])
    return np.asarray(found - found.mean(axis=0) if len(found) > 1 else found)


def _says(model: Any, X: np.ndarray) -> np.ndarray:
    if isinstance(model, PlainLinear | LinearRegression):
        return np.clip(model.predict(X), -1.0, 1.0)
    return np.asarray(model.predict_proba(X))


if __name__ == "__main__":
    print(json.dumps(_memory_here(Path(sys.argv[1]))))
