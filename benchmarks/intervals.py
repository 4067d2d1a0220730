"""Do 95 % intervals for coefficients cover 95 %? Simulated tables with known coefficients, many a regime.

    python benchmarks/intervals.py             a thousand tables a regime, a quarter of an hour
    python benchmarks/intervals.py --quick     forty, to see that it runs

Writes results/intervals.json and results/intervals.md. `make bench-intervals` prepares the environment. Every table is
new, so is the noise; both come from seeds, which invalidates every guarantee and is what makes the page repeatable.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from privet.errors import InvalidParameter
from privet.estimators import HuberRegressor, LinearRegression, LogisticRegression

HERE = Path(__file__).parent
Vector = NDArray[np.float64]
Results = dict[str, Any]
TABLES = 1_000


@dataclass(frozen=True)
class Regime:
    """One row of the page."""

    model: str  # "linear", "huber" or "logistic"
    rows: int
    columns: int
    epsilon: float
    neighbours: str
    twist: str = ""


REGIMES = [
    Regime("linear", 2_000, 3, 1.0, "zero_out"),
    Regime("linear", 5_000, 5, 0.5, "zero_out"),
    Regime("linear", 5_000, 5, 1.0, "replace_one"),
    Regime("linear", 5_000, 5, 8.0, "replace_one"),
    Regime("linear", 20_000, 10, 1.0, "replace_one"),
    Regime("linear", 50_000, 10, 0.5, "replace_one"),
    Regime("linear", 5_000, 5, 1.0, "zero_out", "errors grow with x0"),
    Regime("linear", 5_000, 5, 1.0, "zero_out", "skewed errors"),
    Regime("linear", 20_000, 5, 1.0, "zero_out", "correlated columns"),
    Regime("linear", 15_000, 4, 1.0, "replace_one", "sizes"),
    Regime("linear", 15_000, 10, 1.0, "replace_one", "sizes"),
    Regime("linear", 20_000, 5, 1.0, "zero_out", "columns nearly equal"),
    Regime("huber", 5_000, 5, 1.0, "zero_out", "heavy tails"),
    Regime("logistic", 15_000, 4, 1.0, "replace_one", "sizes"),
    Regime("logistic", 2_000, 3, 8.0, "zero_out"),
    Regime("logistic", 5_000, 5, 1.0, "zero_out"),
    Regime("logistic", 5_000, 5, 8.0, "replace_one"),
    Regime("logistic", 20_000, 3, 0.5, "replace_one"),
    Regime("logistic", 20_000, 5, 1.0, "replace_one"),
    Regime("logistic", 50_000, 10, 1.0, "zero_out"),
]
REFUSED = [
    Regime("linear", 300, 5, 0.5, "replace_one"),
    Regime("logistic", 2_000, 5, 1.0, "replace_one"),
    Regime("logistic", 5_000, 10, 1.0, "replace_one"),
    Regime("linear", 20_000, 5, 1.0, "zero_out", "columns equal"),
    Regime("linear", 20_000, 5, 1.0, "zero_out", "bounds too narrow"),
    Regime("logistic", 20_000, 5, 1.0, "zero_out", "bounds too narrow"),
]


def main() -> None:
    """Simulate, then write the two result files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="forty tables a regime")
    parser.add_argument("--tables", type=int, default=TABLES, help="how many a regime")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--figure", type=Path, help="draw forty tables' intervals there, and stop")
    options = parser.parse_args()
    if options.figure is not None:
        figure(options.figure)
        return
    options.output.mkdir(parents=True, exist_ok=True)
    tables = 40 if options.quick else options.tables
    start = time.perf_counter()
    results: Results = {
        "facts": {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "numpy": np.__version__,
            "python": platform.python_version(),
            "tables": tables,
        }
    }
    with threadpool_limits(1):
        for name, regimes, count in (("claimed", REGIMES, tables), ("refused", REFUSED, max(20, tables // 10))):
            results[name] = []
            for place, regime in enumerate(regimes):
                found = simulated(regime, count, seed=1_000 * place + (7 if name == "claimed" else 8))
                results[name].append(asdict(regime) | found)
                print(results[name][-1], flush=True)
    results["facts"]["minutes"] = round((time.perf_counter() - start) / 60, 1)
    (options.output / "intervals.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (options.output / "intervals.md").write_text(page(results), encoding="utf-8")
    print(f"Wrote {options.output / 'intervals.md'}")


def simulated(regime: Regime, tables: int, seed: int) -> Results:
    """Coverage and width over `tables` tables, refusals counted apart."""
    rng = np.random.default_rng(seed)
    hits: list[Vector] = []
    determined: list[NDArray[np.bool_]] = []
    naive: list[NDArray[np.bool_]] = []
    widths: list[Vector] = []
    refusals: list[str] = []
    for number in range(tables):
        X, y, true = table(regime, rng)
        try:
            fitted = estimator(regime, seed * 1_000_003 + number).fit(X, y)
        except InvalidParameter as error:
            refusals.append(f"before reading the data: {str(error).partition(' for ')[0]}")
            break  # on public facts: the same for all tables
        if fitted.refusal_:
            refusals.append(fitted.refusal_.removeprefix("Refused: ").partition(",")[0].partition(". ")[0])
            continue
        found = fitted.confidence_intervals()
        reach = norm.ppf(0.975) * plain_errors(regime, X, y)
        told = ~np.isnan(found.low)
        determined.append(told)
        hits.append(np.where(told, (found.low <= true) & (true <= found.high), np.nan))
        naive.append(np.abs(found.estimate - true) <= reach)
        widths.append((found.high - found.low) / (2 * reach))
    whole = len(refusals) == 1 and not hits
    answer: Results = {
        "refusals": 1.0 if whole else len(refusals) / tables,
        "reason": max(set(refusals), key=refusals.count) if refusals else "",
    }
    if hits:
        cover = np.array(hits)
        each = np.array([column[~np.isnan(column)].mean() for column in cover.T if not np.isnan(column).all()])
        answer |= {
            "coverage": float(np.nanmean(cover)),
            "determined": float(np.mean(determined)),
            "least": float(each.min()),
            "most": float(each.max()),
            "naive": float(np.mean(naive)),
            "width": float(np.nanmedian(widths)),
        }
    return answer


def table(regime: Regime, rng: np.random.Generator) -> tuple[Vector, Vector, Vector]:
    """Rows within ±1, targets, and the coefficients (intercept last) that made them."""
    n, d = regime.rows, regime.columns
    X = rng.uniform(-1, 1, size=(n, d))
    if regime.twist == "correlated columns":
        X[:, 1:] = 0.6 * X[:, :1] + 0.4 * X[:, 1:]
    if regime.twist == "sizes":  # as of houses: rooms, people and households, all alike and with long tails
        sizes = np.exp(rng.normal(0, 0.8, size=(n, 1)) + rng.normal(0, 0.2, size=(n, d)))
        X = np.minimum(sizes / 40, 1.0)
    if regime.twist == "columns equal":
        X[:, 1] = X[:, 0]
    if regime.twist == "columns nearly equal":
        X[:, 1] = np.clip(X[:, 0] + rng.normal(0, 0.02, n), -1, 1)
    if regime.twist == "bounds too narrow":
        X *= 1.3  # a fair share beyond ±1, and the target depends on it
    true = np.append(np.linspace(-1, 1, d), 0.3)
    z = X @ true[:-1] + true[-1]
    if regime.model == "logistic":
        return X, (rng.random(n) < expit(2 * z)).astype(float), 2 * true
    errors = rng.normal(0, 0.4, n)
    if regime.twist == "errors grow with x0":
        errors *= 0.4 + np.abs(X[:, 0]) * 1.2
    if regime.twist == "skewed errors":
        errors = 0.4 * (rng.exponential(size=n) - 1)
    if regime.twist == "heavy tails":
        errors = 0.3 * rng.standard_t(3, size=n)
    return X, z + errors, true


def estimator(regime: Regime, seed: int) -> Any:
    """As a user has it, but for the seed."""
    common: dict[str, Any] = {
        "epsilon": regime.epsilon,
        "delta": 1e-6,
        "neighbours": regime.neighbours,
        "bounds": (-1, 1),
        "inference": 0.5,
        "random_state": seed,
    }
    if regime.model == "logistic":
        return LogisticRegression(classes=[0, 1], **common)
    reach = reach_of(regime)
    kind = LinearRegression if regime.model == "linear" else HuberRegressor
    return kind(target_range=(-reach, reach), **common)


def reach_of(regime: Regime) -> int:
    """A public bound on the target that few exceed."""
    return math.ceil(np.abs(np.linspace(-1, 1, regime.columns)).sum() + 2)


def plain_errors(regime: Regime, X: Vector, y: Vector) -> Vector:
    """Standard errors without privacy: the sandwich at the least-squares or maximum-likelihood solution."""
    rows = np.column_stack([X, np.ones(len(X))])
    theta = np.zeros(rows.shape[1])
    if regime.model != "logistic":
        theta = np.linalg.lstsq(rows, y, rcond=None)[0]
        slope, bend = rows @ theta - y, np.ones(len(y))
        for _ in range(20 if regime.model == "huber" else 0):
            threshold = 0.1 * reach_of(regime)
            bend = (np.abs(rows @ theta - y) < threshold).astype(float)
            slope = np.clip(rows @ theta - y, -threshold, threshold)
            theta = theta - np.linalg.solve((rows * bend[:, None]).T @ rows, rows.T @ slope)
    else:
        for _ in range(8):
            p = expit(rows @ theta)
            slope, bend = p - y, p * (1 - p)
            theta = theta - np.linalg.solve((rows * bend[:, None]).T @ rows, rows.T @ slope)
    inverse = np.linalg.pinv((rows * bend[:, None]).T @ rows)  # of equal columns, too
    meat = (rows * np.square(slope)[:, None]).T @ rows
    return np.sqrt(np.diag(inverse @ meat @ inverse))


def figure(path: Path) -> None:
    """Draw one coefficient's intervals for forty tables: with the privacy noise counted, and without."""
    from privet.report.canvas import INK, canvas, save

    regime, count = Regime("linear", 5_000, 5, 1.0, "replace_one"), 40
    rng = np.random.default_rng(1)
    title, subtitle = (
        "One coefficient, forty tables, ε = 1",
        "95 % intervals; bold ones with a cross miss the true value",
    )
    with canvas(title, subtitle) as (drawn, axes), threadpool_limits(1):
        for number in range(count):
            X, y, true = table(regime, rng)
            found = estimator(regime, number).fit(X, y).confidence_intervals()
            centre, reach = found.estimate[0], norm.ppf(0.975) * plain_errors(regime, X, y)[0]
            honest, naive = (found.low[0], found.high[0]), (centre - reach, centre + reach)
            for place, (low, high), colour in ((number, honest, "#0072B2"), (number + count + 4, naive, "#D55E00")):
                missed = not low <= true[0] <= high
                axes.plot([place, place], [low, high], color=colour, linewidth=3.5 if missed else 1.4)
                mark, shade, size = ("x", INK, 7) if missed else ("o", colour, 3)
                axes.plot(place, centre, mark, color=shade, markersize=size)
        axes.axhline(true[0], color=INK, linewidth=1.2)
        axes.set_xticks([count / 2, count * 1.5 + 4], ["privacy noise counted", "privacy noise ignored"])
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("coefficient of x0")
        save(drawn, path)


def page(results: Results) -> str:
    """The results as a page."""
    facts = results["facts"]
    noise = 1.96 * math.sqrt(0.95 * 0.05 / facts["tables"])
    lines = [
        "# Do the intervals cover?",
        "",
        f"Measured on {facts['date']}, {facts['system']}, Python {facts['python']}, NumPy {facts['numpy']}, "
        f"{facts['minutes']} minutes. {facts['tables']:,} tables a regime, each with noise of its own; 95 % intervals "
        "with `inference=0.5`, δ = 1e-6, `bounds` given, row norms learnt.",
        "",
        "*cover*: share of all intervals that held the true coefficient; *worst*, *best*: of a single coefficient, "
        f"which {facts['tables']:,} tables know to ±{100 * noise:.1f} points. *naive*: the same estimates with the "
        "standard error of the non-private formula, which does not know of the noise. *width*: median, relative to the "
        "non-private interval. *told*: share of coefficients that had an interval, in fits that gave any. *refused*: "
        "share of fits that gave none; what has no interval does not count for *cover*.",
        "",
        "| model | rows | columns | ε | relation | | cover | worst | best | naive | width | told | refused |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_named(r) + _measured(r) for r in results["claimed"]]
    lines += [
        "",
        "## Where intervals are refused",
        "",
        f"{max(20, facts['tables'] // 10)} tables each. The reason is the commonest; it never quotes a private number.",
        "",
        "| model | rows | columns | ε | relation | | refused | reason | cover of the rest | told |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results["refused"]:
        rest = f"{100 * r['coverage']:.1f} %" if "coverage" in r else "–"
        told = f"{100 * r['determined']:.0f} %" if "coverage" in r else "–"
        lines.append(_named(r) + f" {100 * r['refusals']:.0f} % | {r['reason']} | {rest} | {told} |")
    return "\n".join(lines) + "\n"


def _named(r: Results) -> str:
    return f"| {r['model']} | {r['rows']:,} | {r['columns']} | {r['epsilon']:g} | {r['neighbours']} | {r['twist']} |"


def _measured(r: Results) -> str:
    if "coverage" not in r:
        return f" – | – | – | – | – | – | {100 * r['refusals']:.1f} % |"
    numbers = " | ".join(f"{100 * r[name]:.1f} %" for name in ("coverage", "least", "most", "naive"))
    return f" {numbers} | {r['width']:.2f} | {100 * r['determined']:.1f} % | {100 * r['refusals']:.1f} % |"


if __name__ == "__main__":
    main()
