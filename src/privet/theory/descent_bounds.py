"""How far noisy gradient descent is from the optimum: the lectures' bounds with explicit constants.

T counts iterates, the start included: w_0, …, w_{T−1}. Their average, and the last of them, depend on T − 1 noisy
gradients only. `noise_stddev` is that of one coordinate of the *mean* gradient. `distance` is any public bound on
|w_0 − w*|: the radius of a ball if the start is its centre (Nikolov's R), the diameter of the set for an arbitrary
start (Wu's R). Proofs: docs/proofs/utility.md.
"""

import math
from dataclasses import replace

from privet.theory.risk import (
    CONVEX,
    DISTANCE,
    LIPSCHITZ,
    RiskBound,
    at_least_zero,
    bound,
    positive,
    smaller,
    trivial_bound,
    whole,
)

_THEOREMS = {
    "noiseless": "theorem 2.1, claims 23 and 27",
    "average": "lemma 2.7 with (13), claims 31, 34, 35",
    "last_linear": "last iterate under linear decay (Zamani and Glineur 2023, Defazio et al. 2023)",
    "rank": "theorem 4.1 with explicit constants, claim 49",
    "nikolov": "Nikolov's accuracy theorem, claims 114 to 117",
}
_ASSUME: dict[str, tuple[str, ...]] = {
    "rank": (
        CONVEX,
        LIPSCHITZ,
        "the loss depends on the parameters through <x, θ> only",
        "no projection: projecting the noise of all d coordinates destroys the bound",
        "`seminorm` is at least |θ_0 − θ*|_M and does not come from the data",
    ),
    "nikolov": ("features in [−1, 1]^d with a 1 appended, labels ±1, logistic loss, start at the centre of the ball",),
}


def restated(estimated: RiskBound, method: str) -> RiskBound:
    """Return `estimated_gradient_bound` as that of a method for which the same number is proved."""
    assumptions = _ASSUME.get(method, (CONVEX, LIPSCHITZ, DISTANCE))
    return replace(estimated, theorem=_THEOREMS[method], assumptions=assumptions)


def second_moment(
    *, steps: int, lipschitz: float, d: int, noise_stddev: float, noisy_steps: int | None = None
) -> float:
    """Return B², the mean over T = `steps` gradients of what E|gradient + noise|² can be at most.

    B² = G² + d σ² if all carry noise (lecture: claims 35 and 117). A release of w_0, …, w_{T−1} never uses the T-th
    gradient, whose noise may be left out: with `noisy_steps` = T − 1, B² = G² + d σ² (T − 1)/T.

    Examples
    --------
    >>> second_moment(steps=4, lipschitz=1.0, d=8, noise_stddev=0.5)
    3.0
    >>> second_moment(steps=4, lipschitz=1.0, d=8, noise_stddev=0.5, noisy_steps=3)
    2.5
    """
    steps = whole("steps", steps)
    noisy = steps if noisy_steps is None else min(whole("noisy_steps", noisy_steps, least=0), steps)
    sigma = at_least_zero("noise_stddev", noise_stddev)
    gradient = positive("lipschitz", lipschitz)
    return gradient * gradient + whole("d", d) * sigma * sigma * (noisy / steps)


def estimated_gradient_bound(
    *, steps: int, distance: float, second_moment: float, step_size: float | None = None
) -> RiskBound:
    """Bound descent with unbiased gradient estimates, E|estimate|² <= `second_moment` = B², average of iterates.

    E excess <= η B²/2 + R²/(2 T η); with the best step size η = R/(B√T), the default, R B/√T.
    Lecture: Wu, lemma 2.7 (claim 34); Nikolov, accuracy theorem (claim 116).

    Parameters
    ----------
    steps : T, how many iterates are averaged, the start included
    distance : R, public bound on |w_0 − w*|
    second_moment : B², unit of a squared gradient
    step_size : η, constant; the best one if None

    Examples
    --------
    >>> print(estimated_gradient_bound(steps=100, distance=1.0, second_moment=4.0))
    excess risk at most 0.2 (lemma 2.7, claims 34 and 116)
    """
    steps, radius = whole("steps", steps), positive("distance", distance)
    moment = positive("second_moment", second_moment)
    if step_size is None:
        value = radius * math.sqrt(moment / steps)
    else:
        eta = positive("step_size", step_size)
        value = 0.5 * eta * moment + radius * radius / (2.0 * steps * eta)
    unbiased = "given the past, each estimate has a subgradient as its mean"
    return bound(value, "lemma 2.7, claims 34 and 116", CONVEX, unbiased, DISTANCE)


