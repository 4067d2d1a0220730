"""Neural networks in PyTorch, trained privately: the same plan, meter and accountants, another sum."""

from privet.torch.clipped_gradients import ClippedGradients, ClippedSum, clipped_sum
from privet.torch.compatible import make_compatible
from privet.torch.float_noise import FloatNoise
from privet.torch.lattice_noise import LatticeNoise
from privet.torch.layer_clipping import PerLayer
from privet.torch.noise_ahead import NoiseAhead
from privet.torch.softmax_regression import LossOf

__all__ = [
    "ClippedGradients",
    "ClippedSum",
    "FloatNoise",
    "LatticeNoise",
    "LossOf",
    "NoiseAhead",
    "PerLayer",
    "clipped_sum",
    "make_compatible",
]
