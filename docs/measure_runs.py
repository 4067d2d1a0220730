"""Make the runs behind the figures of risk anew, with their fixed seeds: a minute or two on two cores.

python docs/measure_runs.py        # writes src/privet/lectures/figures/runs.json
"""

from __future__ import annotations

import json
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import astuple
from pathlib import Path
from typing import Any, get_args

from privet.lectures.figures import stored_runs
from privet.lectures.figures.bracketed_risk import GRID, METHODS, brackets_along
from privet.lectures.figures.how_good import RUN_METHODS, Against, risks_along

Answers = Future[Any] | dict[str, "Answers"]


def main() -> None:
    """Run all, and write what comes of it."""
    with ProcessPoolExecutor(2) as pool:
        begun: dict[str, Answers] = {
            "risk": {
                against: {method: pool.submit(risks_along, against, method) for method in RUN_METHODS}
                for against in get_args(Against)
            },
            "bracket": {
                lecture: {
                    method: {against: pool.submit(brackets_along, lecture, method, against) for against in GRID}
                    for method in methods
                }
                for lecture, methods in METHODS.items()
            },
        }
        path = Path(stored_runs.__file__).with_name("runs.json")
        path.write_text(json.dumps(_done(begun), indent=1) + "\n", encoding="utf-8")


def _done(begun: Answers) -> Any:
    if isinstance(begun, dict):
        return {name: _done(each) for name, each in begun.items()}
    return [_short(each) for each in begun.result()]


def _short(value: Any) -> Any:
    """Nine digits, of each field of a bracket."""
    return float(f"{value:.9g}") if isinstance(value, float) else [_short(each) for each in astuple(value)]


if __name__ == "__main__":
    main()