def gradient_descent_bound(
    *, steps: int, distance: float, lipschitz: float, step_size: float | None = None
) -> RiskBound:
    """Bound projected gradient descent without noise, average of iterates.

    L(average) − L* <= R G/√T with η = R/(G√T); for any η, η G²/2 + R²/(2ηT). The constant cannot be improved: the
    largest of T coordinates attains it. Lecture: Wu, theorem 2.1 and (7)–(8) (claims 23 and 27).

    Examples
    --------
    >>> print(gradient_descent_bound(steps=400, distance=2.0, lipschitz=3.0))
    excess risk at most 0.3 (theorem 2.1, claims 23 and 27)
    """
    moment = positive("lipschitz", lipschitz) ** 2
    found = estimated_gradient_bound(steps=steps, distance=distance, second_moment=moment, step_size=step_size)
    return restated(found, "noiseless")


def average_iterate_bound(
    *,
    steps: int,
    distance: float,
    lipschitz: float,
    d: int,
    noise_stddev: float,
    step_size: float | None = None,
    noisy_steps: int | None = None,
) -> RiskBound:
    """Bound noisy projected gradient descent, average of w_0, …, w_{T−1}.

    E excess <= η B²/2 + R²/(2 T η) with B² = G² + d σ²; at the best η, R B/√T. With σ = 2G√T/(nμ) that is
    R G √(1/T + 4d/(nμ)²): it falls with T, to 2 R G √d/(nμ). Lecture: lemma 2.7 with (13) (claims 34 and 35), which
    is the explicit form of theorem 2.6 (claim 31).

    Parameters
    ----------
    steps : T, how many iterates are averaged, the start included
    distance : R, public bound on |w_0 − w*|: radius if the start is the centre, else diameter
    lipschitz : G, bound on the norm of one record's gradient
    d : number of parameters
    noise_stddev : σ, of a coordinate of the mean gradient
    step_size : η, constant; the best one if None
    noisy_steps : how many of the T gradients carry noise: all by default, as the lecture has it; T − 1 is true, too

    Examples
    --------
    >>> from privet.theory import exact_noise
    >>> sigma = exact_noise(epsilon=1.0, delta=1e-5, steps=100, sensitivity=2 / 1000)
    >>> found = average_iterate_bound(steps=100, distance=1.0, lipschitz=1.0, d=10, noise_stddev=sigma)
    >>> f"{found.value:.9f}"
    '0.102745825'
    """
    moment = second_moment(steps=steps, lipschitz=lipschitz, d=d, noise_stddev=noise_stddev, noisy_steps=noisy_steps)
    found = estimated_gradient_bound(steps=steps, distance=distance, second_moment=moment, step_size=step_size)
    return restated(found, "average")


def linear_decay_bound(
    *, steps: int, distance: float, lipschitz: float, d: int, noise_stddev: float, step_size: float | None = None
) -> RiskBound:
    """Bound the *last* of T iterates when the step size falls linearly: η_t = η (1 − t/T), t = 1, …, T − 1.

    The same number as for the average with constant η: η B²/2 + R²/(2 T η), at the best η R B/√T, with
    B² = G² + d σ² (T − 1)/T. No logarithm, no diameter: always below `last_iterate_bound`.
    Not in the lectures. Zamani and Glineur 2023; Defazio, Cutkosky, Mehta and Mishchenko 2023; our proof with noise
    in docs/proofs/utility.md.

    Examples
    --------
    >>> found = linear_decay_bound(steps=1000, distance=2.0, lipschitz=1.0, d=1, noise_stddev=0.0)
    >>> slow = last_iterate_bound(steps=1000, diameter=2.0, lipschitz=1.0, d=1, noise_stddev=0.0)
    >>> f"{found.value:.4f} {slow.value:.4f}"
    '0.0632 1.1268'
    """
    found = average_iterate_bound(
        steps=steps,
        distance=distance,
        lipschitz=lipschitz,
        d=d,
        noise_stddev=noise_stddev,
        step_size=step_size,
        noisy_steps=whole("steps", steps) - 1,
    )
    return restated(found, "last_linear")


