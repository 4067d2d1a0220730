"""The promises that privet's accounting is held to, each judged from the measured numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cases import Case, from_dict

Row = dict[str, Any]
MS = 1e3


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One promise; `met` is None where it was not measured."""

    promise: str
    met: bool | None
    detail: str


def case_of(row: Row) -> Case:
    """The case of a row of results."""
    return from_dict(row["case"])


def value_of(row: Row, adapter: str) -> float | None:
    """The number an adapter returned, if any."""
    value = row["replies"].get(adapter, {}).get("value")
    return None if value is None else float(value)


def error_of(row: Row, adapter: str) -> float | None:
    """Signed relative error against the middle of the truth; where the truth is an interval of some width, against
    the nearest end of it.
    """
    case, value = case_of(row), value_of(row, adapter)
    if value is None or case.lower is None or case.upper is None:
        return None
    if case.relative_width > 1e-6:
        nearest = min(max(value, case.lower), case.upper)
        return value / nearest - 1
    assert case.truth is not None
    return value / case.truth - 1


def is_below_truth(row: Row, adapter: str) -> bool:
    """Whether an adapter's number is less than the least that the truth can be."""
    case, value = case_of(row), value_of(row, adapter)
    return value is not None and case.lower is not None and value < case.lower


def bracket_of(row: Row, adapter: str = "privet") -> tuple[float, float] | None:
    """The certified bracket, if there is one."""
    pair = row["brackets"].get(adapter, {}).get("value")
    return None if pair is None else (float(pair[0]), float(pair[1]))


def width_of(row: Row, adapter: str = "privet") -> float | None:
    """Relative width of the bracket."""
    pair = bracket_of(row, adapter)
    if pair is None:
        return None
    lower, upper = pair
    return 0.0 if upper <= lower else (upper - lower) / upper if math.isfinite(upper) else math.inf


def contradicts(row: Row) -> bool | None:
    """Whether privet's answer or bracket and the Fourier witness' bracket exclude one another; None if one is missing
    or the witness says nothing. Both are certified, so there is no slack.
    """
    ours, witness, value = bracket_of(row), bracket_of(row, "privet_fourier"), value_of(row, "privet")
    if ours is None or witness is None or value is None or witness == (0.0, math.inf):
        return None
    return value < witness[0] or ours[1] < witness[0] or ours[0] > witness[1]


def speed_ratio(row: Row, adapter: str) -> float | None:
    """How many times the CPU time of privet the adapter took."""
    theirs, ours = row["replies"].get(adapter, {}).get("cpu"), row["replies"]["privet"].get("cpu")
    return None if theirs is None or ours is None else theirs / max(ours, 1e-9)


def error_ratio(row: Row, adapter: str) -> float | None:
    """How many times the error of privet the adapter's error is; what is not known of the truth counts against us."""
    theirs, ours = error_of(row, adapter), error_of(row, "privet")
    if theirs is None or ours is None:
        return None
    return abs(theirs) / max(abs(ours), case_of(row).relative_width / 2, 1e-16)


def judge(results: dict[str, Any]) -> list[Bar]:
    """All bars that we hold ourselves to."""
    panel: list[Row] = results["panel"]
    calibration: list[Row] = results.get("calibration", [])
    hard: list[Row] = results.get("hard", [])
    scan: list[Row] = results.get("scan", [])
    queries = [row for row in panel if row["case"]["asks"] != "noise"]
    noise = [row for row in panel if row["case"]["asks"] == "noise"] + calibration
    ordinary = [row for row in queries if case_of(row).is_ordinary]
    other = [row for row in queries + hard if not case_of(row).is_ordinary]
    dpsgd = [row for row in panel if case_of(row).is_dpsgd]
    return [
        _all("every panel case answered", panel, lambda row: value_of(row, "privet") is not None),
        _all("every hard case answered", hard, lambda row: value_of(row, "privet") is not None),
        _all("every random setting answered", scan, lambda row: value_of(row, "privet") is not None),
        _all("never below the least possible truth", panel, _is_safe_answer),
        _most("at most 1e-6 (relative) above the truth", panel, 1e-6, _excess),
        _most("bracket at most 1e-5 wide (relative), panel", panel, 1e-5, width_of),
        _most("bracket at most 1e-5 wide (relative), hard cases", hard, 1e-5, width_of),
        _most("bracket at most 1e-5 wide (relative), random settings", scan, 1e-5, width_of),
        _most("calibrated noise at most 1e-6 (relative) above the truth", noise, 1e-6, _excess),
        _all("calibrated noise is safe: epsilon there is certified to be at most the target", noise, _is_safe),
        _most("CPU of an ordinary query, at most 5 ms", ordinary + _ordinary(hard), 5, _milliseconds),
        _most("CPU of any other query, at most 50 ms", other, 50, _milliseconds),
        _most("CPU of a random setting, at most 50 ms", scan, 50, _milliseconds),
        _most("CPU of a calibration, at most 60 ms", noise, 60, _milliseconds),
        _most("peak memory below 200 MB", panel + calibration + hard + scan, 200, _megabytes),
        _import_bar(results["import"]),
        _least("50 times faster than dp_accounting's default grid on DP-SGD", dpsgd, 50, speed_ratio),
        _least("10 times closer to the truth than dp_accounting's default grid on DP-SGD", dpsgd, 10, error_ratio),
        _all("no contradiction with the Fourier witness, hard cases", hard, _agrees, complete=False),
        _all("no contradiction with the Fourier witness, random settings", scan, _agrees, complete=False),
    ]


