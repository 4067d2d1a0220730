"""Neural networks in PyTorch, trained privately: the same plan, meter and accountants, another sum."""

from privet.torch.clipped_gradients import ClippedGradients, ClippedSum, clipped_sum
from privet.torch.compatible import make_compatible
from privet.torch.layer_clipping import PerLayer

__all__ = ["ClippedGradients", "ClippedSum", "PerLayer", "clipped_sum", "make_compatible"]
