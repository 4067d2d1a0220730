"""Which records a step reads. Each scheme draws its batches and names its own event, so the two cannot disagree."""

from privet.sampling.cyclic_poisson import CyclicPoisson
from privet.sampling.passes import Passes
from privet.sampling.schemes import Cyclic, FixedSize, FullBatch, OneRecord, Poisson, Sampling, Strided
from privet.sampling.truncated_batches import TruncatedPoisson

__all__ = [
    "Cyclic",
    "CyclicPoisson",
    "FixedSize",
    "FullBatch",
    "OneRecord",
    "Passes",
    "Poisson",
    "Sampling",
    "Strided",
    "TruncatedPoisson",
]
