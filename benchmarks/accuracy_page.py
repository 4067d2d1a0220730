"""The measured accuracies as a page of Markdown, each beside what was asked."""

from __future__ import annotations

import math
import statistics
from typing import Any

from accuracy_more import all_bars, markdown, more

Results = dict[str, Any]
Bar = tuple[str, str, bool]
SLACK, SLACK_R2 = 0.003, 0.01  # how far below a floor still counts as reached
LEARNT_LOSS = 0.01  # what learning the ranges may cost at epsilon = 1
LIMIT, MEMORY = 1e-3, 1.5
TIME = {"adult": 1.0, "kddcup99_10pct": 3.0}


def _counted(results: Results) -> str:
    """How many runs, and of which tables there were others."""
    usual = results["facts"]["runs"]
    counts = {t["title"]: len(t["scores"]["replace_one"]["1.0"]) for t in results.get("tables", {}).values()}
    others = ", ".join(f"{title}: {count}" for title, count in counts.items() if count != usual)
    return f"{usual} ({others})" if others else str(usual)


def page(results: Results) -> str:
    """The whole report, of those sections that were measured."""
    parts = [_head(results), "## Bars", _bars(results)]
    if results.get("tables"):
        shipped = "" if results["facts"]["shared"] else ", on what scikit-learn ships"
        parts += [f"## At the defaults{shipped}", _scores(results["tables"], results)]
        parts += [_around(results["tables"]), _peer(results)]
    if results.get("small"):
        parts += ["## Small tables", _SMALL, _scores(results["small"], results), _around(results["small"])]
    parts += [_learnt(results), *more(results)]
    if results.get("costs"):
        parts.append(_costs(results))
    return "\n\n".join(part for part in parts if part) + "\n"


_SMALL = """A few thousand rows or less, up to some sixty columns (a hundred for Adult), cut once from the tables above
or shipped with scikit-learn."""


def _head(results: Results) -> str:
    facts = results["facts"]
    others = {name: day for name, day in results.get("dates", {}).items() if day != facts["date"]}
    kept = f" Of another day: {', '.join(f'{name} ({day})' for name, day in others.items())}." if others else ""
    return f"""# Accuracy with privacy

Written by `benchmarks/accuracy.py` ({facts["date"]}, {facts["seconds"]} s); one run on one machine. {facts["system"]},
load average {facts["load"]} at the start, Python {facts["python"]}, NumPy {facts["numpy"]}, scikit-learn
{facts["scikit-learn"]}. Accuracy in per cent or R², on test rows; mean ± standard deviation of {_counted(results)} runs
with fresh noise. Every table is fitted with the same defaults; only public facts (ranges, code books, logarithms,
classes, δ) are passed. Under zero_out a record is emptied, under replace_one it is exchanged for any other, which
takes twice the noise.{kept}"""


def _show(value: float, classes: int) -> str:
    if classes:
        return f"{100 * value:.1f}"
    return f"{round(value, 3) + 0.0:.3f}"  # + 0.0 turns -0.0 into 0.0


def _spread(values: list[float], classes: int) -> str:
    if not values:
        return "fails"
    if not classes and min(values) < -1:
        return f"median {statistics.median(values):.2g}"
    spread = statistics.stdev(values) if len(values) > 1 else math.nan
    if math.isnan(spread):
        return f"{_show(statistics.mean(values), classes)} (one run)"
    return f"{_show(statistics.mean(values), classes)} ± {_show(spread, classes)}"


def _title(results: Results, name: str) -> str:
    return str(results.get("tables", {}).get(name, {"title": name})["title"])


def _word(met: bool) -> str:
    return "reached" if met else "**not reached**"


def _reached(row: Results, epsilon: float, place: int) -> bool:
    slack = SLACK if row["classes"] else SLACK_R2
    return bool(statistics.mean(row["scores"]["zero_out"][str(epsilon)]) >= row["floors"][place] - slack)


def _bars(results: Results) -> str:
    epsilons = results["facts"]["epsilons"]
    bars: list[Bar] = []
    for row in results.get("tables", {}).values():
        if row["floors"] is None:
            continue
        asked = " / ".join(_show(floor, row["classes"]) for floor in row["floors"])
        got = [_show(statistics.mean(row["scores"]["zero_out"][str(e)]), row["classes"]) for e in epsilons]
        met = all(_reached(row, e, place) for place, e in enumerate(epsilons))
        within = "0.3 points" if row["classes"] else "0.01"
        bars.append((f"{row['title']} at ε = 0.1 / 1 / 8: {asked}, within {within}", " / ".join(got), met))
    bars += [*_replacing(results), *_learning(results), *_guessing(results), *all_bars(results), *_costing(results)]
    return markdown(["bar", "measured", ""], [[promise, measured, _word(met)] for promise, measured, met in bars])


