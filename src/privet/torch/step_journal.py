"""Steps charged, on the disk before they are made: what a killed run leaves for the next one to count."""

import json
import os
import secrets
from pathlib import Path

from privet.errors import InvalidParameter
from privet.plan.run_journal import on_disk

_VERSION = 1


class StepJournal:
    """A file that grows by a byte for each step, on the disk before the step's records are read.

    Promise: however the process ends, the file counts every step that was begun. It only grows; two processes with one
    journal are noticed before either reads another record. A file that is gone is never made again.
    Edges: a *copy* of the file knows nothing of the steps of the other.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.steps"
    >>> journal = StepJournal.create(path, plan="3f")
    >>> journal.charge(); journal.charge(); journal.close()
    >>> again = StepJournal.reopen(path, plan="3f", run=journal.run)
    >>> again.steps
    2
    """

    def __init__(self, descriptor: int, path: Path, *, run: str, header: int, steps: int) -> None:
        self._descriptor, self.path, self.run = descriptor, path, run
        self._header, self.steps = header, steps

    @classmethod
    def create(cls, path: str | Path, *, plan: str) -> "StepJournal":
        """Make the journal of a new run of the plan with that digest; refused where there is a file."""
        run, place = secrets.token_hex(16), Path(path).resolve()
        line = json.dumps({"privet_steps": _VERSION, "run": run, "plan": plan}).encode() + b"\n"
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            raise InvalidParameter(f"""Expected no file at journal={place.name!r}, got one: it counts the steps of a run
                before, which would be forgotten. Go on with that run: PrivateTraining.resume(...), or name another
                journal for a new one.""") from None
        except OSError as error:
            raise _unusable(error) from None
        try:
            _all_of(descriptor, line)
            on_disk(place.parent)
        except OSError as error:
            raise _unusable(error) from None
        return cls(descriptor, place, run=run, header=len(line), steps=0)

    @classmethod
    def reopen(cls, path: str | Path, *, plan: str, run: str) -> "StepJournal":
        """Go on with the journal of `run`; refused if it is not there, or of another run or plan."""
        place = Path(path).resolve()
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_APPEND)
            with place.open("rb") as file:
                first = file.readline(4096)
            size = os.fstat(descriptor).st_size
        except OSError as error:
            raise _unusable(error) from None
        try:
            told = json.loads(first)
            fits = (told["privet_steps"], told["run"], told["plan"]) == (_VERSION, run, plan) and first.endswith(b"\n")
        except (ValueError, KeyError, TypeError):
            fits = False
        if not fits:
            os.close(descriptor)
            raise InvalidParameter(f"""Expected the journal of the run that wrote the checkpoint, got another file at
                {place.name!r}: nobody knows how many steps were made. Use the journal that was set up with the run.""")
        return cls(descriptor, place, run=run, header=len(first), steps=size - len(first))

    def charge(self) -> None:
        """Count one step; it is on the disk when this returns."""
        try:
            _all_of(self._descriptor, b".")
            size = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise _unusable(error) from None
        self.steps += 1
        if size != self._header + self.steps:
            raise InvalidParameter("""Expected one process for each journal, got steps of another one: both would make
                the rest of the plan, which has them once. Stop one of them, and resume from its checkpoint.""")

    def close(self) -> None:
        """Leave the file; it stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    @staticmethod
    def remove(journal: "StepJournal | None") -> None:
        """Take back the journal, if there is one, of a run that never began."""
        if journal is not None:
            journal.close()
            journal.path.unlink()

    def __del__(self) -> None:
        self.close()


def _all_of(descriptor: int, data: bytes) -> None:
    if os.write(descriptor, data) != len(data):
        raise OSError("the disk is full")
    os.fsync(descriptor)


def _unusable(error: Exception) -> InvalidParameter:
    return InvalidParameter(f"""Expected a journal that can be read and written, got {type(error).__name__}: without it
        nobody knows how many steps were made. Check the path, or restore the file.""")
