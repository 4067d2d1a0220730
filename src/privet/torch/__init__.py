"""Neural networks in PyTorch, trained privately: the same plan, meter and accountants, another sum."""

from privet.clipping import PerLayer
from privet.plan import Choice, Choices, plan_training
from privet.torch.adaptive_moments import AdamBC
from privet.torch.augmentation import Augment
from privet.torch.batches import Examples
from privet.torch.clipped_gradients import ClippedGradients, ClippedSum, clipped_sum
from privet.torch.compatible import make_compatible
from privet.torch.correlated_tensors import CorrelatedTensors
from privet.torch.fit_network import Fitted, fit
from privet.torch.float_noise import FloatNoise
from privet.torch.lattice_noise import LatticeNoise
from privet.torch.noise_ahead import NoiseAhead
from privet.torch.private_gradient import PrivateGradient
from privet.torch.private_training import PrivateTraining
from privet.torch.scaled_adam import ScaledAdam
from privet.torch.snapshots import Snapshots
from privet.torch.softmax_regression import LossOf
from privet.torch.training_plan import Phase, training_plan

__all__ = [
    "AdamBC",
    "Augment",
    "Choice",
    "Choices",
    "ClippedGradients",
    "ClippedSum",
    "CorrelatedTensors",
    "Examples",
    "Fitted",
    "FloatNoise",
    "LatticeNoise",
    "LossOf",
    "NoiseAhead",
    "PerLayer",
    "Phase",
    "PrivateGradient",
    "PrivateTraining",
    "ScaledAdam",
    "Snapshots",
    "clipped_sum",
    "fit",
    "make_compatible",
    "plan_training",
    "training_plan",
]
