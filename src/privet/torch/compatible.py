"""Put layers that treat examples one by one in the place of those that do not."""

import copy
import math

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm


def make_compatible(model: nn.Module, *, groups: int = 32) -> nn.Module:
    """A copy of the model without layers that mix examples or remember them.

    BatchNorm becomes GroupNorm, with at most `groups` groups and the trained scale and shift; running statistics of
    InstanceNorm are switched off. All else is kept, names and activations in place included. Make the optimiser
    afterwards, of the copy's parameters.

    Examples
    --------
    >>> model = nn.Sequential(nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12), nn.ReLU(inplace=True))
    >>> make_compatible(model, groups=8)[1].num_groups
    6
    """
    found = copy.deepcopy(model)
    if isinstance(found, _BatchNorm):
        return _grouped(found, groups)
    for module in list(found.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, _InstanceNorm):
                child.track_running_stats = False
                child.running_mean = child.running_var = child.num_batches_tracked = None
            elif isinstance(child, _BatchNorm):
                setattr(module, name, _grouped(child, groups))
    return found


def _grouped(norm: _BatchNorm, most: int) -> nn.GroupNorm:
    channels = norm.num_features
    groups = max(divisor for divisor in range(1, math.ceil(most) + 1) if channels % divisor == 0)
    made = nn.GroupNorm(groups, channels, eps=norm.eps, affine=norm.affine)
    if norm.affine:
        made.weight, made.bias = norm.weight, norm.bias
    made.train(norm.training)
    return made
