"""Entropy for noise and batches: cryptographic by default, exact in law, never saved."""

from privet.randomness.binomial import binomial
from privet.randomness.draws import choose, integers_below, uniforms
from privet.randomness.generator import Random, Words, fixed_seed_invalidates_guarantee, system_random, why_invalid
from privet.randomness.trials import negative_binomial_trials, poisson_trials

__all__ = [
    "Random",
    "Words",
    "binomial",
    "choose",
    "fixed_seed_invalidates_guarantee",
    "integers_below",
    "negative_binomial_trials",
    "poisson_trials",
    "system_random",
    "uniforms",
    "why_invalid",
]
