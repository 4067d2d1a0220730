"""A driver that is killed: what it drew is counted, what it released stays, the rest is drawn afresh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from privet import Budget
from privet.accounting import epsilon
from privet.clipping import Clip
from privet.ledger import Account
from privet.plan import gradient_plan
from privet.plan.run_journal import RunJournal

ROOT = Path(__file__).parents[2]
SEEN = {0: 1, 4: 2, 5: 1}  # releases that were open when a process died, and how often
pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, and killed by SIGKILL"),
]


def told(call: str) -> dict[str, Any]:
    """What a function of `killed_driver` tells, called in a process of its own."""
    without = "sys.modules['numba'] = None"  # which takes longer to load than all that is summed here
    code = f"import sys, pathlib; {without}; from tests.engines.killed_driver import at_random, both; {call}"
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    env = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def opened(folder: Path) -> Counter[int]:
    """How often each release was opened, by the journal's own lines."""
    lines = [json.loads(line.split(" ", 1)[1]) for line in (folder / "journal").read_text().splitlines()[1:]]
    return Counter(line["open"] for line in lines if "open" in line)


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of two drivers that were killed eight times each."""
    folder = tmp_path_factory.mktemp("drivers")
    told(f"both(pathlib.Path({str(folder)!r}))")
    return folder


@pytest.fixture(scope="module")
def solved(drivers: Path) -> tuple[Path, dict[str, Any]]:
    return drivers / "solved", json.loads((drivers / "solved" / "told").read_text())


def test_a_killed_driver_draws_nothing_that_is_not_counted(solved: tuple[Path, dict[str, Any]]) -> None:
    """However it was killed, each draw of noise is a line of the journal, on the disk before records were read."""
    folder, told = solved
    drawn, counted = Counter(place for place, _ in told["drawn"]), opened(folder)
    assert set(counted) == set(range(9))
    assert all(drawn[place] <= counted[place] for place in drawn)
    assert {place: times - 1 for place, times in counted.items() if times > 1} == SEEN


def test_what_was_interrupted_is_drawn_afresh(solved: tuple[Path, dict[str, Any]]) -> None:
    """Of a release that was drawn twice, no number is the same."""
    _, told = solved
    for place in (4, 5):
        first, *others = [value for at, value in told["drawn"] if at == place]
        assert others
        assert all(a != b for other in others for a, b in zip(first, other, strict=True))


def test_a_resumed_run_releases_what_was_released_before(solved: tuple[Path, dict[str, Any]]) -> None:
    """A run whose journal is whole returns the same coefficients to the last bit, and draws no noise."""
    _, told = solved
    first, second, _ = told["found"]
    assert first["coef"] == second["coef"]
    assert first["epsilon"] == second["epsilon"]
    assert len(told["drawn"]) == 9 + 2  # each once, and those of which noise was drawn when the process died


def test_the_guarantee_counts_every_draw(solved: tuple[Path, dict[str, Any]]) -> None:
    """Epsilon is that of all draws: the plan's, and one more for each that was interrupted."""
    from tests.engines.killed_driver import BUDGET, STEPS
    from tests.engines.parted import in_memory, made_rows

    from privet.problems import facts_of
    from privet.solvers import FixedHessian

    _, told = solved
    plan = FixedHessian(steps=STEPS, clip=0.5).plan(facts_of(in_memory(made_rows()), "zero_out"), BUDGET)
    moment, gradients = (plan[name].event(records=700, neighbours="zero_out", times=1) for name in plan.names)
    every = plan.event + moment + gradients * 3
    found, exact = told["found"][0]["epsilon"], epsilon(every, delta=1e-6, neighbours="zero_out")
    assert found >= exact * (1 - 1e-12)
    assert found == pytest.approx(exact, rel=1e-9)
    assert found > 1.1 * epsilon(plan.event, delta=1e-6, neighbours="zero_out")
    assert "where the run was interrupted" in told["found"][0]["said"]


def test_other_rows_are_not_taken_for_those_of_the_run(drivers: Path) -> None:
    """A fit goes on only with the files it began with, charges once, and each interrupted draw once."""
    folder = drivers / "fitted"
    first, second, other = json.loads((folder / "told").read_text())["found"]
    assert first["coef"] == second["coef"]
    assert "another's at 'journal'" in other["refused"]
    charges = Account(Budget(epsilon=3, delta=1e-6), folder / "account.db").charges
    again = [charge.label for charge in charges[1:]]
    assert len(set(again)) == len(again) == sum(SEEN.values())
    assert all("again" in label for label in again)
    assert not list((folder / "cache").glob("*.tmp*"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_driver_that_is_killed_at_any_moment_counts_every_draw(tmp_path: Path, seed: int) -> None:
    """Killed a dozen times or more, whenever: noise that was so much as begun is in the journal, the guarantee and the
    account, and so is every draw that the journal has beyond the plan.
    """
    found = told(f"at_random(pathlib.Path({str(tmp_path)!r}), {seed})")
    assert found["kills"] >= 12
    begun = Counter(int(line) for line in (tmp_path / "log").read_text().splitlines())
    counted = opened(tmp_path)
    assert set(begun) == set(counted) == set(range(len(counted)))
    assert all(begun[place] <= counted[place] for place in counted)
    beyond = sum(counted.values()) - len(counted)
    assert beyond >= 4
    account = Account(Budget(epsilon=3, delta=1e-6), tmp_path / "account.db")
    plan, *again = [charge.event for charge in account.charges]
    assert len(again) == beyond
    every = plan if not again else plan + sum(again[1:], again[0])
    exact = epsilon(every, delta=1e-6, neighbours=account.neighbours)
    assert exact * (1 - 1e-9) <= found["epsilon"] <= account.epsilon


def test_two_processes_do_not_share_a_journal(tmp_path: Path) -> None:
    """The one that comes second to write stops before it reads a record; so does the other."""
    plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=9, records=100, neighbours="zero_out")
    one, other = (RunJournal(tmp_path / "journal", plan) for _ in range(2))
    one.open(0)
    for each in (other, one):
        with pytest.raises(ValueError, match="one process for each journal"):
            each.open(0 if each is other else 1)
