"""The measured numbers as a page of Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from bars import (
    Row,
    bracket_of,
    case_of,
    contradicts,
    error_of,
    error_ratio,
    is_below_truth,
    judge,
    speed_ratio,
    value_of,
    width_of,
)
from peers import ADAPTERS

VERDICTS = {True: "pass", False: "**FAIL**", None: "not measured"}


def page(results: dict[str, Any]) -> str:
    """The whole report."""
    parts = [_head(results), _bars(results)]
    panel: list[Row] = results["panel"]
    peers = [name for name in panel[0]["replies"] if name != "privet"] if panel else []
    parts.append(_ours("The panel: privet", panel))
    if peers:
        parts += [_peers(panel, peers), _errors(panel, peers), _times(panel, peers), _failures(panel, peers)]
    parts.append(_calibration(results.get("calibration", [])))
    if results.get("hard"):
        parts.append(_witnessed("Hard cases", results["hard"]))
    if results.get("scan"):
        parts.append(_scan(results))
    return "\n\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows])


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}g}"


def _answer(reply: dict[str, Any], digits: int) -> str:
    return _number(reply["value"], digits) if "value" in reply else str(reply.get("failed") or reply["unsupported"])


def _ms(reply: dict[str, Any]) -> str:
    return _number(1e3 * reply["cpu"]) if "cpu" in reply else "–"


def _head(results: dict[str, Any]) -> str:
    facts = results["facts"]
    versions = ", ".join(
        f"{name} {facts[name]}" for name in facts if name not in ("date", "processor", "system", "load")
    )
    clock = results.get("timeout_clock", "wall")
    return f"""# Accounting: privet against its peers

Written by `benchmarks/accounting.py` ({facts["date"]}); every number on this page comes from one run on one machine.
{facts["processor"]}; {facts["system"]}; load average {facts.get("load", "unknown")}; {versions}.

