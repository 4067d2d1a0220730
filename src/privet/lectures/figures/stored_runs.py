"""The runs behind two kinds of figures, made once and stored in runs.json: they take minutes, their seeds are fixed.

`python docs/measure_runs.py` makes them anew, with their seeds; a slow test holds the file to what the runs give.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

RISK_SEEDS, BRACKET_SEEDS = 12, 4
"""Runs that each stored number is the mean of: of `risk_figure`, of `bracket_figure`."""


def stored_risks(against: str, method: str) -> list[float]:
    """`simulated_risk` of a method at the places of `risk_figure`.

    >>> len(stored_risks("epsilon", "average"))
    4
    """
    return [float(value) for value in _runs()["risk"][against][method]]


def stored_brackets(lecture: str, method: str, against: str) -> list[list[float]]:
    """The numbers of `bracket`, in the order of its fields, along one axis of its grid.

    >>> [len(numbers) for numbers in stored_brackets("wu", "noisy descent", "n")]
    [5, 5, 5, 5]
    """
    return [[float(value) for value in numbers] for numbers in _runs()["bracket"][lecture][method][against]]


@cache
def _runs() -> Any:
    return json.loads(Path(__file__).with_name("runs.json").read_text(encoding="utf-8"))