def _ordinary(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if case_of(row).is_ordinary]


def _excess(row: Row) -> float | None:
    upper, value = row["case"]["upper"], value_of(row, "privet")
    return None if value is None or upper is None else value / upper - 1


def _is_safe_answer(row: Row) -> bool | None:
    return None if value_of(row, "privet") is None else not is_below_truth(row, "privet")


def _is_safe(row: Row) -> bool | None:
    pair = bracket_of(row)
    return None if pair is None else pair[1] <= row["case"]["epsilon"]


def _agrees(row: Row) -> bool | None:
    verdict = contradicts(row)
    return None if verdict is None else not verdict


def _milliseconds(row: Row) -> float | None:
    cpu = row["replies"]["privet"].get("cpu")
    return None if cpu is None else MS * cpu


def _megabytes(row: Row) -> float | None:
    peaks = [reply["peak_mb"] for reply in (row["replies"]["privet"], row["brackets"]["privet"]) if "peak_mb" in reply]
    return max(peaks, default=None)


def _names(rows: Iterable[Row]) -> str:
    names = [row["case"]["name"] for row in rows]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _all(promise: str, rows: Sequence[Row], holds: Callable[[Row], bool | None], *, complete: bool = True) -> Bar:
    """A case without a verdict is no success: it is named, and the promise is not met unless `complete` is off."""
    if not rows:
        return Bar(promise=promise, met=None, detail="not measured")
    verdicts = [(row, holds(row)) for row in rows]
    kept = sum(verdict is True for _, verdict in verdicts)
    detail = f"{kept} of {len(rows)}"
    bad, unknown = ([row for row, verdict in verdicts if verdict is kind] for kind in (False, None))
    detail += f"; not: {_names(bad)}" if bad else ""
    detail += f"; without a verdict: {_names(unknown)}" if unknown else ""
    met = kept == len(rows) if complete else kept > 0 and not bad
    return Bar(promise=promise, met=met, detail=detail)


def _most(promise: str, rows: Sequence[Row], limit: float, measure: Callable[[Row], float | None]) -> Bar:
    values = [(row, value) for row in rows if (value := measure(row)) is not None]
    if not values:
        return Bar(promise=promise, met=False if rows else None, detail="no values" if rows else "not measured")
    bad = [row for row, value in values if not value <= limit]
    worst_row, worst = max(values, key=lambda pair: pair[1])
    missing = len(rows) - len(values)
    detail = f"worst {worst:.3g} ({worst_row['case']['name']}), {len(values) - len(bad)} of {len(rows)}"
    detail += f"; not: {_names(bad)}" if bad else ""
    detail += f"; {missing} without a value" if missing else ""
    return Bar(promise=promise, met=not bad and not missing, detail=detail)


def _least(promise: str, rows: Sequence[Row], limit: float, ratio: Callable[[Row, str], float | None]) -> Bar:
    values = [(row, value) for row in rows if (value := ratio(row, "google_pld")) is not None]
    if not values:
        return Bar(promise=promise, met=None, detail="not measured")
    bad = [row for row, value in values if not value >= limit]
    worst_row, worst = min(values, key=lambda pair: pair[1])
    detail = f"least {worst:.3g} ({worst_row['case']['name']}), {len(values) - len(bad)} of {len(values)}"
    return Bar(promise=promise, met=not bad, detail=detail + (f"; not: {_names(bad)}" if bad else ""))


def _import_bar(measured: dict[str, Any]) -> Bar:
    promise = "`import privet.accounting` in at most 0.5 s"
    if "failed" in measured:
        return Bar(promise=promise, met=False, detail=measured["failed"])
    return Bar(
        promise=promise,
        met=measured["wall"] <= 0.5,
        detail=f"{measured['wall']:.2f} s wall, {measured['cpu']:.2f} s CPU, median of 5 fresh interpreters",
    )
