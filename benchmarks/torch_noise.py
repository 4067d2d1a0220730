"""Time noise for tensors against `torch.Tensor.normal_`, and Poisson batches; `bench-torch` calls it.

python benchmarks/torch_noise.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from privet.randomness import system_random
from privet.sampling import Poisson
from privet.torch import FloatNoise, LatticeNoise, NoiseAhead
from privet.torch.normal_pairs import loops

RECORDS, BATCH = 10_000_000, 256


def noise_and_sampling(rounds: int = 15) -> dict[str, float]:
    """Print and return CPU nanoseconds a coordinate and CPU milliseconds a batch: the least of interleaved rounds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found: dict[str, float] = {}
        for size in (1_000_000, 10_000_000):
            for name, seconds in _least(_noises(size), rounds).items():
                found[f"{name}, d = {size:.0e}, ns a coordinate"] = 1e9 * seconds / size
        for name, seconds in _least(_batches(), 200 * rounds).items():
            found[f"{name}, ms a batch"] = 1e3 * seconds
    finally:
        torch.set_num_threads(threads)
    for name, value in found.items():
        print(f"{name:70s} {value:8.3f}")
    return found


def _noises(size: int) -> dict[str, Callable[[], object]]:
    noise, lattice, plain, ahead = FloatNoise(), LatticeNoise(), _Plain(), NoiseAhead(FloatNoise(), size)
    loops()
    tensor, gradient, small = torch.zeros(size), torch.zeros(size), torch.zeros(size // 20)

    def twenty_lattices() -> None:
        for _ in range(20):
            lattice.add_(small, 1.0)

    return {
        "normal_": lambda: tensor.normal_(0.0, 1.0),
        "FloatNoise.fill": lambda: noise.fill(tensor, 1.0),
        "FloatNoise.fill without Numba": lambda: plain.fill(tensor, 1.0),
        "torch.normal, then add": lambda: gradient.add_(torch.normal(0.0, 1.0, (size,))),
        "FloatNoise.add_": lambda: noise.add_(gradient, 1.0),
        "NoiseAhead.add_, both threads": lambda: ahead.add_([gradient], 1.0),
        "LatticeNoise.add_": twenty_lattices,
    }


class _Plain(FloatNoise):
    """As it is where Numba is missing."""

    def _loops(self, size: int) -> None:
        return None


def _batches() -> dict[str, Callable[[], object]]:
    scheme, random = Poisson(sampling_rate=BATCH / RECORDS), system_random()
    return {f"Poisson batch of {BATCH} in {RECORDS:.0e}": lambda: scheme.indices(RECORDS, 0, random)}


def _least(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """CPU seconds of each call, the least of as many rounds in which each has its turn; the first is not counted."""
    least = dict.fromkeys(calls, float("inf"))
    for round_ in range(rounds + 1):
        for name, call in calls.items():
            start = time.process_time()
            call()
            if round_:
                least[name] = min(least[name], time.process_time() - start)
    return least


if __name__ == "__main__":
    noise_and_sampling()
