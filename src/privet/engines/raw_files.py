"""Rows as they are in Arrow files, for their owner alone, mapped into memory."""

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privet.engines.part import Fingerprint, Part, no_room


def write_batch(batch: Any, folder: Path, ending: str) -> Part:
    """Write a batch of rows to a file of `folder`, for its owner alone; its name tells nothing.

    Examples
    --------
    >>> import tempfile, pyarrow as pa
    >>> part = write_batch(pa.record_batch({"age": [31, 44]}), Path(tempfile.mkdtemp()), ".raw")
    >>> mapped_batch(part).num_rows
    2
    """
    return write_batches([batch], folder, ending)


def write_batches(batches: Sequence[Any], folder: Path, ending: str) -> Part:
    """The same, with several batches of the same columns in one file."""
    import pyarrow as pa

    path = folder / f"{uuid.uuid4().hex}{ending}"
    try:
        with (
            open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
            pa.ipc.new_file(file, batches[0].schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise no_room(folder, error) from None
    return Part(str(path), Fingerprint.of(str(path)))


def named_only(folder: Path, parts: Sequence[Part]) -> None:
    """Remove files that no answer names, e.g. of a task that was run twice."""
    named = {part.path for part in parts}
    for path in folder.iterdir():
        if str(path) not in named:
            path.unlink(missing_ok=True)


def mapped_batch(part: Part, place: int = 0) -> Any:
    """The batch that a file holds, or one of several, mapped. Private."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(part.path)).get_batch(place)
