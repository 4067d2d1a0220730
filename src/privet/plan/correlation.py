"""What correlated noise costs under each way to draw batches: without sampling, or amplified where that is proven."""

from privet.accounting import Event, Gaussian
from privet.errors import InvalidParameter, NoProvenBound
from privet.noise import Banded, InverseBanded, Strategy, correlated_mechanism
from privet.privacy import Neighbours
from privet.sampling import Cyclic, CyclicPoisson, FullBatch, Sampling


def correlated_event(
    strategy: Strategy,
    *,
    noise_multiplier: float,
    sampling: Sampling,
    steps: int,
    records: int,
    neighbours: Neighbours,
) -> Event:
    """The event of `steps` clipped sums released with noise C⁻¹z, on batches of `sampling`.

    Theorem: docs/proofs/correlated.md, section 1 for batches in a public order, 3 for `CyclicPoisson`. Others are
    refused: noise that is correlated over a record's steps is not amplified as independent noise is.

    Examples
    --------
    >>> strategy = Banded(coefficients=(1, 0.75))
    >>> asked = {"noise_multiplier": 5.0, "steps": 40, "records": 100, "neighbours": "zero_out"}
    >>> run = correlated_event(strategy, sampling=Cyclic(batch=10), **asked)
    >>> round(run.noise_multiplier, 9)                                        # four passes, each √(1 + 0.75²) clips
    2.0
    >>> run = correlated_event(strategy, sampling=CyclicPoisson(sampling_rate=0.2, groups=2), **asked)
    >>> run.count, run.event.rate, round(run.event.event.noise_multiplier, 9)
    (20, 0.2, 4.0)
    """
    one = correlated_mechanism(strategy, noise_multiplier=noise_multiplier, steps=steps)
    asked = {"steps": steps, "records": records, "neighbours": neighbours}
    if isinstance(sampling, CyclicPoisson):
        if not isinstance(strategy, Banded) or strategy.bands > sampling.groups:
            raise NoProvenBound(f"""Expected a Banded strategy of at most {sampling.groups:,} bands, as many as there
                are groups, got {strategy!r}: a record's steps would share noise, and sampling is not known to amplify
                that. Use banded_square_root({sampling.groups}), or Cyclic batches.""")
        return sampling.event(one, **asked)  # type: ignore[arg-type]
    if isinstance(sampling, FullBatch):
        return correlated_mechanism(strategy, noise_multiplier=noise_multiplier, steps=steps, participations=steps)
    if isinstance(sampling, Cyclic):
        sampling.event(Gaussian(noise_multiplier=1.0), **asked)  # type: ignore[arg-type]  # refuses add_remove
        apart = sampling.steps_a_pass(records)
        return correlated_mechanism(
            strategy,
            noise_multiplier=noise_multiplier,
            steps=steps,
            participations=-(-steps // apart),
            separation=apart,
        )
    raise NoProvenBound(f"""Expected FullBatch, Cyclic, Strided or CyclicPoisson for correlated noise, got {sampling!r}:
        it is not known to amplify noise that a record's steps share. Use one of those.""")


def explain(strategy: Strategy) -> str:
    """What a guarantee says of correlated noise."""
    which = "noise of a step" if isinstance(strategy, InverseBanded) else "sum of a step"
    return f"noise is correlated over the steps: the {which} is weighed with those of {strategy.bands - 1:,} before"


def check_correlation(strategy: object, *, clipped: bool) -> None:
    """Refuse what is no strategy, and one for sums that are not of records clipped alike at every step."""
    if not isinstance(strategy, Banded | InverseBanded):
        raise InvalidParameter(f"""Expected correlation to be a strategy, got {strategy!r}: no noise follows from it.
            Use e.g. banded_inverse_square_root(100), or leave it out for independent noise.""")
    if not clipped:
        raise InvalidParameter("""Expected Gaussian noise on sums of records that are clipped alike at every step, got
            another release, or adaptive clipping: correlated noise would not fit it. Leave correlation out.""")
