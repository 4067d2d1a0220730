"""The secret survey (Wu, lecture 13, exercise 1.3).

A survey asks 0.001 % of all people, chosen at random, and its analysis is (0.5, 0)-private. Nobody is told who was
asked. How private is the whole process, choice included? And for somebody who is known to have taken part?

Say the analysis is randomised response: whoever is asked and would say yes is reported as a yes with probability
p = e^ε/(1 + e^ε), everybody else with 1 − p. With q the chance of being asked,

    P(yes | would say yes) = q p + (1 − q)(1 − p),        P(yes | would say no) = 1 − p.

Their ratio is 1 − q + q e^ε: the lemma on amplification is an equality here. Where participation is known, q = 1.

>>> found = survey()
>>> f"{found.by_hand:.6g} {found.by_the_lemma:.6g} {found.known_participant:.3g}"
'6.48719e-06 6.48719e-06 0.5'
"""

import math
from dataclasses import dataclass

from privet.accounting import RandomizedResponse, epsilon
from privet.accounting.theorems.subsampling import amplified


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """What the survey costs a person, in nats: by hand, by the library's lemma, and if it is known who was asked."""

    by_hand: float
    by_the_lemma: float
    known_participant: float


def survey(own_epsilon: float = 0.5, share: float = 1e-5) -> Survey:
    """Return the epsilon of a secret survey, worked out by hand and by the library.

    Parameters
    ----------
    own_epsilon : of the analysis of those who were asked
    share : chance of being asked; 0.001 % in the lecture

    Examples
    --------
    >>> f"{survey(share=0.5).by_hand:.6f}"  # half of all people are asked
    '0.280930'
    """
    truth = 1.0 / (1.0 + math.exp(-own_epsilon))
    # ln of (q p + (1 − q)(1 − p)) ÷ (1 − p), written so that a small share loses no digits
    by_hand = math.log1p(share * (2.0 * truth - 1.0) / (1.0 - truth))
    known = epsilon(RandomizedResponse(epsilon=own_epsilon), delta=1e-300, neighbours="replace_one")
    return Survey(by_hand=by_hand, by_the_lemma=amplified(own_epsilon, 0.0, share)[0], known_participant=known)
