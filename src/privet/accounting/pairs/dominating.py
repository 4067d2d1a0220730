"""From events and a neighbour relation to dominating pairs, or a refusal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from privet._checks import directed, shown
from privet.accounting import events as ev
from privet.accounting.pairs.elementary import (
    BoundedRangePair,
    ConcentratedBound,
    DiscretePair,
    GaussianPair,
    LaplacePair,
    mixed_loss,
)
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Pair
from privet.accounting.pairs.sampled import FixedSizePair, SampledLaplacePair
from privet.accounting.pairs.selected import MomentsOnly, SelectedBound, log_mean_trials
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
        forward.append((there, count))
        backward.append((back, count))
    if forward == backward:
        return (Direction("forward", tuple(forward)),)
    return Direction("forward", tuple(forward)), Direction("backward", tuple(backward))


def known_by_moments_only(ways: tuple[Direction, ...]) -> bool:
    """Whether a part has no dominating pair, so that only the Rényi accountant has a bound for the run."""
    return any(isinstance(pair, MomentsOnly) for way in ways for pair, _ in way.steps)


def _pairs(leaf: ev.Event, neighbours: Neighbours) -> tuple[Pair, Pair]:
    moves = sensitivity(neighbours)
    match leaf:
        case ev.Gaussian(noise_multiplier=noise):
            return _both(GaussianPair(_ratio(moves, noise)) if noise else _EVERYTHING)
        case ev.Laplace(scale=scale):
            return _both(LaplacePair(_ratio(moves, scale)) if scale else _EVERYTHING)
        case ev.RandomizedResponse(epsilon=epsilon):
            if neighbours == "add_remove":
                raise _refusal(leaf, neighbours, "the number of answers tells how many records there are")
            return _both(_answers(epsilon, 0.0))
        case ev.Pure(epsilon=epsilon):
            return _both(_answers(epsilon, 0.0))
        case ev.Approximate(epsilon=epsilon, delta=delta):
            return _both(_answers(epsilon, delta))
        case ev.ExponentialMechanism(epsilon=epsilon):
            return _both(BoundedRangePair(epsilon) if epsilon else _answers(0.0, 0.0))
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
            return MixturePair(rate, _ratio(1.0, noise), "remove"), MixturePair(rate, _ratio(1.0, noise), "add")
    if neighbours == "replace_one":
        why = "Poisson sampling of this mechanism has a proven pair only for 'add_remove' and 'zero_out'"
        raise _refusal(leaf, neighbours, why)
    match inner:
        case ev.Gaussian():
            return _sampled(_EVERYTHING, rate)
        case ev.Laplace(scale=scale) if scale > 0:
            distance = _ratio(1.0, scale)
            return SampledLaplacePair(rate, distance, "remove"), SampledLaplacePair(rate, distance, "add")
        case ev.Laplace():
            return _sampled(_EVERYTHING, rate)
        case ev.Pure(epsilon=epsilon) | ev.ExponentialMechanism(epsilon=epsilon):
            return _sampled(_answers(epsilon, 0.0), rate)
        case ev.Approximate(epsilon=epsilon, delta=delta):
            return _sampled(_answers(epsilon, delta), rate)
    raise _refusal(leaf, neighbours, "only single mechanisms with a dominating pair can be sampled")


def _fixed_size(leaf: ev.Event, inner: ev.Event, rate: float, neighbours: Neighbours) -> tuple[Pair, Pair]:
    if neighbours == "add_remove":
        raise _refusal(leaf, neighbours, "a batch of fixed size out of n reveals n; use 'replace_one' or 'zero_out'")
    # A record of zeros is one of the records that it may be replaced by, so "zero_out" is covered by "replace_one"
    # where that is known: the other records of a batch change with the sample, by up to twice the clip.
    match inner:
        case ev.Gaussian(noise_multiplier=noise) if noise > 0:
            return _both(FixedSizePair(rate, _ratio(2.0, noise)))
        case ev.Gaussian(noise_multiplier=0) | ev.Laplace(scale=0):
            return _both(_fixed_answers(_EVERYTHING, rate))
        case ev.Laplace(scale=scale):
            return _both(_fixed_answers(_answers(_ratio(2.0, scale), 0.0), rate))
    if neighbours == "zero_out":
        why = "sampling replaces other records of the batch, of which a promise for zeroed-out ones says nothing"
        raise _refusal(leaf, neighbours, why)
    match inner:
        case ev.Pure(epsilon=epsilon) | ev.ExponentialMechanism(epsilon=epsilon):
            return _both(_fixed_answers(_answers(epsilon, 0.0), rate))
        case ev.Approximate(epsilon=epsilon, delta=delta):
            return _both(_fixed_answers(_answers(epsilon, delta), rate))
    raise _refusal(leaf, neighbours, "only single mechanisms with a dominating pair can be sampled")


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


# --- mechanisms with finitely many outcomes: (P-mass, Q-mass) of each, an infinite loss where Q has none ------------

_EVERYTHING = DiscretePair((), (), 1.0)  # noise 0: the loss is infinite


def _answers(epsilon: float, delta: float) -> DiscretePair:
    """The pair of all (epsilon, delta)-private mechanisms (Kairouz, Oh and Viswanath 2015)."""
    if epsilon == 0:
        return DiscretePair((0.0,), (1 - delta,), delta)
    heads = 1 / (1 + math.exp(-epsilon))
    tails = 1 / (1 + math.exp(epsilon)) if epsilon < 700 else 0.0
    return DiscretePair((-epsilon, epsilon), ((1 - delta) * tails, (1 - delta) * heads), delta)


def _outcomes(pair: DiscretePair) -> list[tuple[float, float, float]]:
    """(P-mass, Q-mass, loss) of every outcome, those that only one of the two can produce included."""
    # by symmetry of the pairs above, Q has at -loss what P has at loss, and as much that P never shows
    finite = [(p, q, x) for x, p, q in zip(pair.losses, pair.masses, reversed(pair.masses), strict=True)]
    only_q = pair.infinite
    return [*finite, (pair.infinite, 0.0, math.inf), (0.0, only_q, -math.inf)]


def _up(mixed: float, loss: float) -> float:
    """The mixed loss, rounded up: no larger one must occur, and it is above 0 where the unsampled one is."""
    return max(mixed + 8 * UNIT * abs(mixed), 5e-324 if loss > 0 else -math.inf)


def _gathered(losses: list[tuple[float, float]], infinite: float) -> DiscretePair:
    """A DiscretePair from (loss, P-mass) with equal losses merged."""
    table: dict[float, float] = {}
    for loss, mass in losses:
        if mass > 0:
            table[loss] = table.get(loss, 0.0) + mass
    order = sorted(table)
    return DiscretePair(tuple(order), tuple(table[k] for k in order), infinite)


def _leaving(pair: DiscretePair, rate: float) -> DiscretePair:
    """((1-q)Q + qP, Q): an outcome of ratio e^loss gets the ratio 1 + q(e^loss - 1)."""
    outcomes = _outcomes(pair)
    losses = [
        (_up(mixed_loss(rate, loss), loss), (1 - rate) * q + rate * p) for p, q, loss in outcomes if loss < math.inf
    ]
    return _gathered(losses, sum(rate * p for p, _, loss in outcomes if loss == math.inf))


def _joining(pair: DiscretePair, rate: float) -> DiscretePair:
    """(P, (1-q)P + qQ), with P and Q swapped as the pairs here are symmetric."""
    losses = [(_up(-mixed_loss(rate, -loss), loss), p) for p, _, loss in _outcomes(pair) if loss > -math.inf]
    return _gathered(losses, 0.0)


def _sampled(pair: DiscretePair, rate: float) -> tuple[Pair, Pair]:
    return _leaving(pair, rate), _joining(pair, rate)


def _fixed_answers(pair: DiscretePair, rate: float) -> DiscretePair:
    """As FixedSizePair: above 0 as when a record leaves, below 0 as when it joins, the rest at 0."""
    leaving, joining = _leaving(pair, rate), _joining(pair, rate)
    losses = [(x, m) for x, m in zip(leaving.losses, leaving.masses, strict=True) if x > 0]
    losses += [(x, m) for x, m in zip(joining.losses, joining.masses, strict=True) if x < 0]
    rest = 1 - leaving.infinite - sum(m for _, m in losses)
    return _gathered([*losses, (0.0, max(rest, 0.0))], leaving.infinite)
