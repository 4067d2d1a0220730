"""A meter that goes on where a killed process stopped: what was released is read off a journal, the rest is drawn."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from privet.accounting import ExponentialMechanism, Laplace, Pure
from privet.arrays import IntArray, Vector
from privet.clipping import Adaptive, LatticeSum
from privet.errors import InvalidParameter
from privet.noise import Strategy
from privet.plan.meter import Meter
from privet.plan.plan import Plan
from privet.plan.release import Release
from privet.plan.run_journal import RunJournal
from privet.privacy import Guarantee
from privet.randomness import Random, Words
from privet.sampling import Cyclic, CyclicPoisson, FixedSize, FullBatch, OneRecord, Poisson, Strided

INTERRUPTED = "where the run was interrupted did not depend on its records, nor on what it had released"
"""What the guarantee of a run that was resumed rests on; an account's does not."""

_WHOLE = (ExponentialMechanism, Laplace, Pure)  # of which all that is drawn is released
_AGAIN = (FullBatch, Poisson, FixedSize, OneRecord, Cyclic, Strided, CyclicPoisson)  # one draw more costs one step more


class ResumableMeter(Meter):
    """Runs a plan as a `Meter` does, with a journal: each draw is counted on the disk before its records are read.

    Promise: a release that is in the journal is returned as it is, and draws nothing; one that was open when a process
    ended is drawn afresh, and its draw before is counted, too: `counted` is the plan with all such draws, and
    `guarantee` is of that. Noise is the system's alone, and none of it is kept.
    Theorem: adaptive composition of all draws; docs/proofs/resuming.md.
    Edges: what is in the journal asks for no record: `open` returns an empty batch for it.

    Parameters
    ----------
    plan : of the run; with noise that is independent each time, on all records or on batches that are drawn here
    journal : the file, made if it is not there
    of : what else must be the same when the run goes on, e.g. which data it is about

    Examples
    --------
    >>> import tempfile
    >>> from privet.clipping import Clip
    >>> from privet.plan import gradient_plan
    >>> from privet.sums import record_sum
    >>> plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=1, records=3, neighbours="zero_out")
    >>> journal = tempfile.mkdtemp() + "/fit.journal"
    >>> total = record_sum(np.eye(3), rule=Clip(clip=1.0), max_records=plan.max_records("gradients"))
    >>> found = []
    >>> for _ in range(2):
    ...     meter = ResumableMeter(plan, journal)
    ...     batch = meter.open("gradients", count=3)
    ...     found.append(meter.noisy("gradients", total))
    >>> (found[0] == found[1]).all(), meter.counted == plan    # noise was drawn once
    (np.True_, True)
    """

    def __init__(self, plan: Plan, journal: str | os.PathLike[str], *, of: str = "") -> None:
        for release in plan.releases:
            again = type(release.sampling) in _AGAIN and release.correlation is None
            if release.mechanism is not None and not isinstance(release.mechanism, _WHOLE):
                raise InvalidParameter(f"""Expected releases that are public as they are for a run with a journal, got
                    {release.name!r}: a part of its numbers is never shown, and a journal would keep them all. Declare
                    what it would find, e.g. the names of categories, or leave the journal out.""")
            if not again or isinstance(release.bound, Adaptive):
                raise InvalidParameter(f"""Expected releases that can be made again for a run with a journal, got
                    {release.name!r}, whose batches, noise or clip do not allow that: what a second draw costs is not
                    proven. Use batches drawn here, independent noise and a fixed clip, or leave the journal out.""")
        super().__init__(plan)
        self.journal = RunJournal(journal, plan, of=of)
        self._order = [release.name for release in plan.releases for _ in range(release.times)]

    @property
    def counted(self) -> Plan:
        return replace(self.plan, releases=(*self.plan.releases, *self.redrawn))

    @property
    def redrawn(self) -> tuple[Release, ...]:
        """Each draw beyond the plan as a release of its own, under a name that it keeps if the run is resumed again."""
        return tuple(
            replace(self.plan[self._order[at]], name=f"{self._order[at]} again (release {at + 1}, {time + 1})", times=1)
            for at, times in self.journal.interrupted.items()
            for time in range(times)
        )

    def guarantee(self, *, delta: float | None = None, assumptions: tuple[str, ...] = ()) -> Guarantee:
        return super().guarantee(delta=delta, assumptions=(*assumptions, *((INTERRUPTED,) if self.redrawn else ())))

    def open(self, name: str, *, count: int) -> IntArray | None:
        batch = super().open(name, count=count)
        if self._place_open in self.journal.values:
            return np.empty(0, dtype=np.int64)
        self.journal.open(self._place_open)
        return batch

    def noisy(self, name: str, total: LatticeSum) -> Vector:
        return self._kept(name, partial(super().noisy, name, total))

    def noisy_symmetric(self, name: str, total: LatticeSum) -> Vector:
        return self._kept(name, partial(super().noisy_symmetric, name, total))

    def noisy_counts(self, name: str, units: IntArray, *, unit: float = 1.0) -> Vector:
        return self._kept(name, partial(super().noisy_counts, name, units, unit=unit))

    def noisy_units(self, name: str, units: IntArray, *, step: float, sensitivity: float) -> Vector:
        return self._kept(name, partial(super().noisy_units, name, units, step=step, sensitivity=sensitivity))

    def chosen(self, name: str, choose: Callable[[Random], int | Vector]) -> Vector:
        return self._kept(name, lambda: np.asarray(choose(Meter.draw(self, name)), dtype=np.float64))

    def public_words(self, count: int) -> Words:
        found = np.random.SeedSequence(int(self.journal.run, 16)).generate_state(count, np.uint64)
        return found.astype(np.uint64, copy=False)

    def draw(self, name: str) -> Random:
        raise _not_kept(name)

    def open_elsewhere(self, name: str) -> None:
        raise _not_kept(name)

    def float_noise(
        self, name: str, *, clip: float, size: int, within: int = 0, correlation: Strategy | None = None
    ) -> float:
        raise _not_kept(name)

    @property
    def _place_open(self) -> int:
        return len(self.record) - 1

    def _kept(self, name: str, make: Callable[[], Vector]) -> Vector:
        """The open release: from the journal, or made, and then in the journal before anybody sees it."""
        known = self.journal.values.get(self._place_open)
        if known is not None:
            self._close(name, known.size)
            return known.copy()
        value = make()
        self.journal.keep(self._place_open, value)
        return value


def _not_kept(name: str) -> InvalidParameter:
    return InvalidParameter(f"""Expected a release that a journal can keep, got {name!r}, whose noise is drawn by
        whoever asked for it: it could not be returned when the run is resumed. Leave the journal out.""")
