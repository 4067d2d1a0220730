"""`nn.MultiheadAttention`: its projections as recorded products, then the attention of PyTorch itself."""

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it

from privet.torch.product_rules import linear
from privet.torch.recording import NotRecorded, Recording

_ORDER = tuple(inspect.signature(F.multi_head_attention_forward).parameters)
_LEFT_OUT = ("bias_k", "bias_v", "add_zero_attn", "static_k", "static_v")


def attention(recording: Recording, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    """`multi_head_attention_forward`, whose sequences come as (positions, examples, features)."""
    given = {"training": True, "need_weights": True, **dict(zip(_ORDER, args, strict=False)), **kwargs}
    if any(given.get(name) is not None and given.get(name) is not False for name in _LEFT_OUT):
        raise NotRecorded
    if given["query"].dim() != 3:
        raise NotRecorded
    query, key, value = (given[name].transpose(0, 1) for name in ("query", "key", "value"))
    heads, same = given["num_heads"], given["query"] is given["key"] is given["value"]
    bias = given.get("in_proj_bias")
    if same and not given.get("use_separate_proj_weight"):
        q, k, v = linear(recording, query, given["in_proj_weight"], bias).chunk(3, 2)
    else:
        with recording:  # parts of one parameter are sources of their own
            weights = (
                [given[name] for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight")]
                if given.get("use_separate_proj_weight")
                else given["in_proj_weight"].chunk(3)
            )
            biases = [None] * 3 if bias is None else bias.chunk(3)
            q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))
    q, k, v = (
        t.view(*t.shape[:2], heads, -1).transpose(1, 2) for t in (q.contiguous(), k.contiguous(), v.contiguous())
    )
    found, weights = _attended(q, k, v, _mask(given, q, k), given)
    output = linear(recording, found.transpose(1, 2).flatten(2), given["out_proj_weight"], given.get("out_proj_bias"))
    return output.transpose(0, 1), weights


def _mask(given: dict[str, Any], q: Tensor, k: Tensor) -> Tensor | None:
    """What is added to the scores: (examples, heads or 1, positions, positions)."""
    total: Tensor | None = None
    attn, padding = given.get("attn_mask"), given.get("key_padding_mask")
    if attn is not None:
        shaped = attn if attn.dim() == 2 else attn.view(q.shape[0], q.shape[1], *attn.shape[1:])
        total = _added(shaped, q.dtype)
    elif given.get("is_causal"):
        total = torch.full((q.shape[2], k.shape[2]), -torch.inf, dtype=q.dtype, device=q.device).triu_(1)
    if padding is not None:
        hidden = _added(padding, q.dtype)[:, None, None, :]
        total = hidden if total is None else total + hidden
    return total


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -torch.inf)
    return mask.to(dtype)


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, given: dict[str, Any]
) -> tuple[Tensor, Tensor | None]:
    dropout = given.get("dropout_p", 0.0) if given["training"] else 0.0
    if not given["need_weights"]:
        return F.scaled_dot_product_attention(q, k, v, mask, dropout), None
    scores = q @ k.mT * q.shape[3] ** -0.5
    weights = torch.softmax(scores if mask is None else scores + mask, -1)
    kept = F.dropout(weights, dropout) if dropout else weights
    return kept @ v, weights.mean(1) if given.get("average_attn_weights", True) else weights