def _replacing(results: Results) -> list[Bar]:
    """How far replace_one falls below zero_out with twice the noise, at worst, beyond two standard errors."""
    gaps = []
    for row in results.get("tables", {}).values():
        for e, doubled in row["scores"].get("twice", {}).items():
            ours = row["scores"]["replace_one"][e]
            error = math.hypot(_error(ours), _error(doubled))
            slack = SLACK if row["classes"] else SLACK_R2
            gap = statistics.mean(doubled) - statistics.mean(ours)
            gaps.append((gap - max(2 * error, slack), gap, f"{row['title']}, ε = {float(e):g}"))
    if not gaps:
        return []
    worst, gap, where = max(gaps)
    promise = "replace_one costs no more than twice the noise (fast tables; slack: a floor's, or two standard errors)"
    return [(promise, f"at worst {gap:.4f} below ({where})", worst <= 0)]


def _error(values: list[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _learning(results: Results) -> list[Bar]:
    bars = []
    for name, found in results.get("learnt", {}).items():
        row = results["tables"][name]
        loss = statistics.mean(row["scores"]["zero_out"]["1.0"]) - statistics.mean(found["1.0"])
        promise = f"{row['title']}, ranges learnt privately: at most 1 point lost at ε = 1"
        bars.append((promise, f"{round(100 * loss, 2) + 0.0:.2f} points", loss <= LEARNT_LOSS))
    return bars


def _guessing(results: Results) -> list[Bar]:
    """Every mean against the commonest class or the mean, small tables included, less two standard errors."""
    below, rows = [], [*results.get("tables", {}).values(), *results.get("small", {}).values()]
    for row in rows:
        for relation in ("zero_out", "replace_one"):
            for e, values in row["scores"][relation].items():
                lost = row["guess"] - statistics.mean(values) - 2 * _error(values)
                if lost > 0.001:
                    below.append(f"{row['title']}, {relation}, ε = {float(e):g}")
    promise = "never worse than the commonest class or the mean, small tables too (by two standard errors and 0.001)"
    return [(promise, "worse: " + "; ".join(below) if below else "nowhere worse", not below)] if rows else []


def _costing(results: Results) -> list[Bar]:
    costs, bars = results.get("costs"), list[Bar]()
    if not costs:
        return bars
    for name, most in TIME.items():
        if name in costs["times"]:
            ratio = costs["times"][name]["ratio"]
            promise = f"{_title(results, name)}: time of a fit ÷ scikit-learn's, at most {most:g}"
            bars.append((promise, f"{ratio:.2f}", ratio <= most))
    for name, found in costs["memory"].items():
        extra = found["ratio"]
        promise = f"{_title(results, name)}: memory of a fit ÷ the matrix, at most {MEMORY}"
        bars.append((promise, f"{extra:.2f}", extra <= MEMORY))
    worst = max(costs["limits"], key=lambda row: row["coefficients"])
    met = worst["coefficients"] <= LIMIT
    bars.append(
        (f"coefficients at ε = 1e6, at most {LIMIT:g} off", f"{worst['coefficients']:.2g} ({worst['name']})", met)
    )
    return bars


def _scores(tables: Results, results: Results) -> str:
    peers = results.get("peer", {}).get("tables", {})
    asked = any(row["floors"] for row in tables.values())
    heads = ["table", "ε", *(["asked", "zero_out", ""] if asked else ["zero_out"]), "replace_one", "diffprivlib", "its"]
    lines = []
    for name, row in tables.items():
        for place, epsilon in enumerate(results["facts"]["epsilons"]):
            classes, key = row["classes"], str(epsilon)
            line = [row["title"] if not place else "", f"{epsilon:g}"]
            ours = _spread(row["scores"]["zero_out"][key], classes)
            if asked and row["floors"]:
                line += [_show(row["floors"][place], classes), ours, _word(_reached(row, epsilon, place))]
            else:
                line += ["", ours, ""] if asked else [ours]
            peer = peers.get(name, {}).get(key)
            line.append(_spread(row["scores"]["replace_one"][key], classes))
            line += [_spread(peer["runs"], classes), _setting(peer["best"])] if peer else ["–", ""]
            lines.append(line)
    return markdown(heads, lines)


def _setting(setting: Results) -> str:
    if "columns" in setting:
        return "numbers only" if setting["columns"] == "numbers" else "all columns"
    return f"C = {setting['C']:g}, norm ≤ {setting['data_norm']:.3g}"


def _around(tables: Results) -> str:
    lines = [
        [
            row["title"],
            f"{row['rows']:,}",
            str(row["columns"]),
            f"{row['delta']:g}",
            _show(row["guess"], row["classes"]),
            _show(row["ceiling"], row["classes"]),
            _show(row["issue_ceiling"], row["classes"]) if row["issue_ceiling"] else "–",
            f"{row['seconds']:.2f}",
        ]
        for row in tables.values()
    ]
    heads = ["table", "rows", "columns", "δ", "guess", "ceiling", "ceiling asked", "seconds a fit"]
    text = "Guess: the commonest class, or the mean. Ceiling: scikit-learn without privacy, on the same encoding."
    if any(not row["classes"] for row in tables.values()):
        text += (
            " Predictions of numbers are kept in their public range, everyone's; ceilings given with floors are not."
        )
    if any(row["delta"] < 1e-5 for row in tables.values()):
        text += " Where 1e-5 is not below one over the number of rows, which privet refuses, δ is smaller than asked."
    return f"{text}\n\n{markdown(heads, lines)}"


def _peer(results: Results) -> str:
    peer = results.get("peer")
    if not peer:
        return "The peer was not run."
    versions = peer["versions"]
    return f"""diffprivlib {versions["diffprivlib"]} ran in an environment of its own with scikit-learn
{versions["scikit-learn"]}, the newest it works with. It had the same features, each in [−1, 1] or [0, 1], and the same
public bounds. Its settings are the best of a small grid (C, weak to very strong; for pixels also a smaller `data_norm`;
for regression all columns or the numbers only), **chosen on the test rows, in its favour**, then run afresh; for MNIST,
where a fit takes half a minute, each setting ran once and the best run is shown. All tries are in `accuracy.json`. It
promises (ε, 0) under replace_one, so its column compares with that one."""


def _learnt(results: Results) -> str:
    if not results.get("learnt"):
        return ""
    lines = []
    for name, found in results.get("learnt", {}).items():
        row = results["tables"][name]
        for e, values in found.items():
            public = _spread(row["scores"]["zero_out"][e], row["classes"])
            lines.append([row["title"], f"{float(e):g}", public, _spread(values, row["classes"])])
    return f"""## Ranges learnt privately

The ranges of all numbers are left out of the schema and learnt from the same budget (`fit_table`, zero_out); code
books and logarithms stay public.

{markdown(["table", "ε", "public ranges", "learnt ranges"], lines)}"""


def _costs(results: Results) -> str:
    costs = results["costs"]
    clock = [
        [
            _title(results, name),
            f"{min(t['privet']):.3f}",
            f"{min(t['scikit-learn']):.3f}",
            f"{t['ratio']:.2f}",
        ]
        for name, t in costs["times"].items()
    ]
    space = [
        [_title(results, name), f"{m['input'] / 1e6:.0f}", f"{m['extra'] / 1e6:.0f}", f"{m['ratio']:.2f}"]
        for name, m in costs["memory"].items()
    ]
    far = [
        [row["name"], f"{row['coefficients']:.1e}", f"{row['predictions']:.1e}" if "predictions" in row else "–"]
        for row in costs["limits"]
    ]
    parts = ["## Costs"]
    if clock:
        parts.append(
            "Seconds of one fit at ε = 1 (replace_one), and of scikit-learn's `LogisticRegression()` on the same\n"
            f"encoded matrix, in turn; the best of {len(next(iter(costs['times'].values()))['privet'])}."
        )
        parts.append(markdown(["table", "privet", "scikit-learn", "ratio"], clock))
    parts.append(
        "Memory of one fit in a process of its own: the peak of the resident set less what was resident before (the\n"
        "matrix among it), by the size of the float64 matrix."
    )
    parts.append(markdown(["table", "matrix, MB", "extra, MB", "ratio"], space))
    parts.append(
        "Coefficients at ε = 1e6 and defaults: the largest difference from scikit-learn's unpenalised solution,\n"
        "divided by the largest coefficient, intercept included. With code books beside a constant that solution is\n"
        "not unique, so only the numbers are used there; the last column has the whole table: the largest difference\n"
        "of a predicted probability, or of a prediction in [−1, 1], on test rows."
    )
    parts.append(markdown(["table", "coefficients", "predictions"], far))
    return "\n\n".join(parts)
