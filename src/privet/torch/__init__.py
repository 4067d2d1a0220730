"""Neural networks in PyTorch, trained privately: the same plan, meter and accountants, another sum."""

from privet.torch.correlated_tensors import CorrelatedTensors

__all__ = ["CorrelatedTensors"]
