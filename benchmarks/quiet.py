"""Rounds of a benchmark that others did not disturb: how much of the machine they took meanwhile."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

QUIET = 0.05  # of a core that others may take in a round
_Found = TypeVar("_Found")


def busy() -> float:
    """CPU seconds that all of this machine's processes have taken, and what its host gave to others meanwhile."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    return sum(int(fields[i]) for i in (0, 1, 2, 5, 6, 7)) / os.sysconf("SC_CLK_TCK")


def ours() -> float:
    """CPU seconds of all processes of this session: ours, and those that we started."""
    total, here = 0, str(os.getsid(0))
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) if fields[3] == here else 0
    return total / os.sysconf("SC_CLK_TCK")


def watched(work: Callable[[], _Found]) -> tuple[_Found, float]:
    """What it returns, and how much of a core others took meanwhile."""
    others, start = busy() - ours(), time.perf_counter()
    found = work()
    return found, max(0.0, (busy() - ours() - others) / (time.perf_counter() - start))


def undisturbed(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rounds in which others took least: all below a twentieth of a core, and a third of them at least."""
    ranked = sorted(rounds, key=lambda each: each["others"])
    quiet = [each for each in ranked if each["others"] <= QUIET]
    return max(quiet, ranked[: max(3, len(ranked) // 3)], key=len)
