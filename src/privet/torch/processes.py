"""Several processes that train one model: one draws and charges, all sum, one adds the noise.

The first process draws each batch and tells the others; each sums the clipped gradients of its part; the first adds
the noise of the plan to its own share, and all shares are added up. So batches, sums and noise are those of a single
process, whatever the number: the guarantee does not know of it. What the processes send each other is private, until
all shares are added up.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn

from privet.arrays import IntArray
from privet.errors import PrivetError

T = TypeVar("T")


class Processes:
    """The processes of a run: those of `torch.distributed` if it was set up, e.g. by `torchrun`; else this one alone.

    Examples
    --------
    >>> here = Processes()
    >>> here.count, here.first, here.part(np.array([4, 7, 9]), 100)
    (1, True, array([4, 7, 9]))
    """

    def __init__(self) -> None:
        several = distributed.is_available() and distributed.is_initialized()
        self.rank: int = distributed.get_rank() if several else 0
        self.count: int = distributed.get_world_size() if several else 1

    @property
    def first(self) -> bool:
        """Whether this process draws, charges and adds the noise."""
        return self.rank == 0

    def part(self, drawn: IntArray | None, count: int) -> IntArray | None:
        """This process's part of the batch that the first one drew out of `count` examples; None for all of them."""
        if self.count == 1:
            return drawn
        size = torch.tensor([-1 if drawn is None else len(drawn)])
        distributed.broadcast(size, 0)
        if size < 0:
            return np.arange(self.rank, count, self.count)
        indices = torch.from_numpy(drawn.astype(np.int64)) if self.first and drawn is not None else torch.empty(0)
        indices = indices if self.first else torch.empty(int(size), dtype=torch.int64)
        distributed.broadcast(indices, 0)
        found: IntArray = indices.numpy()[self.rank :: self.count]
        return found

    def total(self, number: int) -> int:
        """The sum of a whole number over all processes."""
        if self.count == 1:
            return number
        found = torch.tensor([number])
        distributed.all_reduce(found)
        return int(found)

    def add_up(self, shares: list[Tensor]) -> None:
        """The sum of each tensor over all processes, in its place; the same bits in each."""
        if self.count == 1:
            return
        flat = torch.cat([share.reshape(-1) for share in shares])
        distributed.all_reduce(flat)
        first = 0
        for share in shares:
            share.copy_(flat[first : first + share.numel()].view_as(share))
            first += share.numel()

    def told(self, values: Any) -> Any:
        """What the first process says: small and plain values."""
        if self.count == 1:
            return values
        said = [values]
        distributed.broadcast_object_list(said, 0)
        return said[0]

    def start_alike(self, model: nn.Module) -> None:
        """The first process's weights and buffers, in all."""
        if self.count == 1:
            return
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                distributed.broadcast(tensor.detach(), 0)

    def once(self, act: Callable[[], T]) -> T | None:
        """Let the first process do something, whose result only it has; if it is refused there, all stop."""
        if self.count == 1:
            return act()
        found: T | None = None
        refused: BaseException | None = None
        if self.first:
            try:
                found = act()
            except BaseException as error:  # noqa: BLE001  # raised below, when the others know
                refused = error
        if self.told(refused is not None):
            raise refused or PrivetError("""Expected the first process to go on, got a refusal there: no process may
                train without it. Its own message says why.""")
        return found
