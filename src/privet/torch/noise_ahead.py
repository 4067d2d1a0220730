"""Noise for the next step, drawn on a spare core while the model computes."""

import os
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NoReturn

import torch

from privet._checks import whole
from privet.errors import InvalidParameter
from privet.randomness.lineage import lineage
from privet.torch.float_noise import UNIT, FloatNoise, as_float32, check_stddev, in_one_row, no_copy, write_back

_LIVE: "weakref.WeakSet[NoiseAhead]" = weakref.WeakSet()
_FORKS_ARE_SEEN = threading.Event()


def _before_fork() -> None:
    """Let threads finish what they draw: a child would inherit whatever lock of a library they hold at that moment."""
    for ahead in list(_LIVE):
        ahead.settle()


class NoiseAhead:
    """One buffer of standard normals, filled by a thread of its own between `prepare` and `add_`, and used once.

    Promise: no noise is used twice: it is given up before it is waited for, by one caller alone, and a forked child
    neither waits for its parent's thread nor uses its parent's noise; `os.fork` waits until nothing is being drawn.
    Memory is one float32 buffer of `size`. Nothing of it can be copied, pickled or put into a checkpoint. Words of a
    fixed seed are drawn when they are asked for, so that a run that is repeated is the same run; so is all noise where
    there is one core only.

    Parameters
    ----------
    noise : where normals come from
    size : how many coordinates a step has; public

    Examples
    --------
    >>> ahead = NoiseAhead(FloatNoise(), 60_000)
    >>> ahead.prepare()  # returns at once; the forward pass goes here
    >>> weights, bias = torch.zeros(100, 500), torch.zeros(10_000)
    >>> ahead.add_([weights, bias], 3.0)
    >>> [2.5 < part.std().item() < 3.5 for part in (weights, bias)]
    [True, True]
    """

    def __init__(self, noise: FloatNoise, size: int) -> None:
        because, use = "the buffer has one place for each coordinate", "Pass how many numbers the gradients have."
        self.noise = noise
        self.size = whole("size", size, because=because, use=use)
        self._worth = _cores() > 1 and not noise.why_invalid
        self._start()
        _LIVE.add(self)
        if not _FORKS_ARE_SEEN.is_set() and hasattr(os, "register_at_fork"):
            _FORKS_ARE_SEEN.set()
            os.register_at_fork(before=_before_fork)

    def _start(self) -> None:
        """Everything that a fork must not take along."""
        self._buffer = torch.empty(self.size)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="privet-noise")
        self._pending: Future[None] | None = None
        self._lock = threading.Lock()
        self._process = lineage()

    def prepare(self) -> None:
        """Begin to draw the noise of the next `add_`, if that was not done yet; returns at once."""
        self._alone()
        if self._worth:
            with self._lock:
                self._submit()

    def add_(self, tensors: Sequence[torch.Tensor], stddev: float) -> None:
        """Add noise to tensors of floats, `size` numbers together, in place, as `FloatNoise.add_` does."""
        found = sum(tensor.numel() for tensor in tensors)
        if found != self.size:
            raise InvalidParameter(f"""Expected tensors of {self.size:,} numbers together, got {found:,}: some would be
                left without noise. Pass all gradients of the step.""")
        scale = float(check_stddev(stddev))
        tensors = in_one_row(tensors)
        rows = [as_float32(tensor) for tensor in tensors]
        self._alone()
        with self._lock, torch.no_grad():
            pending = self._submit()
            self._pending = None  # given up before it is waited for: whatever happens now, it is not used again
            pending.result()
            parts = torch.split(self._buffer, [row.numel() for row in rows])
            for tensor, row, part in zip(tensors, rows, parts, strict=True):
                row.add_(part.to(row.device), alpha=scale)
                write_back(tensor, row)

    def settle(self) -> None:
        """Wait until nothing is being drawn; what was drawn stays for the next `add_`."""
        if self._process == lineage():
            with self._lock:
                if self._pending is not None:
                    wait([self._pending])

    def _submit(self) -> Future[None]:
        """The filling of the buffer that is under way, or a new one; without a thread it is done on return."""
        if self._pending is None:
            if self._worth:
                self._pending = self._pool.submit(self.noise.fill_array, self._buffer.numpy(), UNIT)
            else:
                self._pending = Future()
                self.noise.fill_array(self._buffer.numpy(), UNIT)
                self._pending.set_result(None)
        return self._pending

    def _alone(self) -> None:
        if self._process != lineage():  # a forked child: thread and noise are its parent's
            self._start()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise no_copy()


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
