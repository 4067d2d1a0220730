"""Checkpoints: steps that ran are charged, not those that survived; no random state; nothing that could run code."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import privet  # noqa: E402
from privet.clipping import Adaptive  # noqa: E402
from privet.errors import InvalidParameter, PlanFormat  # noqa: E402
from privet.torch import PrivateTraining  # noqa: E402
from privet.torch.step_journal import StepJournal  # noqa: E402

CROSS = nn.CrossEntropyLoss(reduction="none")
ASKED: dict[str, Any] = {"loss": CROSS, "epsilon": 2.0, "delta": 1e-6, "steps": 8, "batch_size": 20}


def data(count: int = 100) -> Any:
    x = torch.sin(torch.arange(3.0 * count)).reshape(count, 3)
    return TensorDataset(x, (x[:, 0] > 0).long())


def parts() -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def begun(folder: Path, dataset: Any = None, **changes: Any) -> PrivateTraining:
    asked = ASKED | {"journal": folder / "run.steps"} | changes
    return PrivateTraining(*parts(), data() if dataset is None else dataset, **asked)


def again(folder: Path, dataset: Any = None, **changes: Any) -> PrivateTraining:
    asked: dict[str, Any] = {"journal": folder / "run.steps", "loss": CROSS} | changes
    return PrivateTraining.resume(folder / "last.pt", *parts(), data() if dataset is None else dataset, **asked)


def steps(run: PrivateTraining, count: int) -> None:
    for batch in run:
        run.step(batch)
        count -= 1
        if not count:
            break


def test_a_run_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    """Weights, optimiser state, average, the clip that adapts and what the user added are those that were saved."""
    run = begun(tmp_path, clip=Adaptive(clip=1.0, count_noise=5.0), ema=0.9)
    steps(run, 3)
    run.save(tmp_path / "last.pt", extra={"schedule": {"last_epoch": 3}})
    next_one = again(tmp_path)
    assert next_one.plan == run.plan
    assert (next_one.steps_made, next_one.steps_left) == (3, 5)
    assert torch.equal(next_one.model.weight, run.model.weight)
    assert torch.equal(next_one.averaged().weight, run.averaged().weight)
    assert next_one.extra == {"schedule": {"last_epoch": 3}}
    assert next_one._private.meter.clips == run._private.meter.clips != {}
    state = [r.optimizer.state_dict()["state"][0]["exp_avg"] for r in (run, next_one)]
    assert torch.equal(*state)
    steps(next_one, 99)
    assert (next_one.steps_left, next_one.guarantee) == (0, run.guarantee)


def test_steps_after_the_checkpoint_are_charged_though_they_are_lost(tmp_path: Path) -> None:
    """Saved after 2, gone on to 5: resumed from the checkpoint there are 3 left, not 6."""
    run = begun(tmp_path)
    steps(run, 2)
    run.save(tmp_path / "last.pt")
    steps(run, 3)
    spent = run.epsilon_spent
    found = again(tmp_path)
    assert (found.steps_made, found.steps_left, found.epsilon_spent) == (5, 3, spent)
    steps(found, 99)
    assert again(tmp_path).steps_left == 0
    assert list(again(tmp_path)) == []


def test_a_step_is_on_the_disk_before_its_batch_is_drawn(tmp_path: Path) -> None:
    """A batch that was drawn and never stepped is counted."""
    run = begun(tmp_path)
    run.save(tmp_path / "last.pt")
    next(iter(run))
    assert again(tmp_path).steps_made == 1


KILLED = """
import sys, torch
from pathlib import Path
from torch import nn
from torch.utils.data import TensorDataset
from privet.torch import PrivateTraining
folder = Path(sys.argv[1])
x = torch.sin(torch.arange(300.0)).reshape(100, 3)
model = nn.Linear(3, 2)
run = PrivateTraining(model, torch.optim.Adam(model.parameters(), lr=0.1), TensorDataset(x, (x[:, 0] > 0).long()),
    loss=nn.CrossEntropyLoss(reduction="none"), epsilon=2.0, delta=1e-6, steps=1000, batch_size=5,
    journal=folder / "run.steps")
for batch in run:
    run.step(batch)
    if run.steps_made == 3:
        run.save(folder / "last.pt")
    print(run.steps_made, flush=True)
"""


@pytest.mark.medium
def test_a_killed_run_resumes_with_the_steps_that_ran(tmp_path: Path) -> None:
    """kill -9 in mid-run: what it printed as made is charged, and the whole is as many steps as planned."""
    source = str(Path(privet.__file__).parents[1])
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": source})
    assert process.stdout is not None
    made = 0
    deadline = time.monotonic() + 120
    while made < 12 and time.monotonic() < deadline:
        made = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    made = max([made, *map(int, process.stdout.read().split())])
    process.wait()
    process.stdout.close()
    run = again(tmp_path)
    assert made <= run.steps_made <= made + 1
    assert run.steps_made + run.steps_left == 1000
    assert run.guarantee.epsilon <= 2.0


def test_a_checkpoint_needs_the_journal_of_its_run(tmp_path: Path) -> None:
    """None, another run's, an older copy, one that is gone: refused, as nobody knows how many steps were made."""
    with pytest.raises(InvalidParameter, match="journal="):
        PrivateTraining(*parts(), data(), **ASKED).save(tmp_path / "none.pt")
    run = begun(tmp_path)
    steps(run, 2)
    older = (tmp_path / "run.steps").read_bytes()
    steps(run, 1)
    run.save(tmp_path / "last.pt")
    begun(tmp_path, journal=tmp_path / "other.steps")
    with pytest.raises(InvalidParameter, match="of the run that wrote"):
        again(tmp_path, journal=tmp_path / "other.steps")
    (tmp_path / "older.steps").write_bytes(older)
    with pytest.raises(InvalidParameter, match="older copy"):
        again(tmp_path, journal=tmp_path / "older.steps")
    with pytest.raises(InvalidParameter, match="can be read and written"):
        again(tmp_path, journal=tmp_path / "gone.steps")
    assert not (tmp_path / "gone.steps").exists()
    with pytest.raises(InvalidParameter, match="Go on with that run"):
        begun(tmp_path)


