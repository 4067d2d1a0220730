"""What takes long is done before Sphinx reads a page, two things at a time and the longest first.

Figures, tutorials and checks of claims hand in their work; what comes of it is kept in this process, which Sphinx
forks when it shares the pages out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple


class Task(NamedTuple):
    """Work to do in another process, about how many seconds it takes, and what to do here with what it returns."""

    seconds: float
    work: Callable[[Any], Any]
    given: Any
    keep: Callable[[Any], None]


TASKS: list[Task] = []


def run_all(app: Any, env: Any, docnames: list[str]) -> None:
    """Do what was handed in; called by Sphinx after all who hand in."""
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        order = sorted(TASKS, key=lambda task: -task.seconds)
        begun = [(task, pool.submit(task.work, task.given)) for task in order]
        for task, done in begun:
            task.keep(done.result())
    TASKS.clear()


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-before-read-docs", run_all, priority=900)
    return {"parallel_read_safe": True}
