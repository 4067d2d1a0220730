"""Noise for private sums, on a lattice: rounded Gaussian and Laplace, exact in law; and correlated over steps.

>>> import numpy as np
>>> from privet.noise import add_gaussian
>>> from privet.randomness import system_random
>>> released = add_gaussian(np.array([3 << 20, -5 << 20]), step=2.0**-20, noise_stddev=0.5, random=system_random())
>>> released.dtype, bool((released * 2**20 == np.rint(released * 2**20)).all())
(dtype('float64'), True)
"""

from privet.noise.correlated import CorrelatedNoise, CorrelatedSums, NoiseFilter
from privet.noise.noisy_sums import add_gaussian, add_laplace
from privet.noise.running_error import RunningError, optimised_bands, running_error
from privet.noise.samplers import rounded_gaussian, rounded_laplace
from privet.noise.strategies import (
    Banded,
    InverseBanded,
    Strategy,
    banded_inverse_square_root,
    banded_square_root,
    correlated_mechanism,
)

__all__ = [
    "Banded",
    "CorrelatedNoise",
    "CorrelatedSums",
    "InverseBanded",
    "NoiseFilter",
    "RunningError",
    "Strategy",
    "add_gaussian",
    "add_laplace",
    "banded_inverse_square_root",
    "banded_square_root",
    "correlated_mechanism",
    "optimised_bands",
    "rounded_gaussian",
    "rounded_laplace",
    "running_error",
]
