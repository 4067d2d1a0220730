"""What a guarantee says of a run: what ran, as the clause of a sentence, and what that rests on."""

from privet.accounting import events as ev
from privet.accounting.pairs.dominating import leaves
from privet.accounting.selection import mean_trials
from privet.privacy import Neighbours


def description(run: ev.Event, neighbours: Neighbours) -> str:
    """What ran, as the clause of a sentence.

    Examples
    --------
    >>> description(ev.Laplace(scale=4.0) * 10, "add_remove")
    '10 releases of Laplace noise (scale 4 × clip)'
    """
    return "; ".join(
        f"{count:,} release{'s' if count > 1 else ''} of {_words(leaf, neighbours)}"
        for leaf, count in leaves(run, neighbours)
    )


def in_short(run: ev.Event, neighbours: Neighbours) -> str:
    """What ran, in a few words: how often what kind of noise, without its parameters.

    Examples
    --------
    >>> in_short(ev.Gaussian(noise_multiplier=4.0) * 40 + ev.Gaussian(noise_multiplier=9.0) * 3, "replace_one")
    '43 releases of Gaussian noise'
    """
    counts: dict[str, int] = {}
    for leaf, count in leaves(run, neighbours):
        kind = _kind(leaf)
        counts[kind] = counts.get(kind, 0) + count
    parts = [f"{count:,} release{'s' if count > 1 else ''} of {kind}" for kind, count in counts.items()]
    return " and ".join(parts) if len(parts) < 3 else ", ".join(parts[:-1]) + f" and {parts[-1]}"


def _kind(leaf: ev.Event) -> str:
    match leaf:
        case ev.Gaussian() | ev.DiscreteGaussian():
            return "Gaussian noise"
        case ev.Laplace() | ev.DiscreteLaplace():
            return "Laplace noise"
        case ev.ExponentialMechanism():
            return "the exponential mechanism"
        case ev.RandomizedResponse() | ev.KaryResponse():
            return "randomised answers"
        case ev.Pure() | ev.Approximate() | ev.ZeroConcentrated():
            return "a declared cost"
        case ev.PoissonSampled(event=inner):
            return f"{_kind(inner)} on Poisson batches"
        case ev.FixedSizeSampled(event=inner):
            return f"{_kind(inner)} on batches of fixed size"
        case ev.Allocated(event=inner):
            return f"{_kind(inner)} on batches that records choose"
        case ev.NegativeBinomialTrials() | ev.PoissonTrials():
            return "the best of a random number of trials"
        case ev.Composed() | ev.Repeated():
            kinds = dict.fromkeys(_kind(part) for part, _ in leaves(leaf))
            return " and ".join(kinds)
        case ev.Under(event=inner):
            return _kind(inner)
    return type(leaf).__name__


def _words(leaf: ev.Event, neighbours: Neighbours) -> str:
    match leaf:
        case ev.Gaussian(noise_multiplier=noise):
            return f"Gaussian noise (noise multiplier {noise:g})"
        case ev.Laplace(scale=scale):
            return f"Laplace noise (scale {scale:g} × clip)"
        case ev.Composed() | ev.Repeated():
            return f"{description(leaf, neighbours)}, together"
        case ev.PoissonSampled(event=inner, rate=rate):
            return f"{_words(inner, neighbours)} on Poisson batches (rate {rate:g})"
        case ev.FixedSizeSampled(event=inner, batch=batch, records=records):
            return f"{_words(inner, neighbours)} on batches of {batch:,} out of {records:,} without replacement"
        case ev.Allocated(event=inner, steps=steps, times=times):
            some = "one batch" if times == 1 else f"{times:,} batches"
            return f"{_words(inner, neighbours)} on {steps:,} batches each, every record in {some} at random"
        case ev.NegativeBinomialTrials(event=inner) | ev.PoissonTrials(event=inner):
            law = "Poisson" if isinstance(leaf, ev.PoissonTrials) else f"negative binomial of shape {leaf.shape:g}"
            trial = description(inner, neighbours)
            return f"the best of {mean_trials(leaf):.4g} trials on average ({law}), a trial being {trial}"
    return repr(leaf)


def assumptions(run: ev.Event, neighbours: Neighbours) -> tuple[str, ...]:
    """What a guarantee of the run rests on, beside its theorem.

    Examples
    --------
    >>> assumptions(ev.Pure(epsilon=1.0), "zero_out")
    ('the stated guarantees of the declared parts hold for this neighbour relation',)
    """
    kinds = [leaf for leaf, _ in leaves(run, neighbours)]
    batched = ev.PoissonSampled | ev.FixedSizeSampled | ev.Allocated
    inner = [part for leaf in kinds for part, _ in leaves(leaf.event if isinstance(leaf, batched) else leaf)]
    found = []
    if any(isinstance(leaf, ev.Gaussian | ev.Laplace | ev.DiscreteLaplace | ev.DiscreteGaussian) for leaf in inner):
        found.append("each record's contribution is clipped before summation and the noise is drawn as described")
    if any(isinstance(leaf, ev.Allocated) for leaf in kinds):
        found.append("each record's batches are drawn independently of the others' and stay secret")
    if any(isinstance(leaf, ev.PoissonSampled | ev.FixedSizeSampled) for leaf in kinds):
        found.append("batches are drawn afresh at each step and stay secret")
    if any(isinstance(leaf, ev.NegativeBinomialTrials | ev.PoissonTrials) for leaf in kinds):
        found.append("trials are alike and independent, their number is drawn as described and stays secret")
        for leaf in kinds:
            if isinstance(leaf, ev.NegativeBinomialTrials | ev.PoissonTrials):
                found.extend(assumptions(leaf.event, neighbours))
    declared = ev.Pure | ev.Approximate | ev.ExponentialMechanism
    if any(isinstance(leaf, ev.PoissonSampled) and isinstance(leaf.event, declared) for leaf in kinds):
        found.append("a record that is zeroed out leaves the rest of its batch as it is")
    if any(isinstance(leaf, ev.Pure | ev.Approximate | ev.ZeroConcentrated) for leaf in inner):
        found.append("the stated guarantees of the declared parts hold for this neighbour relation")
    if ev.relations(run):
        found.append("noise multipliers are stated for this neighbour relation, and hold for no other")
    return tuple(dict.fromkeys(found))
