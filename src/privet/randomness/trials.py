"""How many trials a search makes: random numbers of the laws whose privacy cost is known, drawn exactly.

All by rejection with rational chances, each decided bit by bit, so that for ideal words the laws are exact.
"""

import math
from fractions import Fraction

from privet._checks import between, is_number
from privet.errors import InvalidParameter
from privet.randomness.generator import Random, stuck

_HALF = Fraction(1, 2)


def happens(random: Random, chance: Fraction) -> bool:
    """Return True with probability exactly `chance`, in [0, 1]: binary digits of a uniform number, until they differ.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> random = fixed_seed_invalidates_guarantee(1)
    >>> sum(happens(random, Fraction(1, 3)) for _ in range(3000))
    945
    """
    if chance >= 1:
        return True
    for _ in range(16):
        scaled = chance * 2**64
        whole = math.floor(scaled)
        word = int(random.words(1)[0])
        if word != whole:
            return word < whole
        chance = scaled - whole
    raise stuck()


def negative_binomial_trials(random: Random, *, shape: float, stop: float) -> int:
    """Return K ≥ 1 with P(K = k) ∝ (1 − stop)^k Π_{0<l<k} (l + shape)/(l + 1): the law of `NegativeBinomialTrials`.

    Walk k = 1, 2, …: stop with chance `stop`; else go on with chance (k + shape)/(k + 1), or start again from 1.

    Parameters
    ----------
    shape : in (−1, 1]; 1 is the geometric law, 0 the logarithmic one
    stop : in (0, 1)

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> random = fixed_seed_invalidates_guarantee(2)
    >>> [negative_binomial_trials(random, shape=0.0, stop=0.027) for _ in range(8)]
    [4, 18, 1, 6, 13, 13, 2, 24]
    """
    if not (is_number(shape) and is_number(stop) and -1 < shape <= 1 and 2.0**-40 <= stop < 1):
        raise InvalidParameter(f"""Expected shape in (-1, 1] and stop in [2**-40, 1), got {shape!r} and {stop!r}: there
            is no such law, or no way to draw from it. Use shape=0 or 1.""")
    ending, extra = Fraction(stop), Fraction(shape)
    k = 1
    while not happens(random, ending):
        k = k + 1 if happens(random, (k + extra) / (k + 1)) else 1
    return k


def poisson_trials(random: Random, *, mean: float) -> int:
    """Return a number of the Poisson law with this `mean`, at most 1e6.

    A Poisson number is a sum of Poisson numbers of means m ≤ ½; of those, each is a count k of fair coins, kept with
    chance Π_{0<j≤k} 2m/j.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> random = fixed_seed_invalidates_guarantee(2)
    >>> [poisson_trials(random, mean=10.0) for _ in range(8)]
    [10, 14, 9, 16, 11, 13, 8, 13]
    """
    why = "there is no such law, or no end to it"
    mean = between("mean", mean, 0, 1e6, closed=(False, True), because=why, use="Use mean=10.")
    parts = math.ceil(2 * mean)
    part = Fraction(mean) / parts
    return sum(_small_poisson(random, part) for _ in range(parts))


def _small_poisson(random: Random, mean: Fraction) -> int:
    k = 0
    while not happens(random, _HALF):
        k = k + 1 if happens(random, 2 * mean / (k + 1)) else 0
    return k
