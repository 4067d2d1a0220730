"""The sections beside the main tables as Markdown, and the bars that are asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accuracy_bars import bars, show
from accuracy_private import best_private
from accuracy_runs import summary
from accuracy_tall import MOST

Results = dict[str, Any]
Bar = tuple[str, str, bool]
TEXTS = {
    "probabilities": """## Probabilities

Log-loss of predicted probabilities beside that of the constant, which is the rate of the training rows; slope and
offset of a logistic regression of the test labels on the predicted log odds (1 and 0 are right); mean probability
beside the rate. With `class_weight="balanced"` classes count alike in all of it, as they do in the fit, and the
constant is 1/2; the log-loss without weights stands last.""",
    "classes": """## Many classes

Whole numbers between 0 and 15, correlated, most of their spread in a few directions; and digits. Log-loss beside the
constant's.""",
    "bounds": """## Ranges too wide

Declared ranges 10, 100 and 1,000 times as wide as they should be, upwards where they begin at 0 or above, else both
ways; a target's likewise. "Learnt" declares none. "Table" is `fit_table` with a schema, as `privet fit` does.""",
    "undeclared": """## Nothing declared

Ranges, code books and classes are learnt from the same budget (of penguins, the labels are known). Tables as they are,
and bootstraps of their training rows. "Below": share of runs below the constant; "lost": how far at worst.""",
    "constant": """## Never worse than the constant

Every estimator in its own score (accuracy, R², D² for counts and quantiles) on tables made up anew for each run, eight
columns, beside the constant of the training rows (commonest class, mean, quantile). Of each estimator, number of rows
and ε: the worst mean over three strengths of the signal, ranges declared and learnt; and the worst run. The "private
constant" is one learnt with all of the budget, by the best of several mechanisms (a vote; a quantile or a rate by an
exponential mechanism; a mean with Laplace or Gaussian noise; an interval first), found with hindsight: where it is far
below the constant, next to nothing can be told, and no private model is better unless its prior is lucky.""",
}


def more(results: Results) -> list[str]:
    """The parts of the page that the sections have."""
    parts = []
    for section, text in TEXTS.items():
        if rows := results.get(section):
            parts += [f"{text} {_runs(rows)}", _TABLES[section](rows)]
    return [*parts, *_tall(results.get("tall"))]


def _runs(rows: Sequence[Results]) -> str:
    counts = sorted({row["runs"] for row in rows})
    return f"Runs a line: {' or '.join(map(str, counts))}."


def all_bars(results: Results) -> list[Bar]:
    """What is asked of the sections, of small tables and of the large ones under replace_one."""
    rows = [*_rows(results, "tables"), *_rows(results, "small")]
    rows += [row for section in TEXTS for row in results.get(section) or []]
    found = bars(rows)
    for way, ratio in (results.get("tall") or {"ratios": {}})["ratios"].items():
        promise = f"2,000,000 × 20, {way}: CPU time ÷ scikit-learn's, at most {MOST}"
        found.append((promise, f"{ratio:.2f}", ratio <= MOST))
    return found


def _rows(results: Results, section: str) -> list[Results]:
    """The tables' results in the form of the sections'."""
    found = []
    for name, table in results.get(section, {}).items():
        known = {"section": section, "name": name, "title": table["title"], "setting": "", "rows": table["rows"]}
        for relation in ("zero_out", "replace_one"):
            for epsilon, scores in table["scores"][relation].items():
                runs = [{"score": score, "guess": table["guess"]} for score in scores]
                how = {"relation": relation, "epsilon": float(epsilon), "classes": table["classes"]}
                found.append(known | how | summary(runs))
    return found


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]])


def _what(row: Results) -> list[str]:
    return [row["title"], row["setting"], row["relation"], f"{row['epsilon']:g}"]


def _spread(row: Results) -> str:
    spread = "" if row["sd"] is None or row["worst"] < -1 else f" ± {show(row['sd'], row['classes'])}"
    return show(row["score"], row["classes"]) + spread


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _probable(rows: Sequence[Results]) -> str:
    heads = ["table", "", "relation", "ε", "accuracy", "log-loss", "constant's", "slope", "offset", "mean", "rate"]
    heads.append("log-loss without weights")
    lines = []
    for row in rows:
        line = [*_what(row), _spread(row), _bold(row), f"{row['guess_loss']:.4f}"]
        line += [_number(row.get(key), 2) for key in ("slope", "offset")]
        line += [_number(row.get(key), 4) for key in ("mean", "rate")]
        lines.append([*line, f"{row['plain_loss']:.4f}" if row["setting"] == "balanced" else ""])
    return markdown(heads, lines)


