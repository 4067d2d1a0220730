from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

SCRIPT = """
import os
import sys
import torch
from torch import distributed, nn
from privet import Budget
from privet.clipping import Adaptive
from privet.errors import PrivetError
from privet.ledger import Account
from privet.noise import banded_inverse_square_root
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Cyclic
from privet.torch import PrivateTraining, Snapshots, fit

rank, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
if count > 1:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=count)
generator = torch.Generator().manual_seed(5)
data = torch.randn(200, 6, generator=generator), torch.randint(3, (200,), generator=generator)
asked = {"loss": nn.CrossEntropyLoss(reduction="none"), "epsilon": 4, "delta": 1e-6, "batch_size": 40}
more = {
    "adaptive": {"clip": Adaptive(clip=0.5, count_noise=5.0)},
    "correlated": {"sampling": Cyclic(batch=40), "correlation": banded_inverse_square_root(3)},
    "people": {"groups": [f"{i % 90}" for i in range(200)]},
    "snapshots": {"snapshots": Snapshots(every=3, difference_clip=0.3)},
}

def trained(case):
    torch.manual_seed(rank)  # other weights in each process: the first one's count
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer, random = torch.optim.SGD(model.parameters(), lr=0.5), fixed_seed_invalidates_guarantee(3)
    if case == "fit":
        kept = {"journal": f"{folder}/fit.steps", "checkpoint": f"{folder}/fit.pt", "validation": [d + 0 for d in data]}
        for _ in range(2):  # the second call finds that nothing is left
            found = fit(model, data, optimizer=optimizer, random=random, epochs=2, **kept, **asked)
        return model, found.guarantee.epsilon, len(found.history)
    settings = {"clip": 0.5, "steps": 6} | asked | more.get(case, {})
    if rank == 0 and case in ("fixed", "refused"):
        epsilon = 1.0 if case == "refused" else 9.0
        settings["account"] = Account(Budget(epsilon=epsilon, delta=1e-6), neighbours="zero_out", filter="renyi")
    journal = f"{folder}/steps" if case == "resumed" else None
    try:
        run = PrivateTraining(model, optimizer, data, random=random, journal=journal, **settings)
    except PrivetError as error:
        print(type(error).__name__, flush=True)
        distributed.barrier()  # all are refused
        os._exit(3)  # at an ordinary end PyTorch's own threads abort the process now and then
    for batch in run:
        run.step(batch)
        if case == "resumed" and run.steps_made == 3:
            if rank == 0:
                run.save(f"{folder}/last.pt")
            distributed.barrier()
            again = {"journal": journal, "loss": asked["loss"], "random": fixed_seed_invalidates_guarantee(4)}
            run = PrivateTraining.resume(f"{folder}/last.pt", model, optimizer, data, **again)
            break
    for batch in run:
        run.step(batch)
    return model, run.guarantee.epsilon, run.steps_made

for case in sys.argv[4:]:
    model, epsilon, made = trained(case)
    torch.save([model.state_dict(), epsilon, made], f"{folder}/{case}-{rank}.pt")
"""
CASES = ["fixed", "adaptive", "correlated", "people", "snapshots", "fit"]
SEVERAL = [*CASES, "resumed", "refused"]  # the last one ends a process


def run(count: int, folder: Path, *cases: str) -> list[int]:
    """Start so many processes; their return codes."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    started = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, str(rank), str(count), str(folder), *cases], env=environment)
        for rank in range(count)
    ]
    return [process.wait(timeout=300) for process in started]


@pytest.mark.medium
def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    """One process and three: the same batches, sums and noise, the same guarantee, the same weights in all.

    With a clip that adapts, noise that is correlated, people of several rows, snapshots, and in one call. Then, as to
    start a process costs more than to train in it, in the three: the first process counts the steps for all, and a run
    that is resumed makes the rest of its plan, once; and where the first process's account has not enough left, no
    other process trains, or waits for ever.
    """
    alone, several = tmp_path / "1", tmp_path / "3"
    alone.mkdir()
    several.mkdir()
    assert run(1, alone, *CASES) == [0]
    assert run(3, several, *SEVERAL) == [3, 3, 3]  # refused
    for case in CASES:
        first = torch.load(alone / f"{case}-0.pt", weights_only=True)
        for rank in range(3):
            found = torch.load(several / f"{case}-{rank}.pt", weights_only=True)
            assert found[1:] == first[1:]
            for name, value in found[0].items():
                torch.testing.assert_close(value, first[0][name], rtol=1e-5, atol=1e-5)
    resumed = [torch.load(several / f"resumed-{rank}.pt", weights_only=True) for rank in range(3)]
    assert [made for _, _, made in resumed] == [6, 6, 6]
    assert all(torch.equal(value, other[0][name]) for name, value in resumed[0][0].items() for other in resumed)
    assert (several / "steps").read_bytes().splitlines()[1] == b"......"
    assert not list(several.glob("refused-*"))
