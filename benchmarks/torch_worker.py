"""One network trained in one mode, in a process of its own: checked, its memory watched, then timed as it is asked.

Run as `python torch_worker.py MODE NETWORK` by `Worker`; never by hand. The clock is the CPU time of the process, all
threads together: on a machine that others use, the time of a wall clock is theirs as well.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import selectors
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE = 300.0  # seconds by the clock until a worker is given up
WARM_UP = 20  # steps before memory is watched: libraries load parts of themselves when they are first worth it
ROUND = 0.1  # seconds of CPU that a round of one mode should take
Reply = dict[str, Any]


class Worker:
    """A mode of one network in a child process; `facts` is what it found out first, or why it failed."""

    def __init__(self, python: str, mode: str, name: str, *, threads: int) -> None:
        limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
        self._child = subprocess.Popen(
            [python, str(Path(__file__).resolve()), mode, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **limits},
        )
        self._steps = 1
        self.facts: Reply = self._read()
        self.rounds: list[Reply] = []
        if "failed" not in self.facts:
            self._steps = max(1, min(100, int(ROUND / max(self._ask()["cpu"], 1e-4))))

    def round(self) -> None:
        """Time some steps more."""
        self.rounds.append(self._ask())

    def _ask(self) -> Reply:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{self._steps}\n")
        self._child.stdin.flush()
        return self._read()

    def _read(self) -> Reply:
        assert self._child.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                self.stop()
                return {"failed": f"no answer in {PATIENCE:g} s"}
        line = self._child.stdout.readline()
        found: Reply = json.loads(line) if line else {"failed": "the process died"}
        return found

    def stop(self) -> None:
        """End the child."""
        self._child.kill()
        self._child.wait()


# ---- the child ------------------------------------------------------------------------------------------------------


def _main(mode: str, name: str) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr

    def say(reply: Reply) -> None:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()

    try:
        step, batch, facts = _set_up(mode, name)
    except Exception as error:
        say({"failed": f"{type(error).__name__}: {str(error)[:200]}"})
        return
    say(facts)
    for line in sys.stdin:
        count = int(line)
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            step(*batch)
        say({"cpu": (time.process_time() - cpu) / count, "wall": (time.perf_counter() - wall) / count})


def _set_up(mode: str, name: str) -> tuple[Any, Any, Reply]:
    """The step to time, its batch, and what is known before: the error of its clipped sum and the memory it takes."""
    import torch
    from torch_models import BATCH, examples
    from torch_modes import ready

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    error = None if mode.startswith("plain") else _error(mode, name)
    made, batch = ready(mode, name=name), examples(name, BATCH[name])
    # fastDP takes no other size than it was told; the others load what they need on small batches
    first = batch if mode.startswith("fastDP") else examples(name, 2)
    for _ in range(WARM_UP):
        made.step(*first)
    _trim()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _memory("VmRSS")
    for _ in range(3):
        made.step(*batch)
    return made.step, batch, {"error": error, "megabytes": _memory("VmHWM") - before, "said": made.said()}


def _error(mode: str, name: str) -> float | None:
    """How far a step without noise is from a loop over examples, relative to the sum; None if names do not match."""
    import torch
    from torch.nn.functional import cross_entropy
    from torch_models import BATCH, examples, network
    from torch_modes import CLIP, ready

    x, y = examples(name, BATCH[name])
    slow = network(name)
    wanted = {key: torch.zeros_like(value) for key, value in slow.named_parameters() if value.requires_grad}
    weights = [value for value in slow.parameters() if value.requires_grad]
    for i in range(len(x)):
        found = torch.autograd.grad(cross_entropy(slow(x[i : i + 1]), y[i : i + 1]), weights)
        norm = math.sqrt(sum(float(part.double().square().sum()) for part in found))
        for total, part in zip(wanted.values(), found, strict=True):
            total += min(1.0, CLIP / norm) * part
    made = ready(mode, name=name, noise=0.0, rate=float(len(x)))
    made.model.load_state_dict(slow.state_dict(), strict=False)
    before = {key: value.detach().clone() for key, value in made.model.named_parameters()}
    made.step(x, y)
    moved = {key: before[key] - value.detach() for key, value in made.model.named_parameters()}
    if not set(wanted) <= set(moved):
        return None
    off = math.sqrt(sum(float((moved[key] - total).double().square().sum()) for key, total in wanted.items()))
    return off / math.sqrt(sum(float(total.double().square().sum()) for total in wanted.values()))


def _memory(key: str) -> float:
    """Resident memory in MB, now or at most; 0 where the system does not tell."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
    return 0.0


def _trim() -> None:
    """Give freed memory back, so that what a step takes is seen."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