def test_two_processes_on_one_journal_are_noticed(tmp_path: Path) -> None:
    """The second to write stops before it reads an example; both steps are counted."""
    run = begun(tmp_path)
    run.save(tmp_path / "last.pt")
    twin = again(tmp_path)
    steps(run, 1)
    with pytest.raises(InvalidParameter, match="one process"):
        next(iter(twin))
    assert again(tmp_path).steps_made == 2


def test_a_loader_begins_a_new_pass_and_the_old_one_counts_whole(tmp_path: Path) -> None:
    """Saved in the middle of a pass of 4, the rest of it is given up: no example is read more often than charged."""
    loader = DataLoader(data(), batch_size=30)
    with pytest.warns(privet.errors.NoAmplification):
        run = begun(tmp_path, loader, steps=None, batch_size=None, epochs=3)
    steps(run, 5)
    run.save(tmp_path / "last.pt")
    found = again(tmp_path, loader)
    assert (found.steps_made, found.steps_left) == (8, 4)
    with pytest.raises(InvalidParameter, match="kind that the plan"):
        again(tmp_path)


def test_other_data_than_the_plan_s_are_refused(tmp_path: Path) -> None:
    """Where the number of examples is public, it is that of the run before."""
    run = begun(tmp_path)
    run.save(tmp_path / "last.pt")
    with pytest.raises(InvalidParameter, match="another number"):
        again(tmp_path, data(101))


def test_no_generator_state_is_in_the_file(tmp_path: Path) -> None:
    """Names and sizes of all that is stored: the weights, the optimiser's two moments, and plain numbers."""
    run = begun(tmp_path)
    steps(run, 1)
    run.save(tmp_path / "last.pt")
    body = torch.load(tmp_path / "last.pt", weights_only=True)
    own = {"average", "batch_size", "clips", "extra", "made", "plan", "privet_checkpoint", "run"}
    assert set(body) == own | {"model", "optimizer"}
    assert set(body["optimizer"]["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    assert set(body["model"]) == {"weight", "bias"}


def test_a_file_that_could_run_code_is_not_read(tmp_path: Path) -> None:
    """A pickle, another library's file, an edited plan: refused; an object in extra is refused when it is saved."""
    run = begun(tmp_path)
    for odd in (run, tmp_path, nn.Linear(1, 1)):
        with pytest.raises(InvalidParameter, match="state_dict"):
            run.save(tmp_path / "last.pt", extra={"odd": odd})
    assert not (tmp_path / "last.pt").exists()
    others: list[Any] = [
        {"model": {}},
        [1],
        {"privet_checkpoint": 9},
        {"privet_checkpoint": 1, "plan": "{}", "steps": 3},
    ]
    for wrong in others:
        torch.save(wrong, tmp_path / "last.pt")
        with pytest.raises((InvalidParameter, PlanFormat)):
            again(tmp_path)
    (tmp_path / "last.pt").write_bytes(pickle.dumps(print))
    with pytest.raises(InvalidParameter, match=r"run\.save"):
        again(tmp_path)
    run.save(tmp_path / "last.pt")
    body = torch.load(tmp_path / "last.pt", weights_only=True)
    body["plan"] = body["plan"].replace('"times": 8', '"times": 80')
    torch.save(body, tmp_path / "last.pt")
    with pytest.raises(PlanFormat, match="edited"):
        again(tmp_path)


def test_a_checkpoint_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk fails in the middle, the file of before is still there."""
    run = begun(tmp_path)
    run.save(tmp_path / "last.pt")
    before = (tmp_path / "last.pt").read_bytes()

    def fails(descriptor: int) -> None:
        raise OSError("full")

    steps(run, 1)
    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(OSError, match="full"):
        run.save(tmp_path / "last.pt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last.pt", "run.steps"]
    assert (tmp_path / "last.pt").read_bytes() == before


def test_a_full_disk_stops_the_run_before_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that could not be counted is not made."""
    run = begun(tmp_path)

    def fails(descriptor: int) -> None:
        raise OSError("full")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(InvalidParameter, match="can be read and written"):
        next(iter(run))
    assert run.steps_made == 0


def test_a_journal_is_of_one_plan_and_one_run(tmp_path: Path) -> None:
    """Neither another plan's digest nor another run's name opens it, nor a file of another kind."""
    journal = StepJournal.create(tmp_path / "j", plan="a")
    journal.charge()
    for plan, run in (("b", journal.run), ("a", "0" * 32)):
        with pytest.raises(InvalidParameter, match="of the run that wrote"):
            StepJournal.reopen(tmp_path / "j", plan=plan, run=run)
    (tmp_path / "text").write_text("steps: 3")
    with pytest.raises(InvalidParameter, match="of the run that wrote"):
        StepJournal.reopen(tmp_path / "text", plan="a", run=journal.run)
    with pytest.raises(InvalidParameter, match="can be read and written"):
        StepJournal.create(tmp_path / "no folder" / "j", plan="a")
