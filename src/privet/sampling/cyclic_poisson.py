"""Poisson batches from one group of records after the other: the sampling that amplifies banded strategies."""

from dataclasses import dataclass

import numpy as np

from privet._checks import between, whole
from privet.accounting import Event
from privet.arrays import IntArray
from privet.errors import NoProvenBound
from privet.privacy import Neighbours
from privet.randomness import Random, binomial, choose


@dataclass(frozen=True, kw_only=True, slots=True)
class CyclicPoisson:
    """Record i may join the steps i, i + groups, i + 2·groups, …, each independently with probability `sampling_rate`.

    Promise: steps of other groups cost a record nothing, so it is exposed to ⌈steps ÷ groups⌉ sampled releases. The
    group of a record is its place modulo `groups`, in public: "add_remove" is refused, as one that joins moves others.
    Noise may be correlated over `groups` steps by a banded strategy at the same price: docs/proofs/correlated.md.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> batches = CyclicPoisson(sampling_rate=0.1, groups=10)       # on average one record in a hundred
    >>> batches.event(Gaussian(noise_multiplier=1.0), steps=2_000, records=10_000, neighbours="zero_out")
    Gaussian(noise_multiplier=1.0).poisson(rate=0.1) * 200
    """

    sampling_rate: float
    groups: int

    def __post_init__(self) -> None:
        why, hint = "it is the probability that a record joins a batch of its group", "Use e.g. 0.1."
        rate = between("sampling_rate", self.sampling_rate, 0, 1, closed=(False, True), because=why, use=hint)
        object.__setattr__(self, "sampling_rate", rate)
        count = whole("groups", self.groups, because="a record is in one group", use="Use as many as bands.")
        object.__setattr__(self, "groups", count)

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        first = step % self.groups
        members = max(0, -(-(count - first) // self.groups))
        if self.sampling_rate == 1:
            return np.arange(first, count, self.groups)
        return first + self.groups * choose(random, members, binomial(random, members, self.sampling_rate))

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        if neighbours == "add_remove":
            raise NoProvenBound("""Expected 'replace_one' or 'zero_out' for groups by place, got 'add_remove': a record
                that joins moves all later ones to other groups. Use Poisson sampling, or make the number of records
                public.""")
        return mechanism.poisson(rate=self.sampling_rate) * -(-steps // self.groups)

    def batch_size(self, records: int) -> float:
        return self.sampling_rate * records / self.groups

    def most(self, records: int) -> int | None:
        return max(1, -(-records // self.groups))
