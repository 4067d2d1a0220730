"""How events combine: repeated, composed, sampled, searched among, made for one relation; an immutable tree.

The kinds of release at its leaves are in :mod:`privet.accounting.events`, which has all of these names, too.
"""

from dataclasses import dataclass

from privet._checks import directed, is_number, shown, whole
from privet.errors import InvalidParameter
from privet.privacy import Neighbours, check_neighbours

MOST_STEPS = 10**300
"""A run of more steps, or a table of more records, is refused: its number would not fit a float."""


def real(event: "Event", name: str, *, unit: str, zero: bool = True, up: bool = True) -> None:
    """Refuse what is no finite number; keep others as plain numbers, rounded up or down: to where it costs more."""
    value = getattr(event, name)
    if not is_number(value) or value < 0 or (value == 0 and not zero):
        least = "at least 0" if zero else "positive"
        raise InvalidParameter(
            f"Expected {name} to be a finite number that a float can hold, {least} ({unit}), got {shown(value)}: "
            f"no privacy statement follows from it. Pass {name} as a plain number."
        )
    if type(value) not in (int, float) or float(value) != value:
        object.__setattr__(event, name, directed(value, up=up))


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was released, or will be. Combine with `+`, `*`, `.poisson`, `.without_replacement`, `.under`.

    Examples
    --------
    >>> from privet.accounting import Gaussian, Laplace
    >>> Gaussian(noise_multiplier=1.1).poisson(rate=0.01) * 1000 + Laplace(scale=4.0)
    Gaussian(noise_multiplier=1.1).poisson(rate=0.01) * 1000 + Laplace(scale=4.0)
    """

    def __mul__(self, count: int) -> "Event":
        return Repeated(event=self, count=count)

    __rmul__ = __mul__

    def __add__(self, other: "Event") -> "Event":
        if not isinstance(other, Event):
            return NotImplemented
        return Composed(parts=(*_parts(self), *_parts(other)))

    def poisson(self, *, rate: float) -> "Event":
        """Run on a batch that each record joins independently with probability `rate`."""
        return PoissonSampled(event=self, rate=rate)

    def without_replacement(self, *, batch: int, records: int) -> "Event":
        """Run on `batch` of the `records` (a public number), all subsets of that size equally likely."""
        return FixedSizeSampled(event=self, batch=batch, records=records)

    def allocated(self, *, steps: int, times: int = 1) -> "Event":
        """Run `steps` times; each record takes part in `times` of them, drawn by itself, all choices equally likely."""
        return Allocated(event=self, steps=steps, times=times)

    def under(self, neighbours: Neighbours) -> "Event":
        """Say that the sizes fit this relation only: asked under another one, the event is refused."""
        return Under(event=self, neighbours=neighbours)


def _parts(event: Event) -> tuple[Event, ...]:
    return event.parts if isinstance(event, Composed) else (event,)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class PoissonSampled(Event):
    """`event` on a batch that each record joins independently with probability `rate`."""

    event: Event
    rate: float

    def __post_init__(self) -> None:
        _is_event(self.event)
        _can_be_sampled(self.event)
        real(self, "rate", unit="probability that a record joins the batch", zero=False)
        if self.rate > 1:
            raise InvalidParameter(
                f"Expected rate in (0, 1], got {shown(self.rate)}: it is the probability that a record joins a batch. "
                "Use expected batch size ÷ number of records, both public."
            )

    def __repr__(self) -> str:
        return f"{_wrapped(self.event)}.poisson(rate={self.rate!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class FixedSizeSampled(Event):
    """`event` on `batch` of `records` records, drawn uniformly without replacement."""

    event: Event
    batch: int
    records: int

    def __post_init__(self) -> None:
        _is_event(self.event)
        _can_be_sampled(self.event)
        count(self, "batch")
        count(self, "records")
        if self.batch > self.records:
            raise InvalidParameter(
                f"Expected batch to be at most records, got {self.batch} of {self.records}: "
                "a batch without replacement cannot exceed the data. Swap the two, or lower batch."
            )

    def __repr__(self) -> str:
        return f"{_wrapped(self.event)}.without_replacement(batch={self.batch!r}, records={self.records!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Allocated(Event):
    """`steps` runs of `event`, an epoch: each record is in `times` of the batches, drawn uniformly and by itself."""

    event: Event
    steps: int
    times: int = 1

    def __post_init__(self) -> None:
        _is_event(self.event)
        _can_be_sampled(self.event)
        count(self, "steps")
        count(self, "times")
        if self.times > self.steps:
            raise InvalidParameter(
                f"Expected times ≤ steps, got {self.times} > {self.steps}: a record is in a batch once. Lower times."
            )

    def __repr__(self) -> str:
        return f"{_wrapped(self.event)}.allocated(steps={self.steps!r}, times={self.times!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Repeated(Event):
    """`event`, `count` times, each time with fresh noise and a fresh batch; later runs may depend on earlier ones."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        _is_event(self.event)
        count(self, "count")

    def __repr__(self) -> str:
        return f"{_wrapped(self.event)} * {self.count}"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Composed(Event):
    """All of `parts`, one after the other; later ones may depend on the outputs of earlier ones."""

    parts: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not self.parts:
            raise InvalidParameter(
                f"Expected parts to be a tuple with at least one event, got {self.parts!r}: "
                "an empty run releases nothing. Write a + b to compose."
            )
        for part in self.parts:
            _is_event(part)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class NegativeBinomialTrials(Event):
    """The best of K independent runs of `event`; K is secret, P(K = k) ∝ (1 − stop)^k Π_{0<l<k} (l + shape)/(l + 1).

    The runs are of one law: whatever differs between them (hyper-parameters) is drawn afresh in each. Only the run
    that ranks highest by its own output is released; neither K nor the others are. `shape` 1 is the geometric law,
    0 the logarithmic one (Papernot and Steinke 2022, definition 1).
    """

    event: Event
    shape: float
    stop: float

    def __post_init__(self) -> None:
        _is_event(self.event)
        real(self, "stop", unit="the chance to stop", zero=False, up=False)
        if not is_number(self.shape) or not -1 < self.shape <= 64 or not 0 < self.stop < 1:
            raise InvalidParameter(
                f"Expected shape in (-1, 64] and stop in (0, 1), got {shown(self.shape)} and {shown(self.stop)}: no "
                "number of trials has such a law. Use random_trials(event, mean=10)."
            )
        if type(self.shape) not in (int, float):
            object.__setattr__(self, "shape", directed(self.shape, up=True))

    def __repr__(self) -> str:
        return f"NegativeBinomialTrials(event={self.event!r}, shape={self.shape!r}, stop={self.stop!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class PoissonTrials(Event):
    """As `NegativeBinomialTrials`, with K of the Poisson law with this `mean`; K = 0 releases nothing but that."""

    event: Event
    mean: float

    def __post_init__(self) -> None:
        _is_event(self.event)
        real(self, "mean", unit="expected number of trials", zero=False)

    def __repr__(self) -> str:
        return f"PoissonTrials(event={self.event!r}, mean={self.mean!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Under(Event):
    """`event`, whose sizes were computed for the relation `neighbours`, such as a histogram's noise multiplier.

    A histogram of one count a record moves by √2 when a record is replaced, and by 1 when one joins. Noise stated so
    that one of the two comes out right would be stated wrongly for the other, so it costs what `event` costs under
    `neighbours`, and is refused under every other relation.
    """

    event: Event
    neighbours: Neighbours

    def __post_init__(self) -> None:
        _is_event(self.event)
        check_neighbours(self.neighbours)
        others = sorted(relations(self.event) - {self.neighbours})
        if others:
            raise InvalidParameter(
                f"Expected an event made for {self.neighbours!r} or for no relation in particular, got one made for "
                f"{others[0]!r}: it could be asked about under neither. Say the relation once, where the sizes are "
                "computed."
            )

    def __repr__(self) -> str:
        return f"{_wrapped(self.event)}.under({self.neighbours!r})"