def last_iterate_bound(
    *, steps: int, diameter: float, lipschitz: float, d: int, noise_stddev: float, step_scale: float | None = None
) -> RiskBound:
    """Bound the last iterate after T noisy steps of size η_t = c/√t, t = 1, …, T, in a set of that *diameter*.

    E excess <= (D²/c + c B²)(2 + ln T)/√T, B² = G² + d σ²; with c = D/B, the default, 2 D B (2 + ln T)/√T. Never
    above G D, which holds for every point of the set. Lecture: Razaviyayn after Shamir and Zhang 2013, theorem 2
    (claims 87 to 89); their w_T follows T − 1 steps, and their bound falls with T, so T steps are covered.

    Parameters
    ----------
    steps : T, how many noisy gradients
    diameter : D, of the set that is projected on; a radius is not enough
    lipschitz, d, noise_stddev : as in `average_iterate_bound`
    step_scale : c

    Examples
    --------
    >>> found = last_iterate_bound(steps=1000, diameter=2.0, lipschitz=1.0, d=1, noise_stddev=0.0)
    >>> f"{found.value:.9f}"
    '1.126751821'
    """
    steps, width = whole("steps", steps), positive("diameter", diameter)
    moment = second_moment(steps=steps, lipschitz=lipschitz, d=d, noise_stddev=noise_stddev)
    if step_scale is None:
        twice = 2.0 * width * math.sqrt(moment)
    else:
        scale = positive("step_scale", step_scale)
        twice = width * width / scale + scale * moment
    value = twice * (2.0 + math.log(steps)) / math.sqrt(steps)
    projected = "every iterate is projected on a convex set of that diameter, which holds the start"
    found = bound(value, "Shamir and Zhang 2013, claims 87 to 89", CONVEX, LIPSCHITZ, projected)
    return smaller(found, trivial_bound(distance=width, lipschitz=lipschitz))


def rank_bound(
    *,
    steps: int,
    seminorm: float,
    lipschitz: float,
    rank: int,
    noise_stddev: float,
    step_size: float | None = None,
    noisy_steps: int | None = None,
) -> RiskBound:
    """Bound *unprojected* noisy gradient descent for a generalised linear model by the rank of the data.

    As `average_iterate_bound` with rank(M) for d and |θ_0 − θ*|_M for the distance, M the projector on the span of
    the records: with σ = 2L√T/(nμ), L |θ*|_M √(1/T + 4 rank/(nμ)²). Lecture: Brown, theorem 4.1 (claim 49), whose
    printed constant 2 rank ln(1/δ) does not follow from its noise; 4 rank ln(1/δ) does.

    Parameters
    ----------
    steps : T, how many iterates are averaged, the start included
    seminorm : public bound on |θ_0 − θ*|_M; it sets the step size, so it must not come from the data
    lipschitz : L, bound on the norm of one record's gradient
    rank : of M, or any number above it
    noise_stddev, step_size, noisy_steps : as in `average_iterate_bound`

    Examples
    --------
    >>> from privet.theory import exact_noise
    >>> sigma = exact_noise(epsilon=1.0, delta=1e-5, steps=100, sensitivity=2 / 1000)
    >>> f"{rank_bound(steps=100, seminorm=2.0, lipschitz=1.0, rank=5, noise_stddev=sigma).value:.9f}"
    '0.202764417'
    """
    found = average_iterate_bound(
        steps=steps,
        distance=positive("seminorm", seminorm),
        lipschitz=lipschitz,
        d=whole("rank", rank),
        noise_stddev=noise_stddev,
        step_size=step_size,
        noisy_steps=noisy_steps,
    )
    return restated(found, "rank")


def nikolov_bound(
    *, steps: int, radius: float, d: int, noise_stddev: float, lipschitz: float | None = None
) -> RiskBound:
    """Bound private logistic regression on [−1, 1]^d with an intercept, in a ball of that *radius* about the start.

    The average-iterate bound in dimension d + 1 with G = √(d + 1): with σ = 2G√T/(nμ),
    R √(d+1) √(1/T + 4(d+1)/(nμ)²). Lecture: Nikolov (claims 114 to 117). `lipschitz` may be the sharper
    `logistic_lipschitz(d=d, radius=radius)`.

    Examples
    --------
    >>> f"{nikolov_bound(steps=100, radius=1.0, d=9, noise_stddev=0.0).value:.6f}"
    '0.316228'
    """
    gradient = math.sqrt(whole("d", d) + 1.0) if lipschitz is None else positive("lipschitz", lipschitz)
    found = average_iterate_bound(
        steps=steps, distance=positive("radius", radius), lipschitz=gradient, d=d + 1, noise_stddev=noise_stddev
    )
    return restated(found, "nikolov")
