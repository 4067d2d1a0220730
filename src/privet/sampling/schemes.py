"""Full batch, one record, fixed size, Poisson, cyclic: how a batch is drawn and what that is worth."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from privet._checks import between, whole
from privet.accounting import Event
from privet.arrays import IntArray
from privet.errors import InvalidParameter, NoProvenBound
from privet.privacy import Neighbours
from privet.randomness import Random, binomial, choose


@runtime_checkable
class Sampling(Protocol):
    """A way to draw batches.

    Indices are private: they are never stored, logged or shown; a batch that is known amplifies nothing.
    """

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        """The records of step `step` out of `count`; None for all of them."""

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        """What `steps` runs of `mechanism` on such batches are, for the accountants."""

    def batch_size(self, records: int) -> float:
        """The public number to divide a sum by: the expected size of a batch, never the realised one."""

    def most(self, records: int) -> int | None:
        """A public bound on a batch's size; None where there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FullBatch:
    """Every step reads all records. No amplification.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> FullBatch().event(Gaussian(noise_multiplier=2.0), steps=10, records=100, neighbours="replace_one")
    Gaussian(noise_multiplier=2.0) * 10
    """

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        return None

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        return mechanism * steps

    def batch_size(self, records: int) -> float:
        return float(records)

    def most(self, records: int) -> int | None:
        return records


@dataclass(frozen=True, kw_only=True, slots=True)
class Poisson:
    """Each record joins each batch independently with probability `sampling_rate`.

    The size is drawn first, then the members, so a batch costs O(batch) whatever the number of records; a batch may
    be empty, and then the step is noise alone.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> batches = Poisson(sampling_rate=0.01)
    >>> batches.event(Gaussian(noise_multiplier=1.0), steps=500, records=10_000, neighbours="add_remove")
    Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 500
    """

    sampling_rate: float

    def __post_init__(self) -> None:
        why = "it is the probability that a record joins a batch"
        hint = "Use expected batch size ÷ number of records, both public."
        rate = between("sampling_rate", self.sampling_rate, 0, 1, closed=(False, True), because=why, use=hint)
        object.__setattr__(self, "sampling_rate", rate)

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        if self.sampling_rate == 1:
            return None
        return choose(random, count, binomial(random, count, self.sampling_rate))

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        return mechanism.poisson(rate=self.sampling_rate) * steps

    def batch_size(self, records: int) -> float:
        return self.sampling_rate * records

    def most(self, records: int) -> int | None:
        return records


_RUN = 64  # rows that stand together in a strided batch of many: memory is read in lines


@dataclass(frozen=True, kw_only=True, slots=True)
class _Batches:
    """Batches of a public number of records."""

    batch: int

    def __post_init__(self) -> None:
        batch = whole("batch", self.batch, because="a step reads whole records", use="Use e.g. 256.")
        object.__setattr__(self, "batch", batch)

    def most(self, records: int) -> int | None:
        return self.batch


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedSize(_Batches):
    """Each step reads `batch` records, all subsets of that size equally likely.

    The number of records must be public: under "add_remove" no bound is known to us, and the accountants refuse.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> FixedSize(batch=50).event(Gaussian(noise_multiplier=1.0), steps=5, records=1000, neighbours="replace_one")
    Gaussian(noise_multiplier=1.0).without_replacement(batch=50, records=1000) * 5
    """

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        return choose(random, count, _fits(self.batch, count))

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        return mechanism.without_replacement(batch=_fits(self.batch, records), records=records) * steps

    def batch_size(self, records: int) -> float:
        return float(self.batch)


@dataclass(frozen=True, kw_only=True, slots=True)
class OneRecord:
    """Each step reads one record, all equally likely: the lectures' DP-SGD.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> OneRecord().event(Gaussian(noise_multiplier=4.0), steps=9, records=100, neighbours="replace_one")
    Gaussian(noise_multiplier=4.0).without_replacement(batch=1, records=100) * 9
    """

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        return FixedSize(batch=1).indices(count, step, random)

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        return FixedSize(batch=1).event(mechanism, steps=steps, records=records, neighbours=neighbours)

    def batch_size(self, records: int) -> float:
        return 1.0

    def most(self, records: int) -> int | None:
        return 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Cyclic(_Batches):
    """The table in its own order, `batch` rows after `batch` rows, over and over. No amplification is claimed.

    Promise: a record is read once in each pass, so it is exposed to ⌈steps ÷ batches a pass⌉ releases; steps that do
    not read it cost it nothing. The batch of a record must not depend on the others, so the number of records is
    public; "add_remove" is refused.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> Cyclic(batch=10).event(Gaussian(noise_multiplier=4.0), steps=25, records=100, neighbours="replace_one")
    Gaussian(noise_multiplier=4.0) * 3
    """

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        first = step % self._batches(count) * self.batch
        return np.arange(first, min(first + self.batch, count))

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        if neighbours == "add_remove":
            raise NoProvenBound("""Expected 'replace_one' or 'zero_out' for cyclic batches, got 'add_remove': a record
                that joins moves all later ones to other batches. Use Poisson sampling, or make the number of records
                public.""")
        return mechanism * -(-steps // self._batches(records))

    def batch_size(self, records: int) -> float:
        return float(min(self.batch, records))

    def steps_a_pass(self, records: int) -> int:
        """How many steps a pass takes: two steps that read one record are a multiple of it apart."""
        return self._batches(records)

    def _batches(self, count: int) -> int:
        return max(1, -(-count // self.batch))


@dataclass(frozen=True, kw_only=True, slots=True)
class Strided(Cyclic):
    """As `Cyclic`, but a batch is of rows from all over the table: short runs of rows that stand far apart.

    So batches of a table that is sorted are alike. The promise is the same: a record's batch depends on its place and
    on the public number of records alone, and it is read once in each pass.

    Examples
    --------
    >>> from privet.randomness import system_random
    >>> [Strided(batch=4).indices(10, step, system_random()).tolist() for step in range(3)]
    [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    """

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        batches, run = self._batches(count), max(1, min(_RUN, self.batch // _RUN))
        starts = np.arange(step % batches * run, count, batches * run)
        found = (starts[:, None] + np.arange(run)).reshape(-1)
        return found if not found.size or found[-1] < count else found[found < count]

    def batch_size(self, records: int) -> float:
        return records / self._batches(records)

    def most(self, records: int) -> int | None:
        return min(records, self.batch + 2 * _RUN)  # no more runs than ⌈⌈records ÷ run⌉ ÷ batches⌉


def _fits(batch: int, records: int) -> int:
    if batch > records:
        raise InvalidParameter(f"""Expected batch to be at most the public number of records, got {batch}: a batch
            without replacement cannot exceed the data. Lower batch, or use FullBatch().""")
    return batch
