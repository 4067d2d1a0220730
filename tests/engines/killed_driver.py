"""A driver that is killed again and again in the middle of its fit; `main` is run in a process of its own."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.engines.parted import made_rows, write_files

from privet import Budget
from privet.engines import Files, parted_glm
from privet.errors import PrivetError, SmallEffectiveSample
from privet.estimators import LogisticRegression
from privet.ledger import Account
from privet.plan import ResumableMeter
from privet.plan.run_journal import RunJournal
from privet.problems import facts_of
from privet.solvers import FixedHessian

POINTS = (  # where it dies, and at which release of the plan
    ("before open", 0),
    ("after open", 0),
    ("kept", 2),
    ("after open", 4),
    ("noise drawn", 4),
    ("half a line", 5),
    ("half an opening", 7),
    ("kept", 8),
)
BUDGET = Budget(epsilon=1, delta=1e-6)
STEPS = 8
ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT if hasattr(os, "waitid") else 0


def solved(folder: Path) -> tuple[Any, Any]:
    """A fixed-Hessian descent on files: coefficients and guarantee."""
    problem = parted_glm("logistic", folder / "rows", "y", row_norm=2.0, columns=[f"x{j}" for j in range(5)])
    solver = FixedHessian(steps=STEPS, clip=0.5)
    meter = ResumableMeter(solver.plan(facts_of(problem, "zero_out"), BUDGET), folder / "journal")
    found = solver.run(meter.plan, problem, meter=meter)
    meter.finish()
    return found.coef, found.guarantee


def fitted(folder: Path) -> tuple[Any, Any]:
    """An estimator's fit on files, with an account: coefficients and guarantee."""
    path = folder / "account.db"
    made = Account if path.exists() else Account.create
    account = made(Budget(epsilon=3, delta=1e-6), path)
    model = LogisticRegression(1.0, classes=[0, 1], bounds=(-5, 5), account=account)
    model.fit(Files(str(folder / "rows"), cache=folder / "cache", journal=folder / "journal"), "y")
    return np.append(model.coef_, model.intercept_), model.guarantee_


def dying(at: tuple[str, int], log: Path) -> None:
    """Have this process kill itself at that point; noise that was drawn is noted, with the release that it was for."""
    opening, keeping, write = RunJournal.open, RunJournal.keep, os.write

    def half(descriptor: int, data: Any) -> Any:
        write(descriptor, data[: len(data) // 2])
        return die()

    def opened(self: RunJournal, place: int) -> None:
        if at == ("before open", place):
            die()
        if at == ("half an opening", place):
            os.write = half
        opening(self, place)
        if at == ("after open", place):
            die()

    def kept(self: RunJournal, place: int, value: Any) -> None:
        with log.open("a") as file:
            file.write(json.dumps([place, np.asarray(value).reshape(-1)[:3].tolist()]) + "\n")
        if at == ("noise drawn", place):
            die()
        if at == ("half a line", place):
            os.write = half
        keeping(self, place, value)
        if at == ("kept", place):
            die()

    RunJournal.open, RunJournal.keep = opened, kept  # type: ignore[method-assign]


def slowly(log: Path) -> None:
    """Have this process take some milliseconds at each step; a draw of noise is noted before it is begun."""
    opening, keeping, made = RunJournal.open, RunJournal.keep, ResumableMeter._kept

    def opened(self: RunJournal, place: int) -> None:
        time.sleep(0.004)
        opening(self, place)
        time.sleep(0.004)

    def kept(self: RunJournal, place: int, value: Any) -> None:
        time.sleep(0.004)
        keeping(self, place, value)

    def noted(self: ResumableMeter, name: str, make: Callable[[], Any]) -> Any:
        def drawn() -> Any:
            with log.open("a") as file:
                file.write(f"{self._place_open}\n")
            return make()

        return made(self, name, drawn)

    RunJournal.open, RunJournal.keep = opened, kept  # type: ignore[method-assign]
    ResumableMeter._kept = noted  # type: ignore[method-assign]


def die() -> Any:
    """As `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], None]) -> int:
    """Do it in a process that is forked off; how that ended."""
    return os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1])


def forked(work: Callable[[], None]) -> int:
    """The number of a process that does it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1 if sys.exc_info()[0] else 0)
    return child


def at_random(folder: Path, seed: int) -> None:
    """Kill a fit at moments that are drawn, until one ends by itself; how often it was, and the epsilon it tells."""
    warnings.simplefilter("ignore", SmallEffectiveSample)
    write_files(rows_alone(made_rows()), folder / "rows", [0, 300, 700])
    moments, kills, code = random.Random(seed), 0, -signal.SIGKILL

    def fit() -> None:
        slowly(folder / "log")
        (folder / "epsilon").write_text(repr(fitted(folder)[1].epsilon))

    while code == -signal.SIGKILL:
        before, child = size_of(folder / "journal"), forked(fit)
        while size_of(folder / "journal") == before and not os.waitid(os.P_PID, child, ENDED):
            time.sleep(0.001)  # rows are encoded before, which takes longer than all that is drawn
        time.sleep(moments.uniform(0.0, 0.15))
        os.kill(child, signal.SIGKILL)  # which a child that has ended, and was not waited for, does not feel
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        kills += code == -signal.SIGKILL
    assert code == 0
    sys.stdout.write(json.dumps({"kills": kills, "epsilon": float((folder / "epsilon").read_text())}) + "\n")


def size_of(path: Path) -> int:
    """How long a file is that may not be there yet."""
    return path.stat().st_size if path.exists() else 0


def both(folder: Path) -> None:
    """`main` of either kind, each in a process of its own: what takes longest is to load all that they need."""
    for kind in ("solved", "fitted"):
        (folder / kind).mkdir()
        assert in_child(partial(main, kind, folder / kind)) == 0
    sys.stdout.write("{}\n")


def main(kind: str, folder: Path) -> None:
    """Kill a fit at every point, one after the other, then let it end, twice; what was found as JSON in a file."""
    warnings.simplefilter("ignore", SmallEffectiveSample)
    write_files(rows_alone(made_rows()), folder / "rows", [0, 300, 700])
    fit, log = {"solved": solved, "fitted": fitted}[kind], folder / "log"
    for point in POINTS:

        def killed(at: tuple[str, int] = point) -> None:
            dying(at, log)
            fit(folder)

        assert in_child(killed) == -signal.SIGKILL, point
    found = []
    for _ in range(2):  # the second has all of it from the journal
        dying(("never", 0), log)
        coef, guarantee = fit(folder)
        found.append({"coef": coef.tolist(), "epsilon": guarantee.epsilon, "said": guarantee.details})
    try:
        write_files(rows_alone(made_rows(seed=2)), folder / "rows", [0, 300, 700])
        fit(folder)
        found.append({"refused": ""})
    except PrivetError as error:
        found.append({"refused": str(error)})
    drawn = [json.loads(line) for line in log.read_text().splitlines()]
    (folder / "told").write_text(json.dumps({"found": found, "drawn": drawn}))


def rows_alone(table: dict[str, Any]) -> dict[str, Any]:
    """The table without the column of people."""
    return {name: column for name, column in table.items() if name != "who"}
