"""From events and a neighbour relation to dominating pairs, or a refusal."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from privet._checks import directed, shown
from privet.accounting import events as ev
from privet.accounting.pairs.allocated import LEAST_SHIFT, MOST_BATCHES, MOST_SHIFT, AllocatedPair
from privet.accounting.pairs.elementary import (
    BoundedRangePair,
    ConcentratedBound,
    DiscretePair,
    GaussianPair,
    LaplacePair,
)
from privet.accounting.pairs.few_outcomes import (
    EVERYTHING,
    answers,
    fixed_answers,
    kary_answers,
    lattice_laplace,
    sampled,
)
from privet.accounting.pairs.fixed_size import FixedSizePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Pair
from privet.accounting.pairs.sampled import SampledLaplacePair
from privet.accounting.pairs.selected import MomentsOnly, SelectedBound, log_mean_trials
from privet.accounting.theorems.conversions import gaussian_rho
from privet.errors import InvalidParameter, NoProvenBound
from privet.privacy import Neighbours

Steps = tuple[tuple[Pair, int], ...]


@dataclass(frozen=True, slots=True)
class Direction:
    """A run as seen when the record is there under P ("forward") or under Q ("backward")."""

    name: str
    steps: Steps


def leaves(event: ev.Event, neighbours: Neighbours | None = None) -> list[tuple[ev.Event, int]]:
    """The unlike parts of a run and how often each ran. The only place where repetition is multiplied out.

    Asked for a relation, an event that was made for another one is refused, and one that was made for it is as good as
    any (`Event.under`). Asked for none, what was made for a relation stays wrapped, and so has no privacy cost.
    """
    if neighbours is not None:
        _check_made_for(event, neighbours)
    counts: dict[ev.Event, int] = {}
    stack = [(event, 1)]
    while stack:
        node, count = stack.pop()
        if isinstance(node, ev.Composed):
            stack.extend((part, count) for part in reversed(node.parts))
        elif isinstance(node, ev.Repeated):
            stack.append((node.event, count * int(node.count)))
        elif isinstance(node, ev.Under) and neighbours is not None:
            stack.append((node.event, count))
        else:
            counts[node] = counts.get(node, 0) + count
    if max(counts.values()) > ev.MOST_STEPS:
        raise InvalidParameter(
            f"Expected a run of at most 1e300 steps, got one of {shown(max(counts.values()))}: such a number fits no "
            "float, and no run is so long. Lower the counts."
        )
    return list(counts.items())


def _check_made_for(event: ev.Event, neighbours: Neighbours) -> None:
    others = sorted(ev.relations(event) - {neighbours})
    if others:
        raise InvalidParameter(
            f"Expected the relation that an event was made for, {others[0]!r}, got {neighbours!r}: its noise "
            "multiplier would mean another sensitivity. Ask under the relation it was made for, or learn it again."
        )


def sensitivity(neighbours: Neighbours) -> float:
    """How far a clipped sum moves, in units of the clip: its l2 sensitivity, or l1 where it is clipped so."""
    return 2.0 if neighbours == "replace_one" else 1.0


@lru_cache(maxsize=16)
def directions(event: ev.Event, neighbours: Neighbours) -> tuple[Direction, ...]:
    """The dominating pairs of every part, both ways; one direction only where the two are the same."""
    forward: list[tuple[Pair, int]] = []
    backward: list[tuple[Pair, int]] = []
    for leaf, count in leaves(event, neighbours):
        there, back = _pairs(leaf, neighbours)
        times = leaf.times if isinstance(leaf, ev.Allocated) else 1  # docs/proofs/allocation.md, section 2
        forward.append((there, count * times))
        backward.append((back, count * times))
    if forward == backward:
        return (Direction("forward", tuple(forward)),)
    return Direction("forward", tuple(forward)), Direction("backward", tuple(backward))


def known_by_moments_only(ways: tuple[Direction, ...]) -> bool:
    """Whether a part has no dominating pair, so that only the Rényi accountant has a bound for the run."""
    return any(isinstance(pair, MomentsOnly) for way in ways for pair, _ in way.steps)


def has_allocation(ways: tuple[Direction, ...]) -> bool:
    """Whether a part's loss is known between two laws, which only the accountant of allocations can use."""
    return any(isinstance(pair, AllocatedPair) for way in ways for pair, _ in way.steps)


def has_range(ways: tuple[Direction, ...]) -> bool:
    """Whether a part is an exponential mechanism, which may cost less than its pair: docs/proofs/pairs.md, 10."""
    return any(isinstance(pair, BoundedRangePair) for way in ways for pair, _ in way.steps)


