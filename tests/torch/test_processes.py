from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

SCRIPT = """
import sys
import torch
from torch import distributed, nn
from privet import Budget
from privet.clipping import Adaptive
from privet.errors import PrivetError
from privet.ledger import Account
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.torch import PrivateTraining

rank, count, folder, clip = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
torch.set_num_threads(1)
if count > 1:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=count)
torch.manual_seed(rank)  # other weights in each process: the first one's count
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
generator = torch.Generator().manual_seed(5)
data = torch.randn(200, 6, generator=generator), torch.randint(3, (200,), generator=generator)
rule = 0.5 if clip in ("fixed", "resumed") else Adaptive(clip=0.5, count_noise=5.0)
account = Account(Budget(epsilon=1.0 if clip == "refused" else 9.0, delta=1e-6), neighbours="zero_out", filter="renyi")
try:
    run = PrivateTraining(
        model, torch.optim.SGD(model.parameters(), lr=0.5), data, loss=nn.CrossEntropyLoss(reduction="none"),
        epsilon=4, delta=1e-6, steps=6, batch_size=40, clip=rule, account=account if rank == 0 else None,
        random=fixed_seed_invalidates_guarantee(3), journal=f"{folder}/steps" if clip == "resumed" else None,
    )
except PrivetError as error:
    print(type(error).__name__)
    sys.exit(3)
for batch in run:
    run.step(batch)
    if clip == "resumed" and run.steps_made == 3:
        if rank == 0:
            run.save(f"{folder}/last.pt")
        distributed.barrier()
        run = PrivateTraining.resume(
            f"{folder}/last.pt", model, torch.optim.SGD(model.parameters(), lr=0.5), data, journal=f"{folder}/steps",
            loss=nn.CrossEntropyLoss(reduction="none"), random=fixed_seed_invalidates_guarantee(4),
        )
        break
for batch in run:
    run.step(batch)
torch.save([model.state_dict(), run.guarantee.epsilon, run.steps_made], f"{folder}/{count}-{rank}.pt")
"""


def run(count: int, folder: Path, clip: str) -> list[int]:
    """Start so many processes; their return codes."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    started = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, str(rank), str(count), str(folder), clip], env=environment)
        for rank in range(count)
    ]
    return [process.wait(timeout=120) for process in started]


@pytest.mark.medium
@pytest.mark.parametrize("clip", ["fixed", "adaptive"])
def test_the_number_of_processes_changes_nothing(clip: str, tmp_path: Path) -> None:
    """One process and three: the same batches, sums and noise, the same guarantee, the same weights in all."""
    for count in (1, 3):
        folder = tmp_path / str(count)
        folder.mkdir()
        assert run(count, folder, clip) == [0] * count
    alone = torch.load(tmp_path / "1" / "1-0.pt", weights_only=True)
    for rank in range(3):
        found = torch.load(tmp_path / "3" / f"3-{rank}.pt", weights_only=True)
        assert found[1:] == alone[1:]
        for name, value in found[0].items():
            torch.testing.assert_close(value, alone[0][name], rtol=1e-5, atol=1e-5)


@pytest.mark.medium
def test_a_refusal_stops_all_processes(tmp_path: Path) -> None:
    """Where the first process's account has not enough left, no other process trains, or waits for ever."""
    assert run(2, tmp_path, "refused") == [3, 3]


@pytest.mark.medium
def test_several_processes_resume_with_one_journal(tmp_path: Path) -> None:
    """The first process counts the steps for all: a run that is resumed makes the rest of its plan, once."""
    assert run(2, tmp_path, "resumed") == [0, 0]
    found = [torch.load(tmp_path / f"2-{rank}.pt", weights_only=True) for rank in range(2)]
    assert [made for _, _, made in found] == [6, 6]
    assert all(torch.equal(value, found[1][0][name]) for name, value in found[0][0].items())
    assert (tmp_path / "steps").read_bytes().splitlines()[1] == b"......"
