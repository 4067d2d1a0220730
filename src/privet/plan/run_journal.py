"""What a run has released, on the disk: each release is counted there before records are read, and kept when made."""

import base64
import hashlib
import json
import os
import secrets
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from privet.arrays import Vector
from privet.errors import InvalidParameter
from privet.plan.plan import Plan
from privet.plan.plan_json import plan_to_json

_VERSION = 1


class RunJournal:
    """A file that grows by a line when a release is opened, before its records are read, and by one when it is made.

    Promise: however a process ends, the file counts every draw of noise that may have been begun, and holds every
    release that anybody may have seen but the one that was open; these are public. A line is on the disk when `open` or
    `keep` returns. Two processes with one journal are noticed before either reads another record.
    Edges: a *copy* of the file knows nothing of the draws of the other.

    Parameters
    ----------
    path : of the file, made if it is not there, for its owner alone; of a run that was interrupted, to go on with it
    plan : of the run; a journal of another plan is refused
    of : what else must be the same, as text; kept as a digest

    Examples
    --------
    >>> import tempfile
    >>> from privet.clipping import Clip
    >>> from privet.plan import gradient_plan
    >>> plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=9, records=100, neighbours="zero_out")
    >>> path = Path(tempfile.mkdtemp()) / "fit.journal"
    >>> journal = RunJournal(path, plan)
    >>> journal.open(0); journal.keep(0, np.array([0.5])); journal.open(1); journal.close()
    >>> again = RunJournal(path, plan)             # the process was killed in the middle of the second release
    >>> again.values[0], dict(again.interrupted)
    (array([0.5]), {1: 1})
    """

    def __init__(self, path: str | os.PathLike[str], plan: Plan, *, of: str = "") -> None:
        self.path, self._size, self._descriptor = Path(path).absolute(), 0, -1
        self.values: dict[int, Vector] = {}
        self._opened: Counter[int] = Counter()
        known = {"privet_run": _VERSION, "plan": _digest(plan_to_json(plan)), "of": _digest(of)}
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            lines = self._lines()
            if not lines:
                lines = [{**known, "run": secrets.token_hex(16)}]
                self._add(lines[0])
                on_disk(self.path.parent)
        except OSError as error:
            raise _unusable(error) from None
        if {name: lines[0].get(name) for name in known} != known:
            self.close()
            raise InvalidParameter(f"""Expected the journal of this run, got another's at {self.path.name!r}: it has
                another plan, other settings or other data, and what was released there is not a part of this. Use the
                same call as before, or name another journal for a new run.""")
        self.run: str = lines[0]["run"]
        for line in lines[1:]:
            if "open" in line:
                self._opened[line["open"]] += 1
            else:
                self.values[line["made"]] = _array(line)
        self.interrupted = Counter({at: times - (at in self.values) for at, times in self._opened.items()})
        self.interrupted = +self.interrupted

    def open(self, place: int) -> None:
        """Count a draw for the release at that place of the run; it is on the disk when this returns."""
        self._written({"open": place})

    def keep(self, place: int, value: Vector) -> None:
        """Keep the release at that place, which is public from now on."""
        raw = np.ascontiguousarray(value, dtype="<f8")
        self._written({"made": place, "shape": list(value.shape), "value": base64.b64encode(raw.tobytes()).decode()})

    def close(self) -> None:
        """Leave the file; it stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    def _lines(self) -> list[dict[str, Any]]:
        """All lines; one that was being written when the process ended is cut off, as nothing followed from it."""
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            os.ftruncate(self._descriptor, len(whole))
            os.fsync(self._descriptor)
        self._size = len(whole)
        return [_read(line) for line in whole.splitlines()]

    def _written(self, line: dict[str, Any]) -> None:
        try:
            self._add(line)
        except OSError as error:
            raise _unusable(error) from None

    def _add(self, line: dict[str, Any]) -> None:
        text = json.dumps(line)
        raw = f"{_digest(text)[:16]} {text}\n".encode()
        if os.write(self._descriptor, raw) != len(raw):
            raise OSError("the disk is full")
        os.fsync(self._descriptor)
        self._size += len(raw)
        if os.fstat(self._descriptor).st_size != self._size:
            raise InvalidParameter("""Expected one process for each journal, got lines of another one: both would make
                the rest of the plan, which has it once. What was drawn stays counted. Stop one of them.""")


def _read(line: bytes) -> dict[str, Any]:
    check, _, text = line.decode(errors="replace").partition(" ")
    if check != _digest(text)[:16]:
        raise InvalidParameter("""Expected a journal as it was written, got a file of another kind, or one that was
            changed: nobody knows what was drawn. Bring the right file back, or name another for a new run.""")
    found: dict[str, Any] = json.loads(text)
    return found


def _array(line: dict[str, Any]) -> Vector:
    value: Vector = np.frombuffer(base64.b64decode(line["value"]), dtype="<f8").astype(np.float64)
    return value.reshape(line["shape"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def on_disk(folder: Path) -> None:
    """Make sure that a new file's name is on the disk, where folders can be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _unusable(error: Exception) -> InvalidParameter:
    return InvalidParameter(f"""Expected a journal that can be read and written, got {type(error).__name__}: without it
        nobody knows what was drawn. Check the path, or restore the file.""")
