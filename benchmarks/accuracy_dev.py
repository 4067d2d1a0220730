"""Sections on training rows alone, to choose settings by: printed, never written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from accuracy_bars import asked, bars, show
from accuracy_runs import Wanted, measure
from accuracy_sections import Shelf, cases

Results = dict[str, Any]
DEV_RUNS = {"tables": 2, "small": 10, "probabilities": 3, "bounds": 3, "undeclared": 20, "classes": 3, "constant": 4}


def dev(sections: Sequence[str], shelf: Shelf, names: list[str] | None, wanted: Wanted) -> None:
    """Fit on four fifths of the training rows, score on the fifth, print."""
    for section in sections:
        start, spent = time.perf_counter(), time.process_time()
        rows = measure(cases(section, shelf, names), wanted, DEV_RUNS[section])
        if not rows:
            continue
        print(f"\n{section}: training rows only, {rows[0]['runs']} runs\n")
        print("\n".join(lines(rows)))
        for promise, measured, met in bars(rows, dev=True):
            print(f"{'reached    ' if met else 'NOT REACHED'} {promise}: {measured}")
        print(f"{section}: {time.perf_counter() - start:.0f} s, CPU {time.process_time() - spent:.0f} s", flush=True)


def lines(rows: Sequence[Results]) -> list[str]:
    """The rows as lines of one width; what was asked stands behind the mean."""
    heads = ["table", "setting", "rel", "ε", "mean", "asked", "sd", "worst", "median", "guess", "below"]
    heads += ["warned", "refused", "cpu"]
    probable = any(row.get("loss") for row in rows)
    heads += ["loss", "guess", "slope", "offset", "mean p", "rate"] if probable else []
    table = [heads, *(_line(row, probable) for row in rows)]
    widths = [max(len(line[place]) for line in table) for place in range(len(heads))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]


def _line(row: Results, probable: bool) -> list[str]:
    classes, least, relation = row["classes"], asked(row), row["relation"]
    line = [row["name"], row["setting"], relation, f"{row['epsilon']:g}", show(row["score"], classes)]
    line.append("" if least is None else show(least, classes))
    line.append("" if row["sd"] is None else show(row["sd"], classes))
    line += [show(row[key], classes) for key in ("worst", "median", "guess")]
    line += [f"{100 * row[key]:.0f} %" for key in ("below", "warned", "failed")] + [f"{row['cpu']:.3f}"]
    if probable:
        line += [f"{row[key]:.4f}" for key in ("loss", "guess_loss")]
        line += [_blank(row.get(key), 3) for key in ("slope", "offset")]
        line += [_blank(row.get(key), 4) for key in ("mean", "rate")]
    return line


def _blank(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
