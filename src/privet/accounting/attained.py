"""Lower ends that are proven: what of a run attains its dominating pairs, on tables that the run describes.

An accountant brackets the cost of the dominating pairs. That is the cost of the run itself only where some two
neighbouring tables have exactly these pairs, all steps together; docs/proofs/pairs.md, section 5, says where.
"""

from dataclasses import replace
from fractions import Fraction

from privet._checks import directed
from privet.accounting import events as ev
from privet.accounting.pairs.allocated import LEAST_SHIFT, MOST_BATCHES
from privet.accounting.pairs.dominating import directions, has_allocation, leaves, one_gaussian
from privet.privacy import Neighbours

Attained = tuple[ev.Event, Neighbours]


def attained(run: ev.Event, neighbours: Neighbours) -> tuple[Attained, ...]:
    """Runs, each under a relation, that cost no more than `run` does, and cost what their dominating pairs say.

    The run itself, if it is one of them; none where nothing is proven from below. Parts that are known by a bound
    only are left out: to release less costs no more.

    Examples
    --------
    >>> from privet.accounting import Gaussian, Pure
    >>> attained(Gaussian(noise_multiplier=2.0) * 3 + Pure(epsilon=0.1), "add_remove")
    ((Gaussian(noise_multiplier=2.0) * 3, 'add_remove'),)
    """
    parts = _unwrapped(run, neighbours)
    if all(_is_attained(leaf) for leaf, _ in parts) and parts == leaves(run, neighbours):
        return ((run, neighbours),)
    runs = [(_composed([(_alone(leaf), count) for leaf, count in parts]), neighbours)]
    if neighbours == "replace_one" and any(isinstance(leaf, ev.FixedSizeSampled) for leaf, _ in parts):
        runs.append((_composed([(_opposed(leaf), count) for leaf, count in parts]), "zero_out"))
    return tuple((event, relation) for event, relation in runs if event is not None)


def _unwrapped(run: ev.Event, neighbours: Neighbours) -> list[tuple[ev.Event, int]]:
    """The parts of a run, one trial in place of a search that has at least one: by some order, all trials tie."""
    parts: list[tuple[ev.Event, int]] = []
    for leaf, count in leaves(run, neighbours):
        if isinstance(leaf, ev.NegativeBinomialTrials):
            parts += [(part, times * count) for part, times in _unwrapped(leaf.event, neighbours)]
        else:
            parts.append((leaf, count))
    return parts


def _is_attained(leaf: ev.Event) -> bool:
    if isinstance(leaf, ev.Allocated):  # unless its pair is that of something dearer
        inner = one_gaussian(leaf.event)
        if not isinstance(inner, ev.Gaussian) or leaf.steps == 1:
            return isinstance(inner, ev.Gaussian)
        in_reach = inner.noise_multiplier <= 1 / LEAST_SHIFT and leaf.steps <= MOST_BATCHES
        return in_reach and leaf.times == 1 and has_allocation(directions(leaf, "zero_out"))
    inner = one_gaussian(leaf.event) if isinstance(leaf, ev.PoissonSampled) else leaf
    return isinstance(inner, ev.Gaussian | ev.Laplace | ev.DiscreteLaplace) or isinstance(
        leaf, ev.RandomizedResponse | ev.KaryResponse
    )


def _alone(leaf: ev.Event) -> ev.Event | None:
    """The part on a table whose other records are zeros: a batch of fixed size then is as good as a Poisson one."""
    if isinstance(leaf, ev.FixedSizeSampled):
        return _alone(leaf.event.poisson(rate=_rate(leaf)))
    return leaf if _is_attained(leaf) else None


def _opposed(leaf: ev.Event) -> ev.Event | None:
    """The part, under "zero_out", where one record +v becomes a −v as all others are: a sum moves by 2, or not."""
    match leaf:
        case ev.FixedSizeSampled(event=inner):
            halved = _opposed(one_gaussian(inner))
            return None if halved is None else halved.poisson(rate=_rate(leaf))
        case ev.Gaussian(noise_multiplier=noise):
            return replace(leaf, noise_multiplier=noise / 2)
        case ev.Laplace(scale=scale):
            return replace(leaf, scale=scale / 2)
        case ev.DiscreteLaplace(scale=scale, clip=clip):
            return replace(leaf, scale=scale / 2, clip=2 * clip)
        case ev.RandomizedResponse() | ev.KaryResponse():
            return leaf
    return None


def _rate(leaf: ev.FixedSizeSampled) -> float:
    """batch ÷ records, rounded down: a lower rate costs no more."""
    return directed(Fraction(leaf.batch, leaf.records), up=False)


def _composed(parts: list[tuple[ev.Event | None, int]]) -> ev.Event | None:
    kept = tuple(event if count == 1 else event * count for event, count in parts if event is not None)
    return None if not kept else kept[0] if len(kept) == 1 else ev.Composed(parts=kept)
