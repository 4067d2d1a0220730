"""For each function that layers call with a parameter: how to run it, and how the parameter was used.

`RULES[function](recording, *arguments)` runs the function on plain copies of the parameters and taps its output;
`RULES[None]` is for all other functions, by way of `torch.func`, for that one call.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it

from privet.torch.attention_rule import attention
from privet.torch.conv_rules import CONVOLUTIONS
from privet.torch.norm_rules import group_norm, instance_norm, layer_norm, rms_norm
from privet.torch.other_rules import elementwise, grown, operation, repeated
from privet.torch.product_rules import addmm, embedding, embedding_bag, linear, matmul
from privet.torch.recurrent_rules import gru, lstm, rnn_relu, rnn_tanh

_BY_ENTRY = ("add", "sub", "mul", "div", "true_divide", "maximum", "minimum", "pow", "where", "lerp", "addcmul", "rsub")
_METHODS = ("__radd__", "__rmul__", "__rsub__", "__rdiv__", "__rtruediv__", "__rpow__")

RULES: dict[Any, Callable[..., Any]] = {
    None: operation,
    F.linear: linear,
    torch.matmul: matmul,
    torch.Tensor.matmul: matmul,
    torch.Tensor.__matmul__: matmul,
    torch.mm: matmul,
    torch.addmm: addmm,
    F.embedding: embedding,
    F.embedding_bag: embedding_bag,
    F.layer_norm: layer_norm,
    F.rms_norm: rms_norm,
    F.group_norm: group_norm,
    F.instance_norm: instance_norm,
    F.multi_head_attention_forward: attention,
    torch.Tensor.repeat: repeated,
    torch.lstm: lstm,
    torch.gru: gru,
    torch.rnn_tanh: rnn_tanh,
    torch.rnn_relu: rnn_relu,
    **CONVOLUTIONS,
}
for _name in _BY_ENTRY:
    for _owner in (torch, torch.Tensor):
        if hasattr(_owner, _name):
            RULES[getattr(_owner, _name)] = elementwise(getattr(_owner, _name))
for _name in _METHODS:
    if hasattr(torch.Tensor, _name):
        RULES[getattr(torch.Tensor, _name)] = elementwise(getattr(torch.Tensor, _name))
GROWN = grown
SECOND: dict[Any, Callable[[Any], int]] = {
    F.multi_head_attention_forward: lambda args: 1,
    **{rnn: lambda args: 0 if args[-1] else 1 for rnn in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)},
}
"""Functions whose examples may stand in the second dimension, and where they do."""
FLAT = {F.linear, torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.addmm}
"""Functions that may see the positions of all examples one below the other."""
NEAR = {F.linear, torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.addmm, *CONVOLUTIONS}
"""Functions of which a call is one use of a parameter, whose norms may be taken while its gradient is near."""
