"""One library in one process: asked over a pipe, timed, its memory watched, stopped when it takes too long.

Run as `python worker.py ADAPTER` by `Worker`; never by hand. All libraries run with one thread and the same clock.
"""

from __future__ import annotations

import json
import math
import os
import resource
import selectors
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cases import Case, Phase, from_dict
from peers import ADAPTERS, Unsupported, privet_bounds

ADDRESS_SPACE = 12 * 2**30  # bytes; a peer that wants more gets a MemoryError, and the machine stays up
PATIENCE = 4  # a busy machine is not the library's fault: time-outs count CPU, and the clock only this many times over
QUICK = 0.3  # seconds; an answer slower than this is not asked again for a better median
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
Reply = dict[str, Any]


class Worker:
    """A library at one setting, in a child process that is started again after a crash or a time-out."""

    def __init__(self, adapter: str, *, timeout: float) -> None:
        self.adapter = adapter
        self.timeout = timeout
        self._child: subprocess.Popen[str] | None = None

    def ask(self, case: Case, *, what: str = "answer", repeats: int = 1) -> Reply:
        """A dictionary with "value", "cpu", "wall", "peak_mb"; or with "failed" and the reason."""
        if self._child is None or self._child.poll() is not None:
            self._start()
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps({"case": case.to_dict(), "what": what, "repeats": repeats}) + "\n")
            child.stdin.flush()
        except BrokenPipeError:
            self.stop()
            return {"failed": "died before it was asked"}
        line = self._read(self.timeout)
        if line is None:
            self.stop()
            return {"failed": f"no answer in {self.timeout:g} s of CPU"}
        if not line:
            self.stop()
            return {"failed": "the process died"}
        reply: Reply = json.loads(line)
        return reply

    def _start(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), self.adapter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )
        self._read(120.0)  # imports and one warm-up question do not count

    def _read(self, timeout: float) -> str | None:
        """The next line; None once the child has used `timeout` CPU seconds, or PATIENCE times as long by the clock."""
        child = self._child
        assert child is not None
        assert child.stdout is not None
        start, used = time.monotonic(), _cpu_seconds(child.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while not selector.select(0.5):
                elapsed = time.monotonic() - start
                if _cpu_seconds(child.pid) - used > timeout or elapsed > PATIENCE * timeout:
                    return None
        return child.stdout.readline()

    def stop(self) -> None:
        """End the child, if there is one."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # what was still unwritten no longer matters
                        pipe.close()
            self._child = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process so far; 0 where the system does not tell, so that only the clock counts."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


# ---- the child ------------------------------------------------------------------------------------------------------


def _peak_mb() -> float:
    """The largest memory this process held since `_forget_peak`, in MB; since its start where that is not known."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _forget_peak() -> None:
    with suppress(OSError):  # not Linux: peaks are then those of the whole process, which is larger, never smaller
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _measure(ask: Callable[[Case], Any], case: Case, repeats: int) -> Reply:
    _forget_peak()
    cpu: list[float] = []
    wall: list[float] = []
    value: Any = None
    for k in range(repeats + 1):
        question = case if k == 0 else case.nudged(k)
        before_cpu, before = time.process_time(), time.perf_counter()
        found = ask(question)
        cpu.append(time.process_time() - before_cpu)
        wall.append(time.perf_counter() - before)
        if k == 0:
            value = found
            if wall[0] > QUICK:
                break
    later = slice(1, None) if len(cpu) > 1 else slice(None)
    return {
        "value": value,
        "cpu": statistics.median(cpu[later]),
        "first_cpu": cpu[0],
        "wall": statistics.median(wall[later]),
        "peak_mb": _peak_mb(),
    }


def _reply(adapter: str, order: Reply) -> Reply:
    case = from_dict(order["case"])
    accountant = "fourier" if adapter == "privet_fourier" else "auto"
    ask: Callable[[Case], Any] = ADAPTERS[adapter].answer
    if order["what"] == "bounds":
        ask = lambda c: privet_bounds(c, accountant=accountant)  # noqa: E731  # one line, used once
    try:
        reply = _measure(ask, case, int(order["repeats"]))
    except Unsupported as reason:
        return {"unsupported": str(reason)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]}
    if isinstance(reply["value"], float) and math.isnan(reply["value"]):
        return {"failed": "returned NaN"}
    return reply


def _serve(adapter: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    easy = Case(
        name="warm-up",
        neighbours="add_remove",
        phases=(Phase(kind="gaussian", noise=2.0, rate=0.01, steps=10),),
        asks="epsilon",
        delta=1e-5,
    )
    ready = _reply(adapter, {"case": easy.to_dict(), "what": "answer", "repeats": 1})
    answers.write(json.dumps(ready) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_reply(adapter, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve(sys.argv[1])