*CPU* is the process time of one warm query: library loaded, one other question answered before, and no two questions
alike (each repetition changes the noise in the ninth digit), so no cache answers; the median of the repetitions, or
one query if that takes longer than 0.3 s. *Error* is relative to the true value. *Peak memory* is that of the whole
process, interpreter and libraries included. A library that takes more than {results["timeout"]:g} s of {clock} time
over one question, or asks for more than 12 GB, is stopped."""


def _bars(results: dict[str, Any]) -> str:
    rows = [(bar.promise, VERDICTS[bar.met], bar.detail) for bar in judge(results)]
    return "## Bars\n\n" + _table(("promise", "verdict", "measured"), rows)


def _ours(title: str, rows: Sequence[Row]) -> str:
    cells = []
    for row in rows:
        case, reply, pair = case_of(row), row["replies"]["privet"], bracket_of(row)
        cells.append(
            (
                case.name,
                case.describe(),
                _answer(reply, 12),
                f"[{case.lower:.11g}, {case.upper:.11g}]" if case.lower is not None else "–",
                _number(error_of(row, "privet"), 2),
                "–" if "value" not in reply else "**yes**" if is_below_truth(row, "privet") else "no",
                "–" if pair is None else _number(width_of(row), 2),
                _ms(reply),
                _number(reply.get("peak_mb")),
            )
        )
    heads = ("case", "run", "answer", "truth", "error", "below?", "bracket width", "CPU ms", "peak MB")
    return f"## {title}\n\n" + _table(heads, cells)


def _peers(rows: Sequence[Row], peers: Sequence[str]) -> str:
    cells = []
    for name in ("privet", *peers):
        replies = [row["replies"][name] for row in rows]
        errors = [abs(e) for row in rows if (e := error_of(row, name)) is not None]
        speeds = [s for row in rows if (s := speed_ratio(row, name)) is not None]
        closer = [c for row in rows if (c := error_ratio(row, name)) is not None]
        cpus = [1e3 * r["cpu"] for r in replies if "cpu" in r]
        cells.append(
            (
                f"{ADAPTERS[name].label} ({ADAPTERS[name].settings})",
                f"{sum('value' in r for r in replies)} of {len(rows)}",
                str(sum("failed" in r for r in replies)),
                str(sum(is_below_truth(row, name) for row in rows)),
                _span(errors, statistics.median, max),
                _span(cpus, statistics.median, max),
                _number(max((r["peak_mb"] for r in replies if "peak_mb" in r), default=None)),
                "–" if name == "privet" else _span(speeds, min, statistics.median),
                "–" if name == "privet" else _span(closer, min, statistics.median),
            )
        )
    heads = (
        *("accountant", "answered", "failed", "below truth", "error: median, worst", "CPU ms: median, worst"),
        *("peak MB", "CPU ÷ privet's: least, median", "error ÷ privet's: least, median"),
    )
    note = (
        "Where privet's error is less than what is known of the truth, the latter stands in for it in the last column."
    )
    return "## The panel: everybody\n\n" + _table(heads, cells) + "\n\n" + note


def _span(values: Sequence[float], *summaries: Callable[[Sequence[float]], float]) -> str:
    return ", ".join(_number(summary(values)) for summary in summaries) if values else "–"


def _errors(rows: Sequence[Row], peers: Sequence[str]) -> str:
    def cell(row: Row, name: str) -> str:
        error = error_of(row, name)
        if error is None:
            return "failed" if "failed" in row["replies"][name] else "–"
        return f"**{error:+.1e}**" if is_below_truth(row, name) else f"{error:+.1e}"

    return "### Relative error (bold: below the truth)\n\n" + _by_case(rows, peers, cell)


def _times(rows: Sequence[Row], peers: Sequence[str]) -> str:
    return "### CPU, ms\n\n" + _by_case(rows, peers, lambda row, name: _ms(row["replies"][name]))


def _by_case(rows: Sequence[Row], peers: Sequence[str], cell: Callable[[Row, str], str]) -> str:
    names = ("privet", *peers)
    heads = ("case", *(ADAPTERS[name].label for name in names))
    return _table(heads, [(row["case"]["name"], *(cell(row, name) for name in names)) for row in rows])


def _failures(rows: Sequence[Row], peers: Sequence[str]) -> str:
    lines = [
        f"- {ADAPTERS[name].label}, {row['case']['name']}: {row['replies'][name]['failed']}"
        for name in ("privet", *peers)
        for row in rows
        if "failed" in row["replies"].get(name, {})
    ]
    return "### Crashes and time-outs\n\n" + ("\n".join(lines) or "None on the panel.")


def _calibration(rows: Sequence[Row]) -> str:
    cells = [
        (
            row["case"]["name"],
            case_of(row).describe(),
            _number(row["case"]["lower"], 10),
            _number(value_of(row, "privet"), 12),
            _number(error_of(row, "privet"), 2),
            _ms(row["replies"]["privet"]),
            _number(error_of(row, "google_pld"), 2),
            _ms(row["replies"].get("google_pld", {})),
        )
        for row in rows
    ]
    heads = ("case", "run", "true noise", "privet", "error", "CPU ms", "dp_accounting PLD: error", "CPU ms")
    text = "Each panel case asked backwards: the noise for the true epsilon; with phases, the factor on all of it."
    return f"## Calibration\n\n{text}\n\n" + _table(heads, cells)


def _witnessed(title: str, rows: Sequence[Row]) -> str:
    peers = [name for name in rows[0]["replies"] if name != "privet"]
    cells = []
    for row in rows:
        pair = bracket_of(row)
        reply = row["replies"]["privet"]
        cells.append(
            (
                row["case"]["name"],
                case_of(row).describe(),
                _answer(reply, 10),
                "–" if pair is None else _number(width_of(row), 2),
                _pair(row),
                {True: "**contradiction**", False: "agree", None: "–"}[contradicts(row)],
                _ms(reply),
                *(_beside(row, name) for name in peers),
            )
        )
    heads = ("case", "run", "privet", "bracket width", "Fourier witness", "", "CPU ms")
    note = "Peers: their number and CPU ms; bold where it is below the witness' certified lower bound."
    return f"## {title}\n\n{note}\n\n" + _table((*heads, *(ADAPTERS[name].label for name in peers)), cells)


def _beside(row: Row, name: str) -> str:
    reply, value, witness = row["replies"][name], value_of(row, name), bracket_of(row, "privet_fourier")
    if value is None:
        return str(reply.get("failed", "–"))
    text = f"{value:.6g} in {_ms(reply)}"
    return f"**{text}**" if witness is not None and value < witness[0] else text


def _scan(results: dict[str, Any]) -> str:
    rows: list[Row] = results["scan"]
    witnessed = [row for row in rows if bracket_of(row, "privet_fourier") is not None]
    widths = [w for row in rows if (w := width_of(row)) is not None]
    cpus = [1e3 * row["replies"]["privet"]["cpu"] for row in rows if "cpu" in row["replies"]["privet"]]
    clashes = sum(contradicts(row) is True for row in rows)
    lines = [
        f"{len(rows)} random Poisson-Gaussian runs (seed {results['seed']}): steps 1 to 1e6, rate 1e-6 to 1, noise 0.2"
        " to 100, delta 1e-18 to 1e-2, all log-uniform, epsilon up to about 100.",
        "",
        f"- privet: {len(cpus)} answered; {clashes} contradictions with the {len(witnessed)} brackets"
        " of the Fourier accountant.",
        f"- bracket width (relative): median, worst {_span(widths, statistics.median, max)};"
        f" CPU ms: median, worst {_span(cpus, statistics.median, max)}.",
    ]
    answered = [row for row in witnessed if value_of(row, "google_pld") is not None]
    if any("google_pld" in row["replies"] for row in rows):
        under = [row for row in answered if _shortfall(row) > 0]
        failed = sum("failed" in row["replies"].get("google_pld", {}) for row in rows)
        infinite = sum(value_of(row, "google_pld") == math.inf for row in rows)
        lines.append(
            f"- dp_accounting's PLD, default grid: {len(answered)} answered, {failed} failed, {infinite} answers of"
            f" infinity; **{len(under)} below the certified lower bound**."
        )
        cells = [
            (
                row["case"]["name"],
                case_of(row).describe(),
                _pair(row),
                _beside(row, "google_pld"),
                f"{_shortfall(row):.2g}",
            )
            for row in sorted(under, key=_shortfall, reverse=True)
        ]
        if cells:
            lines += ["", _table(("case", "run", "Fourier witness", "dp_accounting", "relative shortfall"), cells)]
    bad = [
        row for row in rows if contradicts(row) or "failed" in row["replies"]["privet"] or (width_of(row) or 0) > 1e-5
    ]
    if bad:
        lines += ["", "Settings in which privet contradicts the witness, fails, or brackets wider than 1e-5:", ""]
        heads = ("case", "run", "privet", "bracket width", "Fourier witness")
        cells = [
            (
                row["case"]["name"],
                case_of(row).describe(),
                _answer(row["replies"]["privet"], 10),
                _number(width_of(row), 2),
                _pair(row),
            )
            for row in bad
        ]
        lines.append(_table(heads, cells))
    return "## Random settings\n\n" + "\n".join(lines)


def _pair(row: Row) -> str:
    witness = bracket_of(row, "privet_fourier")
    if witness is None:
        return str(row["brackets"].get("privet_fourier", {}).get("failed", "–"))
    return f"[{witness[0]:.8g}, {witness[1]:.8g}]"


def _shortfall(row: Row) -> float:
    """How far dp_accounting is below the certified lower bound, relative; not positive where it is not."""
    witness, value = bracket_of(row, "privet_fourier"), value_of(row, "google_pld")
    if witness is None or value is None or witness[0] <= 0:
        return 0.0
    return 1 - value / witness[0]
