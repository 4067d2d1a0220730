"""What random allocations cost, alone or with other releases: an upper end, and a lower one on request."""

from privet.accounting import events as ev
from privet.accounting.fourier.brackets import fourier_delta, fourier_epsilon
from privet.accounting.interface import Bounds, no_theorem
from privet.accounting.pairs.allocated import AllocatedPair
from privet.accounting.pairs.dominating import directions, has_allocation, known_by_moments_only
from privet.privacy import Neighbours


def allocation(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """An upper bound for a run with allocated batches, by laws above their losses; docs/proofs/allocation.md."""
    ways = directions(run, neighbours)
    if known_by_moments_only(ways) or not has_allocation(ways):
        raise no_theorem("allocation", "no part is a random allocation, or one is known by its moments only")
    if delta is not None:
        return Bounds(0.0, max(fourier_epsilon(way.steps, delta)[1] for way in ways))
    return Bounds(0.0, max(fourier_delta(way.steps, epsilon or 0.0)[1] for way in ways))


def allocation_below(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> float:
    """What the dominating pairs of such a run cost at least, by laws below their losses."""
    lowest = 0.0
    for way in directions(run, neighbours):
        steps = [(pair.lower if isinstance(pair, AllocatedPair) else pair, count) for pair, count in way.steps]
        if any(isinstance(pair, AllocatedPair) and pair.is_empty for pair, _ in steps):
            continue
        low, _ = fourier_epsilon(steps, delta) if delta is not None else fourier_delta(steps, epsilon or 0.0)
        lowest = max(lowest, low)
    return lowest
