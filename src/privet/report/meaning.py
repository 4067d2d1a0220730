"""What does my epsilon mean: what any attacker can gain from the release, in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from privet import _html, accounting
from privet.accounting.events import Event
from privet.accounting.tradeoff import Profile, best_attack, best_guess, check_prior, implied_profile, posterior
from privet.errors import InvalidParameter
from privet.privacy import Guarantee, Neighbours, Words, check_neighbours, down, up, words

SMALLEST = 1e-12  # a profile is shown down to about this delta


@dataclass(frozen=True, kw_only=True, slots=True)
class Attack:
    """The most that any attack with this rate of false alarms can find.

    Examples
    --------
    >>> Attack(false_positive_rate=0.01, true_positive_rate=0.02)
    Attack(false_positive_rate=0.01, true_positive_rate=0.02)
    """

    false_positive_rate: float
    true_positive_rate: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """What a guarantee leaves to an attacker. Its `str` says it in plain sentences.

    `attacks` and `guess` bound every attack, known or not. `posterior` is the lowest and the highest belief that a
    belief of `prior` can become, but for a probability of `guarantee.delta` (see :func:`meaning`).

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> told = meaning(Gaussian(noise_multiplier=5.0), delta=1e-6, neighbours="add_remove", prior=0.5)
    >>> f"{told.guess:.4f}"
    '0.5398'
    """

    guarantee: Guarantee
    attacks: tuple[Attack, ...]
    prior: float
    guess: float
    posterior: tuple[float, float]

    def __str__(self) -> str:
        promise, prior = self.guarantee, _percent(self.prior)
        said = words(promise.neighbours, promise.unit)
        low, high = _percent(self.posterior[0], below=True), _percent(self.posterior[1])
        lines = [
            promise.details,
            "",
            f"Suppose an attacker knows {said.others}, sees the release, and wants to tell {said.question}. "
            "Then whatever the attack:",
            *(f"- {_sentence(attack, said)};" for attack in self.attacks),
            f"- a guess, with a belief of {prior} beforehand, is right at most {_percent(self.guess)} of the time "
            f"(without the release: {_percent(max(self.prior, 1 - self.prior))}).",
            "",
        ]
        if math.isinf(promise.epsilon):
            lines.append(f"No bound holds for the belief: a prior of {prior} may become certainty.")
        else:
            lines.append(
                f"The release tells no more than one that reveals everything with probability {promise.delta:.3g}, "
                f"and otherwise multiplies nobody's odds by more than e^{up(promise.epsilon, 3)} = "
                f"{_factor(promise.epsilon)}: a belief of {prior} then stays between {low} and {high}."
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        promise, prior = self.guarantee, _percent(self.prior)
        said = words(promise.neighbours, promise.unit)
        low, high = _percent(self.posterior[0], below=True), _percent(self.posterior[1])
        rows = [
            (f"found, with {_percent(each.false_positive_rate)} of false alarms", _percent(each.true_positive_rate))
            for each in self.attacks
        ]
        rows.append((f"right guesses, with a belief of {prior} beforehand", _percent(self.guess)))
        if math.isfinite(promise.epsilon):
            rows.append((f"a belief of {prior} becomes, but for δ", f"{low} to {high}"))
        title = f"The most that any attack can tell: {said.question}"
        shown = _html.table(rows, head=("of any attack", "at most"), title=title)
        return shown + _html.line(str(promise)) + _html.folded("in words", str(self))


@overload
def meaning(
    run: Event,
    *,
    delta: float,
    neighbours: Neighbours,
    prior: float = ...,
    false_positive_rates: Sequence[float] = ...,
    accountant: str = ...,
) -> Meaning: ...


@overload
def meaning(run: Guarantee, *, prior: float = ..., false_positive_rates: Sequence[float] = ...) -> Meaning: ...


def meaning(
    run: Event | Guarantee,
    *,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    prior: float = 0.5,
    false_positive_rates: Sequence[float] = (0.001, 0.01, 0.05, 0.1),
    accountant: str = "auto",
) -> Meaning:
    """Say what a run, or a guarantee that somebody else states, leaves to the best attack.

    Promise: every number is a bound for *all* attacks by one who knows everything but the one record (the one
    person, where that is the unit), not an estimate from some attack. For a run the whole profile delta(epsilon) is
    used, for a bare guarantee only its pair.
    Theorems: the rates as in :func:`privet.report.best_attack`, the guess as in :func:`privet.report.best_guess`.
    Any (epsilon, delta)-private release can be computed from the answer of a mechanism that reveals all with
    probability delta and is else (epsilon, 0)-private (Kairouz, Oh and Viswanath 2015); hence the
    posterior, which is Bayes' rule outside of that event. (It is *not* true that the odds of the release itself move
    by more than e^epsilon with probability at most delta.)

    Parameters
    ----------
    run : what ran, or a guarantee; public
    delta, neighbours : of the statement to explain; a guarantee has its own
    prior : belief, before the release, that the record is there; in (0, 1)
    false_positive_rates : how often an attack may cry wolf; in [0, 1]
    accountant : as in :func:`privet.accounting.epsilon`

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> told = meaning(Gaussian(noise_multiplier=5.0), delta=1e-6, neighbours="add_remove")
    >>> [round(attack.true_positive_rate, 4) for attack in told.attacks]
    [0.0019, 0.0167, 0.0742, 0.1397]
    """
    check_prior(prior)
    if isinstance(run, Guarantee):
        if not (delta is None and neighbours is None):
            raise InvalidParameter("""Expected a guarantee alone, got delta or neighbours too: it has its own. Leave
                them out.""")
        promise, profile = run, implied_profile(epsilon=run.epsilon, delta=run.delta)
    else:
        if delta is None or neighbours is None:
            raise InvalidParameter("""Expected delta and neighbours with a run, got neither or one: without them there
                is no statement to explain. Pass for example delta=1e-6, neighbours='replace_one'.""")
        promise = accounting.guarantee(run, delta=delta, neighbours=neighbours, accountant=accountant)
        profile = run_profile(run, neighbours=neighbours, accountant=accountant)
    # the corner of a bare pair's profile is sharp, and its evaluation free
    found = best_attack(profile, false_positive_rates, refinements=40 if isinstance(run, Guarantee) else 12)
    attacks = tuple(
        Attack(false_positive_rate=float(rate), true_positive_rate=float(bound))
        for rate, bound in zip(false_positive_rates, found, strict=True)
    )
    return Meaning(
        guarantee=promise,
        attacks=attacks,
        prior=prior,
        guess=best_guess(profile, prior),
        posterior=posterior(prior, epsilon=promise.epsilon),
    )


def run_profile(run: Event, *, neighbours: Neighbours, accountant: str = "auto") -> Profile:
    """Return the run's privacy profile as a function from epsilons to upper bounds on delta.

    >>> from privet.accounting import Gaussian
    >>> run_profile(Gaussian(noise_multiplier=1.0), neighbours="add_remove")(np.array([0.0])).round(6)
    array([0.382925])
    """
    check_neighbours(neighbours)

    def profile(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        return accounting.profile(run, epsilons, neighbours=neighbours, accountant=accountant)

    return profile


def reach(run: Event, *, neighbours: Neighbours, accountant: str = "auto") -> float:
    """Return the epsilon up to which a profile is worth showing: where delta is about 1e-12.

    Where a run never gets so low, a larger delta is taken; where it never gets below 1e-3, 10; and never 0.

    Examples
    --------
    >>> from privet.accounting import Pure
    >>> round(reach(Pure(epsilon=2.0), neighbours="add_remove"), 6)
    2.0
    """
    for delta in (SMALLEST, 1e-9, 1e-6, 1e-3):
        epsilon = accounting.epsilon(run, delta=delta, neighbours=neighbours, accountant=accountant)
        if math.isfinite(epsilon):
            return epsilon if epsilon > 0 else 1.0
    return 10.0


def _sentence(attack: Attack, said: Words) -> str:
    found = said.found.format(_percent(attack.true_positive_rate))
    alarm = _percent(attack.false_positive_rate)
    return f"one that raises a false alarm in {alarm} of cases {found} (tossing a coin: {alarm})"


def _percent(probability: float, *, below: bool = False) -> str:
    """Print with three digits, rounded so that a bound stays a bound: upwards, or downwards if `below`."""
    nearest = f"{100 * probability:.15g}"  # 100 * 0.07 is 7.000000000000001: not worth a digit
    return (down if below else up)(float(nearest), 3) + " %"


def _factor(epsilon: float) -> str:
    return up(math.exp(epsilon), 3) if epsilon < 700 else "infinity"