def _bold(row: Results) -> str:
    """A log-loss, in bold type where the constant's is not above it."""
    return f"{row['loss']:.4f}" if row["loss"] < row["guess_loss"] else f"**{row['loss']:.4f}**"


def _classes(rows: Sequence[Results]) -> str:
    heads = ["table", "", "relation", "ε", "accuracy", "guess", "log-loss", "constant's"]
    return markdown(
        heads, [[*_what(r), _spread(r), show(r["guess"], 2), _bold(r), f"{r['guess_loss']:.4f}"] for r in rows]
    )


def _bounds(rows: Sequence[Results]) -> str:
    """A line for each table and setting, a column for each epsilon."""
    epsilons = sorted({row["epsilon"] for row in rows})
    cells: dict[tuple[str, str, str], dict[float, str]] = {}
    for row in rows:
        key = (row["title"], row["setting"], row["relation"])
        cells.setdefault(key, {})[row["epsilon"]] = _spread(row)
    lines = [[*key, *(found.get(e, "–") for e in epsilons)] for key, found in cells.items()]
    return markdown(["table", "ranges", "relation", *(f"ε = {e:g}" for e in epsilons)], lines)


def _undeclared(rows: Sequence[Results]) -> str:
    heads = ["table", "", "relation", "ε", "runs", "median", "worst", "constant", "below", "lost", "warned", "refused"]
    lines = []
    for row in rows:
        line = [*_what(row), str(row["runs"])]
        line += [show(row[key], row["classes"]) for key in ("median", "worst", "guess")]
        lost = show(row["lost"], row["classes"]) if row["lost"] < 10 else f"{row['lost']:.2g}"
        share = [f"{100 * row[key]:.1f} %" for key in ("warned", "failed")]
        lines.append([*line, f"{100 * row['below']:.1f} %", lost, *share])
    return markdown(heads, lines)


def _constant(rows: Sequence[Results]) -> str:
    """The worst over signal and ranges of each estimator, size and epsilon."""
    groups: dict[tuple[str, int, float], list[Results]] = {}
    for row in rows:
        groups.setdefault((row["name"], row["rows"], row["epsilon"]), []).append(row)
    lines = []
    for (name, size, epsilon), found in groups.items():
        worst = max(found, key=lambda row: row["guess"] - row["score"])
        low = max(row["lost"] for row in found)
        gap = worst["score"] - worst["guess"]
        line = [name, f"{size:,}", f"{epsilon:g}", f"{gap:+.3g}", worst["setting"], _gap(best_private(worst), worst)]
        behind = [row["score"] - best for row in found if (best := best_private(row)) is not None]
        lines.append([*line, f"{min(behind):+.3g}" if behind else "–", f"{-low:+.3g}"])
    heads = ["estimator", "rows", "ε", "worst mean less the constant", "where", "private constant there"]
    heads += ["worst mean less the private constant", "worst run less the constant"]
    return markdown(heads, lines)


def _gap(value: float | None, row: Results) -> str:
    return "–" if value is None else f"{value - row['guess']:+.3g}"


def _tall(found: Results | None) -> list[str]:
    if not found:
        return []
    text = f"""## Tall

CPU seconds of one fit of {found["rows"]:,} rows and {found["columns"]} columns at ε = 1 (replace_one), encode
included, beside scikit-learn's `LogisticRegression()` on the same matrix, in turn; the best of
{len(found["cpu"]["declared"])}."""
    lines = []
    for way, seconds in found["cpu"].items():
        ratio = f"{found['ratios'][way]:.2f}" if way in found["ratios"] else ""
        lines.append([way, f"{min(seconds):.2f}", ratio])
    return [text, markdown(["", "CPU seconds", "ratio"], lines)]


_TABLES = {
    "probabilities": _probable,
    "classes": _classes,
    "bounds": _bounds,
    "undeclared": _undeclared,
    "constant": _constant,
}
