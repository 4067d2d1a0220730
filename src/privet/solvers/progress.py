"""A line on the terminal for whoever waits longer than two seconds; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

_PATIENCE = 2.0  # seconds before the line appears
_EVERY = 0.2  # seconds between two looks of it


def shown(steps: int, what: str) -> Iterator[int]:
    """Count 0, 1, …, steps − 1; on a terminal, show how far it got. Shows no number that is not public."""
    start = time.monotonic()
    due = start + _PATIENCE
    visible = False
    try:
        for step in range(steps):
            yield step
            now = time.monotonic()
            if now >= due and sys.stderr.isatty():
                left = (now - start) / (step + 1) * (steps - step - 1)
                sys.stderr.write(f"\r{what}: step {step + 1:,} of {steps:,}, about {left:.0f} s left ")
                sys.stderr.flush()
                visible, due = True, now + _EVERY
    finally:
        if visible:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