def _pairs(leaf: ev.Event, neighbours: Neighbours) -> tuple[Pair, Pair]:
    moves = sensitivity(neighbours)
    match leaf:
        case ev.Gaussian(noise_multiplier=noise):
            return _both(GaussianPair(_ratio(moves, noise)) if noise else EVERYTHING)
        case ev.Laplace(scale=scale):
            return _both(LaplacePair(_ratio(moves, scale)) if scale else EVERYTHING)
        case ev.RandomizedResponse(epsilon=epsilon):
            if neighbours == "add_remove":
                raise _refusal(leaf, neighbours, "the number of answers tells how many records there are")
            return _both(answers(epsilon, 0.0))
        case ev.KaryResponse(epsilon=epsilon, answers=most):
            if neighbours == "add_remove":
                raise _refusal(leaf, neighbours, "the number of answers tells how many records there are")
            return _both(kary_answers(epsilon, most))
        case ev.DiscreteLaplace():
            return _both(_lattice_laplace(leaf, neighbours, moves))
        case ev.DiscreteGaussian(noise_multiplier=noise):  # Canonne, Kamath and Steinke 2020, theorem 14
            return _both(ConcentratedBound(gaussian_rho(_ratio(moves, noise))) if noise else EVERYTHING)
        case ev.Pure(epsilon=epsilon):
            return _both(answers(epsilon, 0.0))
        case ev.Approximate(epsilon=epsilon, delta=delta):
            return _both(answers(epsilon, delta))
        case ev.ExponentialMechanism(epsilon=epsilon):
            return _both(BoundedRangePair(epsilon) if epsilon else answers(0.0, 0.0))
        case ev.ZeroConcentrated(rho=rho):
            return _both(ConcentratedBound(rho))
        case ev.NegativeBinomialTrials(event=inner, shape=shape, stop=stop):
            there, back = _trial(leaf, inner, neighbours)
            mean = log_mean_trials(shape, stop)
            return SelectedBound(there, back, mean, shape, stop), SelectedBound(back, there, mean, shape, stop)
        case ev.PoissonTrials(event=inner, mean=mean):
            there, back = _trial(leaf, inner, neighbours)
            log_mean = math.log(mean) + 1e-15 * (1 + abs(math.log(mean)))
            return SelectedBound(there, back, log_mean), SelectedBound(back, there, log_mean)
        case ev.PoissonSampled(event=inner, rate=rate):
            inner = one_gaussian(inner)
            return _pairs(inner, neighbours) if rate == 1 else _poisson(leaf, inner, float(rate), neighbours)
        case ev.FixedSizeSampled(event=inner, batch=batch, records=records):
            inner, whole = one_gaussian(inner), batch == records and neighbours != "add_remove"
            rate = directed(Fraction(batch, records), up=True)
            return _pairs(inner, neighbours) if whole else _fixed_size(leaf, inner, rate, neighbours)
        case ev.Allocated(event=inner, steps=steps, times=times):
            return _allocated(leaf, one_gaussian(inner), steps // times, neighbours)
    raise _refusal(leaf, neighbours, "this kind of event is not known")


def _trial(leaf: ev.Event, inner: ev.Event, neighbours: Neighbours) -> tuple[Steps, Steps]:
    """One trial's steps in either direction."""
    ways = directions(inner, neighbours)
    if any(pair.infinite for way in ways for pair, _ in way.steps):
        why = "a trial that may fail outright has no moments; alone, the selection has a bound by its profile"
        raise _refusal(leaf, neighbours, why)
    return ways[0].steps, ways[-1].steps


def one_gaussian(event: ev.Event) -> ev.Event:
    """Several Gaussian releases of one batch as the one that they are, 1/σ² = Σ 1/σ_i², rounded down; else the event.

    A record at the clip in each moves all of them, and later ones may depend on earlier ones: docs/proofs/pairs.md, 6.
    """
    parts = leaves(event)
    noises = [part.noise_multiplier for part, _ in parts if isinstance(part, ev.Gaussian)]
    if parts == [(event, 1)] or len(noises) < len(parts):
        return event
    if min(noises) == 0:
        return ev.Gaussian(noise_multiplier=0.0)
    mu = math.hypot(*(math.sqrt(count) / noise for noise, (_, count) in zip(noises, parts, strict=True)))
    return ev.Gaussian(noise_multiplier=(1 - 8 * UNIT) / mu)


def _poisson(leaf: ev.Event, inner: ev.Event, rate: float, neighbours: Neighbours) -> tuple[Pair, Pair]:
    match inner:
        case ev.Gaussian(noise_multiplier=noise) if noise > 0 and neighbours == "replace_one":
            return _both(MixturePair(rate, _ratio(1.0, noise), "replace"))  # docs/proofs/pairs.md, section 3
        case ev.Gaussian(noise_multiplier=noise) if noise > 0:
            shift = _ratio(1.0, noise)
            return MixturePair(rate, shift, "remove"), MixturePair(rate, shift, "add")
    if neighbours == "replace_one":
        why = "Poisson sampling of this mechanism has a proven pair only for 'add_remove' and 'zero_out'"
        raise _refusal(leaf, neighbours, why)
    match inner:
        case ev.Gaussian():
            return sampled(EVERYTHING, rate)
        case ev.Laplace(scale=scale) if scale > 0:
            distance = _ratio(1.0, scale)
            return SampledLaplacePair(rate, distance, "remove"), SampledLaplacePair(rate, distance, "add")
        case ev.Laplace():
            return sampled(EVERYTHING, rate)
        case ev.DiscreteLaplace():
            return sampled(_lattice_laplace(inner, neighbours, 1.0), rate)
        case ev.Pure(epsilon=epsilon) | ev.ExponentialMechanism(epsilon=epsilon):
            return sampled(answers(epsilon, 0.0), rate)
        case ev.Approximate(epsilon=epsilon, delta=delta):
            return sampled(answers(epsilon, delta), rate)
    raise _refusal(leaf, neighbours, "only single mechanisms with a dominating pair can be sampled")


def _allocated(leaf: ev.Event, inner: ev.Event, batches: int, neighbours: Neighbours) -> tuple[Pair, Pair]:
    if neighbours == "replace_one":
        why = "allocation has a proven pair only for 'add_remove' and 'zero_out'"
        raise _refusal(leaf, neighbours, why)
    if not isinstance(inner, ev.Gaussian):
        raise _refusal(leaf, neighbours, "only Gaussian noise has a proven pair on allocated batches")
    whole = _pairs(inner, neighbours)
    shift = _ratio(1.0, inner.noise_multiplier) if inner.noise_multiplier else math.inf
    if batches == 1 or shift > MOST_SHIFT or shift * math.sqrt(batches) <= LEAST_SHIFT:  # to know the batch costs more,
        return whole
    batches, shift = min(batches, MOST_BATCHES), max(shift, LEAST_SHIFT)  # and so do fewer batches, and less noise
    return AllocatedPair(batches, shift, "remove"), AllocatedPair(batches, shift, "add")


def _fixed_size(leaf: ev.Event, inner: ev.Event, rate: float, neighbours: Neighbours) -> tuple[Pair, Pair]:
    if neighbours == "add_remove":
        raise _refusal(leaf, neighbours, "a batch of fixed size out of n reveals n; use 'replace_one' or 'zero_out'")
    # A record of zeros is one of the records that it may be replaced by, so "zero_out" is covered by "replace_one"
    # where that is known: the other records of a batch change with the sample, by up to twice the clip.
    match inner:
        case ev.Gaussian(noise_multiplier=noise) if noise > 0:
            return _both(FixedSizePair(rate, _ratio(2.0, noise)))
        case ev.Gaussian(noise_multiplier=0) | ev.Laplace(scale=0):
            return _both(fixed_answers(EVERYTHING, rate))
        case ev.Laplace(scale=scale):
            return _both(fixed_answers(answers(_ratio(2.0, scale), 0.0), rate))
        case ev.DiscreteLaplace():
            return _both(fixed_answers(_lattice_laplace(inner, neighbours, 2.0), rate))
    if neighbours == "zero_out":
        why = "sampling replaces other records of the batch, of which a promise for zeroed-out ones says nothing"
        raise _refusal(leaf, neighbours, why)
    match inner:
        case ev.Pure(epsilon=epsilon) | ev.ExponentialMechanism(epsilon=epsilon):
            return _both(fixed_answers(answers(epsilon, 0.0), rate))
        case ev.Approximate(epsilon=epsilon, delta=delta):
            return _both(fixed_answers(answers(epsilon, delta), rate))
    raise _refusal(leaf, neighbours, "only single mechanisms with a dominating pair can be sampled")


def _lattice_laplace(leaf: ev.DiscreteLaplace, neighbours: Neighbours, moves: float) -> DiscretePair:
    units = round(moves) * leaf.clip
    if units > 256:
        raise _refusal(
            leaf, neighbours, "beyond 256 units a step its pair is not computed; 1 ÷ scale is a pure epsilon"
        )
    return lattice_laplace(units, _ratio(1.0, leaf.scale) / leaf.clip) if leaf.scale else EVERYTHING


def _ratio(sensitivity: float, noise: float) -> float:
    """sensitivity ÷ noise, rounded up; infinite where no float is as large."""
    ratio = sensitivity / noise
    return ratio if math.isinf(ratio) else directed(Fraction(sensitivity) / Fraction(noise), up=True)


def _both(pair: Pair) -> tuple[Pair, Pair]:
    return pair, pair


def _refusal(leaf: ev.Event, neighbours: Neighbours, why: str) -> NoProvenBound:
    return NoProvenBound(
        f"Expected an event with a proven bound under {neighbours!r}, got {leaf!r}: {why}. "
        "Ask under another relation, or describe the release by an event that has a proof, "
        "such as Approximate(epsilon=..., delta=...)."
    )