def relations(event: Event) -> frozenset[Neighbours]:
    """The relations that parts of an event were made for: none where all sizes are in units of the clip."""
    found: set[Neighbours] = set()
    stack = [event]
    while stack:
        match stack.pop():
            case Under(event=inner, neighbours=neighbours):
                found.add(neighbours)
                stack.append(inner)
            case Composed(parts=parts):
                stack.extend(parts)
            case (
                PoissonSampled(event=inner)
                | FixedSizeSampled(event=inner)
                | Allocated(event=inner)
                | Repeated(event=inner)
                | NegativeBinomialTrials(event=inner)
                | PoissonTrials(event=inner)
            ):
                stack.append(inner)
    return frozenset(found)


def _can_be_sampled(event: Event) -> None:
    # Batches are accounted for by what one record adds to a sum, not from how far the sum moves: a histogram's √2 under
    # "replace_one", stated as a multiplier for twice the clip, would cost too little on a batch.
    made_for = sorted(relations(event))
    if made_for:
        raise InvalidParameter(
            f"Expected an event in units of the clip to sample, got one made for {made_for[0]!r}: how far its sum "
            "moves there does not tell what one record adds to a batch. Sample Gaussian(noise_multiplier=noise "
            "stddev ÷ largest norm of a record)."
        )


def _wrapped(event: Event) -> str:
    return f"({event!r})" if isinstance(event, Composed | Repeated) else repr(event)


def _is_event(event: object) -> None:
    if not isinstance(event, Event):
        raise InvalidParameter(
            f"Expected an event, got {type(event).__name__}: only events have a privacy cost. "
            "Start from Gaussian(noise_multiplier=...) or another event."
        )


def count(
    event: Event,
    name: str,
    *,
    least: int = 1,
    because: str = "a run has a public, whole number of steps and records",
    use: str = "Round it yourself, upwards.",
) -> None:
    """Refuse what is no whole number from `least` on, or fits no float; keep others as plain ones."""
    found = whole(name, getattr(event, name), least=least, most=MOST_STEPS, because=because, use=use)
    object.__setattr__(event, name, found)
