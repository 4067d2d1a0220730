"""One release of a run: what is summed, how a record is bounded, how batches are drawn, what noise, how often."""

import math
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from privet._checks import is_number, whole
from privet._independence import check_alone, user_supplied
from privet.accounting import Event, Gaussian
from privet.clipping import Adaptive, Bounding, Clip
from privet.errors import InvalidParameter
from privet.noise import Strategy
from privet.plan.correlation import check_correlation, correlated_event
from privet.plan.influence import Influence, Reach, own_relation, unit_clip
from privet.privacy import Neighbours
from privet.sampling import FullBatch, Sampling


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """A release, described before it happens; all of it public. Its event and its noise follow from it.

    Promise: what a meter draws for it is what `event` describes, under the relation of the plan it belongs to.

    Parameters
    ----------
    name : what a person calls it, e.g. "gradients"; unique in a plan, or the same release again
    of : what is summed over records, e.g. "gradients of the logistic loss"
    bound : how one record's influence is bounded: a clipping rule, or another bound that knows its l2 sensitivity
    noise_multiplier : noise stddev ÷ clip; NaN until it is calibrated
    times : how often
    sampling : how batches are drawn
    size : how many numbers are released each time; 0 if it is not known beforehand
    mechanism : the event of one such release where it is not Gaussian noise on a sum, e.g. an exact random choice
    correlation : how its noise is correlated over all its `times`, e.g. banded_inverse_square_root(100); None for
        independent noise

    Examples
    --------
    >>> step = Release(name="gradients", of="gradients", bound=Clip(clip=0.5), noise_multiplier=8.0, times=40)
    >>> step.event(records=1000, neighbours="replace_one"), round(step.noise_stddev("replace_one"), 9)
    (Gaussian(noise_multiplier=8.0) * 40, 4.0)
    """

    name: str
    of: str
    bound: Influence
    noise_multiplier: float = math.nan
    times: int = 1
    sampling: Sampling = FullBatch()  # noqa: RUF009  # a frozen value without state
    size: int = 0
    mechanism: Event | None = None
    correlation: Strategy | None = None

    def __post_init__(self) -> None:
        for name, least in (("times", 1), ("size", 0)):
            because, use = "a run has a public, whole number of releases and of numbers in each", "Pass a plain int."
            object.__setattr__(self, name, whole(name, getattr(self, name), least=least, because=because, use=use))
        if not isinstance(self.sampling, Sampling) or not isinstance(self.bound, Bounding | Reach):
            wrong = self.bound if isinstance(self.sampling, Sampling) else self.sampling
            raise InvalidParameter(f"""Expected a sampling scheme and a way to bound a record, got {wrong!r}: neither
                batches nor a privacy cost follow from it. Use e.g. sampling=Poisson(sampling_rate=0.01) and
                bound=Clip(clip=1.0).""")
        if self.correlation is not None:
            clipped = self.mechanism is None and isinstance(self.bound, Bounding)
            check_correlation(self.correlation, clipped=clipped and not isinstance(self.bound, Adaptive))
        self.unproven  # noqa: B018  # refuses a rule that couples records
        if isinstance(self.noise_multiplier, float) and math.isnan(self.noise_multiplier):
            object.__setattr__(self, "noise_multiplier", math.nan)  # one NaN, so that equal releases are equal
        elif self.mechanism is None:
            if not is_number(self.noise_multiplier) or not self.noise_multiplier > 0:
                raise InvalidParameter(f"""Expected noise_multiplier to be a positive finite number, got
                    {self.noise_multiplier!r}: without noise nothing is private. Leave it out and calibrate the plan to
                    a budget.""")
            object.__setattr__(self, "noise_multiplier", float(self.noise_multiplier))
            self.sum_multiplier  # noqa: B018  # refuses here what it would refuse at the first step

    def __eq__(self, other: object) -> bool:
        """As any dataclass; but tuples take NaN for equal to itself, and from Python 3.13 on dataclasses do not."""
        if not isinstance(other, Release):
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(_values(self))

    @property
    def unproven(self) -> tuple[str, ...]:
        """What is assumed of code that a user supplied; refuses a clipping rule that couples records."""
        found: tuple[str, ...] = ()
        if isinstance(rule := self.bound, Bounding) and user_supplied(rule):

            def factors(norms: NDArray[np.float64]) -> NDArray[np.float64] | None:
                found = rule.factor(np.abs(norms))
                return None if found is None else np.broadcast_to(found, norms.shape)  # one for all is one for each

            found += (check_alone("the clipping rule", factors, ((), "f")),)
        elif user_supplied(self.bound):
            found += ("the bound is user-supplied code: the l2 sensitivity that it states was not checked",)
        if user_supplied(self.sampling):
            found += ("the sampling scheme is user-supplied code: that it draws as its event says was not checked",)
        return found

    @property
    def calibrated(self) -> bool:
        """Whether its noise is known."""
        return self.mechanism is not None or not math.isnan(self.noise_multiplier)

    @property
    def plain(self) -> bool:
        """Whether it is Gaussian noise, independent each time, on sums over all records."""
        return self.mechanism is None and self.correlation is None and isinstance(self.sampling, FullBatch)

    @property
    def sum_multiplier(self) -> float:
        """Noise stddev ÷ clip of the sum itself: larger where a step of adaptive clipping also releases a count."""
        if isinstance(self.bound, Adaptive):
            return self.bound.gradient_multiplier(self._noise())
        return self._noise()

    def noise_stddev(self, neighbours: Neighbours) -> float:
        """Standard deviation of the noise on each number, in the unit of the sum; rounded up."""
        clip = unit_clip(self.bound, neighbours)
        exact = clip if isinstance(self.bound, Bounding) else math.nextafter(clip, math.inf)
        return math.nextafter(self.sum_multiplier * exact, math.inf)

    def event(self, *, records: int, neighbours: Neighbours, times: int | None = None) -> Event:
        """What it releases, all `times` together, for the accountants."""
        if self.correlation is not None:
            noise, steps = self._noise(), self.times if times is None else times
            asked = {"sampling": self.sampling, "steps": steps, "records": records, "neighbours": neighbours}
            return correlated_event(self.correlation, noise_multiplier=noise, **asked)  # type: ignore[arg-type]
        mechanism = self.mechanism if self.mechanism is not None else Gaussian(noise_multiplier=self._noise())
        count = self.times if times is None else times
        run = mechanism
        if count > 1 or not isinstance(self.sampling, FullBatch):
            run = self.sampling.event(mechanism, steps=count, records=records, neighbours=neighbours)
        return run.under(neighbours) if self.mechanism is not None or own_relation(self.bound) else run

    def without_limit(self) -> "Release":
        """The same with a plain clip where the rule limits the noise: of the same cost, and a search runs free."""
        return replace(self, bound=Clip(clip=self.bound.clip)) if isinstance(self.bound, Adaptive) else self

    def _noise(self) -> float:
        if math.isnan(self.noise_multiplier):
            raise InvalidParameter(f"""Expected noise for {self.name!r}, got none yet: it has no epsilon yet and cannot
                be run. Pass noise_multiplier=..., or calibrate the plan to a budget first.""")
        return self.noise_multiplier


def _values(release: Release) -> tuple[object, ...]:
    return tuple(getattr(release, field.name) for field in fields(release))
