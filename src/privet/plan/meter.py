"""The meter: it holds the plan while it runs, draws its batches and its noise, and refuses whatever is not next."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from privet._progress import say
from privet.arrays import IntArray, Vector
from privet.clipping import Adaptive, Bounding, LatticeSum
from privet.errors import InvalidParameter, PrivetError
from privet.noise import CorrelatedSums, Strategy, add_gaussian
from privet.plan.influence import Computed, Reach, unit_clip
from privet.plan.plan import Plan
from privet.plan.release import Release
from privet.privacy import Guarantee
from privet.randomness import Random, Words, system_random, why_invalid
from privet.sampling import Passes

_COUNT_BITS = 12  # a standard deviation of noise on counts is at least 2¹² lattice steps


class Meter:
    """Runs a plan: every batch and all noise of a run come from here, in the plan's order, and no more than it has.

    Promise: what was released is a beginning of `plan.releases`, each with the bound, the batches and the noise that
    the guarantee covers. A release that is not the next one, one too many, of another size or with another bound is
    refused before any noise is drawn. A release is counted before its records are read, so that whatever happens, what
    was released was charged.

    Examples
    --------
    >>> import numpy as np
    >>> from privet.clipping import Clip
    >>> from privet.plan import Meter, gradient_plan
    >>> from privet.sums import record_sum
    >>> plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=1, records=3, neighbours="zero_out")
    >>> meter = Meter(plan)
    >>> batch = meter.open("gradients", count=3)
    >>> total = record_sum(np.eye(3), rule=Clip(clip=1.0), max_records=plan.max_records("gradients"))
    >>> meter.noisy("gradients", total).shape
    (3,)
    >>> meter.open("gradients", count=3)
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected the run to end here, as planned, got one more release of \
'gradients': it would not be covered by the guarantee. Plan for it first.
    """

    def __init__(self, plan: Plan, *, random: Random | None = None) -> None:
        plan.event  # noqa: B018  # a plan whose epsilon nobody can compute is refused before any record is read
        self.plan = plan
        self.random = random if random is not None else system_random()
        self.record: list[str] = []
        self._place, self._done = 0, 0  # the release that is next, and how many times it was made
        self._made, self._before = Counter[str](), Counter[str]()  # before: those of an earlier process
        self._open: Release | None = None
        self._clips, self._correlated = dict[str, float](), dict[str, CorrelatedSums]()  # of clips those that adapt
        # Asked once: at every step, what kind a bound is would take as long as the sum of a small table.
        self._rules = {release.name: release.bound for release in plan.releases if isinstance(release.bound, Bounding)}
        self._stddevs: dict[str, float] = {}

    def open(self, name: str, *, count: int) -> IntArray | None:
        """Count the next release, which must be `name`, and draw its batch out of `count` records; None for all."""
        step = self._made[name]
        self._open = self._counted(name)
        return self._open.sampling.indices(count, step, self.random)

    def open_elsewhere(self, name: str) -> None:
        """Count the next release, which must be `name`, on a batch that somebody else draws, as its plan says."""
        if not isinstance(self.plan[name].sampling, Passes):
            raise InvalidParameter(f"""Expected a release whose batches are drawn elsewhere, got {name!r}: its cost is
                that of batches drawn here. Plan with Passes(...).""")
        self._open = self._counted(name)

    @property
    def next_name(self) -> str | None:
        """The name of the next release; None at the end of the plan."""
        return self.plan.releases[self._place].name if self._place < len(self.plan.releases) else None

    def resume(self, made: int, *, clips: Mapping[str, float]) -> None:
        """Go on after `made` releases of a process before this one, with the clips that adapt as they stood then."""
        if self.record and any(release.correlation is not None for release in self.plan.releases):
            raise InvalidParameter("""Expected a new meter to be resumed, got one whose correlated noise has begun: the
                steps in between would be left out of it. Make a new one.""")
        while len(self.record) < made:
            self._counted(self.next_name or "another")
            self._before[self.record[-1]] += 1  # correlated noise begins anew: docs/proofs/correlated.md, section 5
        self._clips.update(clips)
        _ = [self.rule(name) for name in clips]  # refuses what is no clip

    @property
    def clips(self) -> dict[str, float]:
        """The clips that adapt, as they stand; public, as their counts were released."""
        return dict(self._clips)

    def skip(self, name: str) -> None:
        """Count the next release, which must be `name`, without making it: what is public already needs no noise."""
        if name in self.plan and self.plan[name].correlation is not None:
            raise InvalidParameter(f"""Expected every release of {name!r}, whose noise is correlated, got one to leave
                out: a record's later steps would come too soon. Release it.""")
        self._counted(name)

    def _counted(self, name: str) -> Release:
        """The next release, which must be `name`, counted as made."""
        if self._open is not None:
            raise InvalidParameter(f"""Expected noise for {self._open.name!r}, whose records were read, got another
                release: what was read would be left without noise. Release it first.""")
        expected = self.plan.releases[self._place] if self._place < len(self.plan.releases) else None
        if expected is None or expected.name != name:
            what = "the run to end here" if expected is None else f"a release of {expected.name!r}"
            raise InvalidParameter(f"""Expected {what}, as planned, got one more release of {name!r}: it would not be
                covered by the guarantee. Plan for it first.""")
        self._done += 1
        if self._done == expected.times:
            self._place, self._done = self._place + 1, 0
        self._made[name] += 1
        self.record.append(name)
        say(lambda: f"privet is fitting: release {len(self.record)} of {sum(r.times for r in self.plan.releases)}")
        return expected

    def rule(self, name: str) -> Bounding:
        """The clipping rule of a release, with the clip as it stands if it adapts."""
        bound = self._rules.get(name)
        if bound is None:
            raise InvalidParameter(f"""Expected a release of clipped records, got {name!r}: it has no clipping rule.
                Bound its records as its bound says.""")
        return replace(bound, clip=self._clips.get(name, bound.clip)) if isinstance(bound, Adaptive) else bound

    def noise_stddev(self, name: str, *, sensitivity: float | None = None) -> float:
        """Standard deviation of the noise on each number of the next release of `name`, in the unit of the sum.

        Where the plan leaves the l2 sensitivity to the run, it has to be given: of one record added or removed.
        """
        release = self.plan[name]
        if isinstance(release.bound, Computed):
            if sensitivity is None or not 0 < sensitivity < math.inf:
                raise InvalidParameter(f"""Expected the sensitivity of {name!r}, positive and finite, got
                    {sensitivity!r}: the plan leaves it to the run, and without it no noise hides a record. Pass
                    sensitivity=..., computed in public.""")
            clip = math.nextafter(sensitivity * unit_clip(release.bound, self.plan.neighbours), math.inf)
            return math.nextafter(release.sum_multiplier * clip, math.inf)
        if isinstance(release.bound, Adaptive):
            return release.sum_multiplier * self.rule(name).clip
        if name not in self._stddevs:
            self._stddevs[name] = release.noise_stddev(self.plan.neighbours)
        return self._stddevs[name]

    def noisy(self, name: str, total: LatticeSum) -> Vector:
        """The open release: a sum over records, with its noise. Its clip must be the one that was planned."""
        release, stddev = self._close_sum(name, total)
        if release.correlation is not None:
            return self._correlate(release, total, stddev).reshape(total.units.shape)
        noisy = add_gaussian(np.atleast_1d(total.units), step=total.step, noise_stddev=stddev, random=self.random)
        if isinstance(release.bound, Adaptive):
            self._adapt(name, release.bound, total.clip, total.within)
        return noisy.reshape(total.units.shape)

    def noisy_symmetric(self, name: str, total: LatticeSum) -> Vector:
        """The open release: a sum of x xᵀ, noise on its diagonal, 1/√2 of that above it, mirrored.

        Where the plan leaves the clip to the run, it is the one that the sum was bounded by.

        Theorem: as a vector a symmetric matrix is (diagonal, √2 × upper triangle), so that its Frobenius norm is the
        vector's norm, and the upper triangle needs only 1/√2 of the noise.
        """
        if self.plan[name].correlation is not None:
            raise InvalidParameter(f"""Expected independent noise for a symmetric matrix, got {name!r}, whose noise is
                correlated: it would not be what was planned. Leave its correlation out.""")
        _, stddev = self._close_sum(name, total)
        above, diagonal = np.triu_indices(len(total.units), 1), np.diag_indices(len(total.units))
        released = np.zeros(total.units.shape)
        for place, noise in ((above, stddev * math.sqrt(0.5) * (1 + 2.0**-50)), (diagonal, stddev)):
            released[place] = add_gaussian(total.units[place], step=total.step, noise_stddev=noise, random=self.random)
        released.T[above] = released[above]
        return released

    def noisy_counts(self, name: str, units: IntArray, *, unit: float = 1.0) -> Vector:
        """The open release: whole numbers × `unit`, a power of two that is refined where the noise is finer."""
        if not isinstance(self.plan[name].bound, Reach):
            raise InvalidParameter(f"""Expected a release of counts, got {name!r}, which is a sum of clipped records:
                its noise is calibrated to those. Use noisy().""")
        release = self._close(name, units.size)
        stddev = release.noise_stddev(self.plan.neighbours)
        shift = max(0, _COUNT_BITS + 1 - math.frexp(stddev / unit)[1])
        finer = np.left_shift(units.astype(np.int64), shift)
        return add_gaussian(finer, step=math.ldexp(unit, -shift), noise_stddev=stddev, random=self.random)

    def noisy_units(self, name: str, units: IntArray, *, step: float, sensitivity: float) -> Vector:
        """The open release: whole steps that one record moves by at most `sensitivity` in l2 norm, known by now.

        `sensitivity` is of a record added, removed or zeroed out; the bound knows what it is if one is replaced.
        """
        if not isinstance(self.plan[name].bound, Computed):
            raise InvalidParameter(f"""Expected a release whose sensitivity is computed while the run goes on, got
                {name!r}, whose bound is in the plan: the noise was calibrated to that one. Release a sum that is
                bounded as planned.""")
        stddev = self.noise_stddev(name, sensitivity=sensitivity)
        self._close(name, units.size)
        return add_gaussian(units, step=step, noise_stddev=stddev, random=self.random)

    def float_noise(
        self, name: str, *, clip: float, size: int, within: int = 0, correlation: Strategy | None = None
    ) -> float:
        """The open release, for whoever adds ideal Gaussian noise in floats: the standard deviation to draw, once.

        The noise must be of this meter's `random`, correlated as planned, and the guarantee must say that it is taken
        for ideal. `within`, how many more records were within the clip than beyond, moves a clip that adapts; it is
        private, and gets its own exact noise here.
        """
        rule = self.rule(name)
        if clip != rule.clip or correlation != self.plan[name].correlation:
            raise InvalidParameter(f"""Expected a sum of records bounded by {rule.clip:g} for {name!r}, and noise that
                is correlated as planned, got others: the noise was calibrated to those. Do as the plan says.""")
        stddev = math.nextafter(self.noise_stddev(name), math.inf)
        release = self._close(name, size)
        if isinstance(release.bound, Adaptive):
            self._adapt(name, release.bound, clip, within)
        return stddev

    def draw(self, name: str) -> Random:
        """The open release: an exact random draw of its own, e.g. by the exponential mechanism."""
        self._close(name, 0)
        return self.random

    def chosen(self, name: str, choose: Callable[[Random], int | Vector]) -> Vector:
        """The open release: one of several, or some numbers, by a draw of its own."""
        return np.asarray(choose(self.draw(name)), dtype=np.float64)

    def public_words(self, count: int) -> Words:
        """Random words that anyone may know, e.g. for directions."""
        return self.random.words(count)

    @property
    def counted(self) -> Plan:
        """The plan, with whatever was drawn beyond it."""
        return self.plan

    def guarantee(self, *, delta: float | None = None, assumptions: tuple[str, ...] = ()) -> Guarantee:
        """What the whole plan promises, however much of it has run; `assumptions` are of what it runs on."""
        found = self.counted.guarantee(delta=delta)
        return self.stated(replace(found, assumptions=(*found.assumptions, *assumptions)))

    def stated(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of what was drawn here; invalidated if somebody may predict the noise."""
        reason = why_invalid(self.random)
        return guarantee.invalidate(reason) if reason else guarantee

    def finish(self) -> tuple[str, ...]:
        """The record: the name of every release, in order. Refuses a run that left out a part of its plan."""
        if self._open is not None or self._place < len(self.plan.releases):
            raise PrivetError("""Expected every planned release to have been made, got a run that ended before: what it
                charged is not what it released. Please report this.""")
        return tuple(self.record)

    def _close(self, name: str, size: int) -> Release:
        release = self._open
        if release is None or release.name != name:
            raise InvalidParameter(f"""Expected {name!r} to be opened before noise is drawn for it, got none or another:
                only what was counted may be released. Call open() first.""")
        if release.size and size and release.size != size:
            raise InvalidParameter(f"""Expected {release.size:,} numbers for {name!r}, as planned, got {size:,}: this is
                another problem than the plan is for. Plan for this one.""")
        self._open = None
        return release

    def _close_sum(self, name: str, total: LatticeSum) -> tuple[Release, float]:
        """The open release, whose records must be bounded as planned, and the standard deviation of its noise."""
        bound = self.plan[name].bound
        if isinstance(bound, Computed):
            stddev = self.noise_stddev(name, sensitivity=total.clip)
            return self._close(name, total.units.size), stddev
        clip = self.rule(name).clip if name in self._rules else getattr(bound, "clip", math.nan)
        if total.clip != clip:
            raise InvalidParameter(f"""Expected a sum of records bounded by {clip:g} for {name!r}, as planned, got
                {total.clip:g}: the noise was calibrated to the former. Bound records as the plan says.""")
        release = self._close(name, total.units.size)
        return release, math.nextafter(self.noise_stddev(name), math.inf)

    def _correlate(self, release: Release, total: LatticeSum, stddev: float) -> Vector:
        """The open release with its noise, which is correlated with that of the releases of its name before."""
        name, how = release.name, release.correlation
        if name not in self._correlated and how is not None:
            steps, size, most = self.plan.times(name), total.units.size, self.plan.max_records(name)
            self._correlated[name] = CorrelatedSums(
                how, steps=steps, size=size, clip=total.clip, noise_stddev=stddev, step=total.step, max_records=most
            )
        sums, done = self._correlated[name], self._made[name] - self._before[name] - 1
        if sums.step != total.step or sums.size != total.units.size or sums.done != done:
            raise InvalidParameter(f"""Expected sums of one size on one lattice for {name!r}, at every step, got others,
                or one that was left out: its noise is correlated over all of them. Sum up each step alike.""")
        return sums.release(total.units, random=self.random)

    def _adapt(self, name: str, bound: Adaptive, clip: float, within: int) -> None:
        """Move a clip by the noisy count of records within it, less half of all: one record moves that by a half."""
        units = np.array([within * 2**30])
        count = add_gaussian(units, step=2.0**-31, noise_stddev=bound.count_noise, random=self.random)
        self._clips[name] = bound.moved(clip, 0.5 + float(count[0]) / self.plan.batch_size(name))
