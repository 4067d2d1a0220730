"""Neural networks of PyTorch, trained privately."""

from privet.torch.float_noise import FloatNoise
from privet.torch.lattice_noise import LatticeNoise
from privet.torch.noise_ahead import NoiseAhead

__all__ = ["FloatNoise", "LatticeNoise", "NoiseAhead"]
