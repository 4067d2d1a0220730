"""Private training of neural networks with PyTorch: the same plan, meter and guarantee as for convex problems."""

from privet.torch.batches import Examples
from privet.torch.fit_network import Fitted, fit
from privet.torch.private_gradient import PrivateGradient
from privet.torch.private_training import PrivateTraining
from privet.torch.training_plan import Phase, training_plan

__all__ = ["Examples", "Fitted", "Phase", "PrivateGradient", "PrivateTraining", "fit", "training_plan"]
