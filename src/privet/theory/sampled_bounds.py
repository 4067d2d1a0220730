"""Lemma 2.7 under sampling: how far descent on batches is from the optimum. Proof: docs/proofs/utility.md, 12."""

from dataclasses import replace
from typing import Literal

from privet.theory.descent_bounds import estimated_gradient_bound
from privet.theory.risk import CONVEX, DISTANCE, LIPSCHITZ, RiskBound, at_least_zero, positive, whole

_PRIVATE = "each step's batch is drawn afresh, by Poisson sampling or all subsets of one size equally likely"


def sampled_moment(
    *, steps: int, lipschitz: float, d: int, noise_stddev: float, batch: float, sampling_rate: float | None = None
) -> float:
    """Return B², the mean over T = `steps` + 1 gradients of what E|estimate|² can be at most, of which one is unused.

    An estimate is (sum over a batch + noise) ÷ `batch`, the expected size. For batches of a fixed size, all or one,
    B² = G² + d σ² but for the unused one; Poisson batches of rate q add (1 − q) G²/batch, as their size varies. All
    are attained where all records have the same gradient.

    Parameters
    ----------
    steps : noisy gradients that are taken
    lipschitz : G, bound on the norm of one record's gradient
    noise_stddev : σ, of a coordinate of the estimate: noise of the sum ÷ `batch`
    batch : expected number of records in a batch
    sampling_rate : q, of Poisson batches; None for batches of a fixed size

    Examples
    --------
    >>> sampled_moment(steps=9, lipschitz=1.0, d=4, noise_stddev=0.5, batch=10)
    1.9
    >>> sampled_moment(steps=9, lipschitz=1.0, d=4, noise_stddev=0.5, batch=10, sampling_rate=0.1)
    1.981
    """
    steps, gradient = whole("steps", steps), positive("lipschitz", lipschitz)
    sigma = at_least_zero("noise_stddev", noise_stddev)
    varies = 0.0 if sampling_rate is None else max(0.0, 1.0 - positive("sampling_rate", sampling_rate))
    more = gradient * gradient * varies / positive("batch", batch) + whole("d", d) * sigma * sigma
    return gradient * gradient + more * steps / (steps + 1)


def sampled_descent_bound(
    *,
    steps: int,
    distance: float,
    lipschitz: float,
    d: int,
    noise_stddev: float,
    batch: float,
    sampling_rate: float | None = None,
    step_size: float | None = None,
    release: Literal["average", "last"] = "average",
) -> RiskBound:
    """Bound DP-SGD: projected descent on noisy gradients of batches that are drawn afresh at each step.

    E excess <= η B²/2 + R²/(2Tη), T = `steps` + 1 iterates with the start, B² the `sampled_moment`; at the best η,
    the default, R B/√T. For the average of the iterates with a constant step, or the last one with
    η_t = η (1 − t/T). Batches need no more steps than all records do, but noise: that is why Wu's "essentially the
    same" holds. Lecture: Wu, lemma 2.7 and section 1.3.

    Parameters
    ----------
    steps, lipschitz, d, noise_stddev, batch, sampling_rate : as in `sampled_moment`
    distance : R, public bound on |w_0 − w*|
    step_size : η; the best one if None
    release : which point the bound is about

    Examples
    --------
    >>> found = sampled_descent_bound(steps=99, distance=1.0, lipschitz=1.0, d=10, noise_stddev=0.1, batch=20,
    ...                               sampling_rate=0.02)
    >>> print(found)
    excess risk at most 0.107122 (lemma 2.7 for batches, claim 34)
    """
    moment = sampled_moment(
        steps=steps, lipschitz=lipschitz, d=d, noise_stddev=noise_stddev, batch=batch, sampling_rate=sampling_rate
    )
    found = estimated_gradient_bound(steps=steps + 1, distance=distance, second_moment=moment, step_size=step_size)
    name = "lemma 2.7 for batches, claim 34"
    named = name if release == "average" else f"{name}, last iterate under linear decay"
    return replace(found, theorem=named, assumptions=(CONVEX, LIPSCHITZ, DISTANCE, _PRIVATE))
