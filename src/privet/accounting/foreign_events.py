"""Events of other libraries as events of privet: dp_accounting's `DpEvent`, and the history of an Opacus accountant.

Neither library is needed: objects are told by the name of their class and read by their public attributes. Both state
noise as noise stddev ÷ clip, as privet does, so nothing is converted but names. What has no meaning here is refused.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from privet._checks import directed, shown
from privet.accounting import events as ev
from privet.accounting.truncated_poisson import truncated_poisson
from privet.errors import InvalidParameter
from privet.privacy import Neighbours

RELATIONS: dict[str, Neighbours] = {
    "ADD_OR_REMOVE_ONE": "add_remove",
    "REPLACE_SPECIAL": "zero_out",
    "REPLACE_ONE": "replace_one",
}
"""dp_accounting's `NeighboringRelation` by name, and what it is called here."""


def from_dp_accounting(event: Any) -> ev.Event:
    """The event that a `DpEvent` of dp_accounting describes.

    Promise: what ran is the same, number for number; a number that no float equals is rounded to where it costs more.
    The relation is part of the question, not of the event: ask under `RELATIONS[relation.name]`. dp_accounting's own
    answer may differ in what it bounds tightly, and "zero_out" takes a zeroed-out record to answer like any other.

    Examples
    --------
    >>> class GaussianDpEvent:                             # stands for dp_accounting.GaussianDpEvent
    ...     noise_multiplier = 1.1
    >>> from_dp_accounting(GaussianDpEvent())
    Gaussian(noise_multiplier=1.1)
    """
    name = type(event).__name__
    if name not in _READERS:
        raise InvalidParameter(
            f"Expected a DpEvent that privet has an event for, got {name}: nothing here has its meaning. Describe the "
            "release by Approximate(epsilon=..., delta=...) or ZeroConcentrated(rho=...) with the bound proved for it."
        )
    return _READERS[name](event)


def from_opacus(history: Any) -> ev.Event:
    """The event of an Opacus accountant, or of its `history`: a list of (noise multiplier, sample rate, steps).

    Opacus samples by Poisson coins where its engine does (`poisson_sampling=True`, the default), and its epsilon is for
    "add_remove"; this event may be asked under each relation.

    Examples
    --------
    >>> from_opacus([(1.1, 0.01, 1000), (0.9, 0.01, 50)])  # doctest: +NORMALIZE_WHITESPACE
    Gaussian(noise_multiplier=1.1).poisson(rate=0.01) * 1000 + Gaussian(noise_multiplier=0.9).poisson(rate=0.01) * 50
    """
    steps = getattr(history, "history", history)
    if not isinstance(steps, Iterable) or not (listed := list(steps)) or any(len(step) != 3 for step in listed):
        raise InvalidParameter(
            f"Expected an Opacus accountant with a history of (noise multiplier, sample rate, steps), got "
            f"{type(history).__name__}: what did not run has no privacy cost. Pass privacy_engine.accountant after "
            "training."
        )
    parts = tuple(ev.Gaussian(noise_multiplier=noise).poisson(rate=rate) * steps for noise, rate, steps in listed)
    return parts[0] if len(parts) == 1 else ev.Composed(parts=parts)


def _response(event: Any) -> ev.Event:
    """With probability p a uniform answer of k: odds of the true one against each other are 1 + k(1 − p)/p."""
    most, noise = event.num_buckets, Fraction(event.noise_parameter)
    if most == 1:
        return ev.Pure(epsilon=0.0)
    if not 0 < noise <= 1:
        return _no_noise("noise_parameter", event.noise_parameter)
    epsilon = math.log1p(directed(most * (1 - noise) / noise, up=True)) * (1 + 1e-15)
    return ev.KaryResponse(epsilon=epsilon, answers=most)


def _discrete_laplace(event: Any) -> ev.Event:
    if not event.noise_parameter > 0:
        return _no_noise("noise_parameter", event.noise_parameter)
    size = Fraction(event.noise_parameter) * event.sensitivity
    return ev.DiscreteLaplace(scale=directed(1 / size, up=False), clip=event.sensitivity)


def _zcdp(event: Any) -> ev.Event:
    if getattr(event, "xi", 0.0) != 0:
        raise InvalidParameter(
            f"Expected a ZCDpEvent with xi = 0, got {shown(event.xi)}: an additive part has no event here. Describe "
            "the release by Approximate(epsilon=..., delta=...)."
        )
    return ev.ZeroConcentrated(rho=event.rho)


def _search(event: Any) -> ev.Event:
    inner = from_dp_accounting(event.event)
    if event.shape == math.inf:
        return ev.PoissonTrials(event=inner, mean=event.mean)
    if event.shape == 1 and event.mean > 1:
        return ev.NegativeBinomialTrials(event=inner, shape=1.0, stop=directed(1 / Fraction(event.mean), up=False))
    raise InvalidParameter(
        f"Expected a search of shape 1 (geometric) or infinity (Poisson), got {shown(event.shape)}: its chance to stop "
        "follows from the mean only roughly. Use NegativeBinomialTrials(event=..., shape=..., stop=...)."
    )


def _no_noise(name: str, value: Any) -> ev.Event:
    if value == 0:
        return ev.Gaussian(noise_multiplier=0.0)  # all is revealed, whatever was
    raise InvalidParameter(
        f"Expected {name} in its range, got {shown(value)}: no mechanism has it. Correct the DpEvent."
    )


_READERS: dict[str, Callable[[Any], ev.Event]] = {
    "NoOpDpEvent": lambda event: ev.Pure(epsilon=0.0),
    "NonPrivateDpEvent": lambda event: ev.Gaussian(noise_multiplier=0.0),
    "GaussianDpEvent": lambda event: ev.Gaussian(noise_multiplier=event.noise_multiplier),
    "LaplaceDpEvent": lambda event: ev.Laplace(scale=event.noise_multiplier),
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "RandomizedResponseDpEvent": _response,
    "ZCDpEvent": _zcdp,
    "ComposedDpEvent": lambda event: (
        ev.Composed(parts=tuple(map(from_dp_accounting, event.events))) if event.events else ev.Pure(epsilon=0.0)
    ),
    "SelfComposedDpEvent": lambda event: (
        from_dp_accounting(event.event) * event.count if event.count else ev.Pure(epsilon=0.0)
    ),
    "PoissonSampledDpEvent": lambda event: (
        from_dp_accounting(event.event).poisson(rate=event.sampling_probability)
        if event.sampling_probability
        else ev.Pure(epsilon=0.0)
    ),
    "SampledWithoutReplacementDpEvent": lambda event: from_dp_accounting(event.event).without_replacement(
        batch=event.sample_size, records=event.source_dataset_size
    ),
    "TruncatedSubsampledGaussianDpEvent": lambda event: truncated_poisson(
        ev.Gaussian(noise_multiplier=event.noise_multiplier),
        rate=event.sampling_probability,
        batch=event.truncated_batch_size,
        records=event.dataset_size,
    ),
    "RepeatAndSelectDpEvent": _search,
}
