"""What a private step needs beside gradients: a Poisson batch and Gaussian noise; asked in one process after the other.

Run as `python torch_parts.py` in each environment by `torch_steps.py`; writes one JSON object, best of the rounds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

BATCH, ROUNDS, COORDINATES = 256, 9, 10_000_000
SIZES = (10**5, 10**6, 10**7)


def _samplers(records: int) -> dict[str, Callable[[], object]]:
    rate = BATCH / records
    found: dict[str, Callable[[], object]] = {}
    try:
        from privet.randomness import system_random
        from privet.sampling import Poisson

        batches, random = Poisson(sampling_rate=rate), system_random()
        found["privet"] = lambda: batches.indices(records, 0, random)
    except ImportError:
        from opacus.utils.uniform_sampler import UniformWithReplacementSampler

        drawn = iter(UniformWithReplacementSampler(num_samples=records, sample_rate=rate, steps=10**9))
        found["Opacus"] = lambda: next(drawn)
    return found


def _noises() -> dict[str, Callable[[], object]]:
    import torch

    out = torch.empty(COORDINATES)
    found: dict[str, Callable[[], object]] = {"torch normal_, in place": lambda: out.normal_(0.0, 1.0)}
    try:
        from privet.torch.float_noise import FloatNoise

        noise = FloatNoise()
        found["privet, cryptographic"] = lambda: noise.fill(out, 1.0)
    except ImportError:
        found["torch.normal, as Opacus calls it"] = lambda: torch.normal(0.0, 1.0, (COORDINATES,))
    return found


def _best(ways: dict[str, Callable[[], object]], unit: float) -> dict[str, float]:
    """CPU time of each, the best of interleaved rounds, in `unit` seconds."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):
        for name, way in ways.items():
            start = time.process_time()
            way()
            times[name].append(time.process_time() - start)
    return {name: min(found[1:]) / unit for name, found in times.items()}


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    batches = {str(records): _best(_samplers(records), 1e-3) for records in SIZES}
    json.dump({"sampling_ms": batches, "noise_ns": _best(_noises(), 1e-9 * COORDINATES)}, sys.stdout)
