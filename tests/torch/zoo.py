"""Small models of every kind of layer, with a batch each; and the gradients of a loop over examples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from privet.torch import PerLayer  # noqa: E402

Make = Callable[[], nn.Module]


class Apply(nn.Module):
    """Modules by name, and a function of them and the input."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.rule = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.rule(self, x)


def head(width: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(width, 3))


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape))


def tied(m: Any, x: Tensor) -> Any:
    hidden = torch.tanh(m.table(x)).mean(1)
    return hidden @ m.table.weight.T


def cross(m: Any, x: Tensor) -> Any:
    return m.out(m.attention(x, m.other(x), m.other(x), need_weights=False)[0].mean(1))


def class_token(m: Any, x: Tensor) -> Any:
    tokens = torch.cat([m.token.expand(x.shape[0], -1, -1), m.embed(x)], 1)
    return m.out(torch.tanh(tokens + m.places[:, : tokens.shape[1]]).mean(1))


def conv(dims: int, **settings: Any) -> Make:
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
    return lambda: nn.Sequential(kind(4, 6, 3, **settings), nn.Tanh(), nn.Flatten(), nn.LazyLinear(3))


def floats(*shape: int) -> Callable[[int], Tensor]:
    return lambda size: 2 * torch.randn(size, *shape)


def words(length: int, vocabulary: int = 7) -> Callable[[int], Tensor]:
    return lambda size: torch.randint(vocabulary, (size, length))


def sequential(*parts: nn.Module) -> Make:
    return lambda: nn.Sequential(*parts)


ZOO: dict[str, tuple[Make, Callable[[int], Tensor]]] = {
    "linear": (lambda: nn.Linear(5, 3), floats(5)),
    "no bias, in place": (
        lambda: nn.Sequential(nn.Linear(5, 8, bias=False), nn.ReLU(inplace=True), nn.Linear(8, 3)),
        floats(5),
    ),
    "positions": (lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(inplace=True), head(32)), floats(4, 5)),
    "positions twice, in place": (
        lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(inplace=True), nn.Linear(8, 6), nn.ReLU(inplace=True), head(24)),
        floats(4, 5),
    ),
    "convolutions in place": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3), nn.ReLU(inplace=True), nn.GroupNorm(1, 3), nn.ReLU(inplace=True), head(27)
        ),
        floats(2, 5, 5),
    ),
    "many positions": (lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh(), head(120)), floats(40, 2)),
    "two dimensions of positions": (lambda: nn.Sequential(nn.Linear(5, 2), nn.Tanh(), head(12)), floats(2, 3, 5)),
    "flattened positions": (
        lambda: Apply(
            lambda m, x: m.out(torch.tanh(torch.addmm(m.b, m.lin(x.view(-1, 5)), m.w)).view(len(x), -1)),
            lin=nn.Linear(5, 4),
            w=parameter(4, 3),
            b=parameter(3),
            out=nn.Linear(12, 3),
        ),
        floats(4, 5),
    ),
    "conv1d": (conv(1), floats(4, 9)),
    "conv1d same": (conv(1, padding="same", dilation=2), floats(4, 9)),
    "conv1d even kernel": (
        lambda: nn.Sequential(nn.Conv1d(4, 2, 2, padding="same", dilation=2), head(18)),
        floats(4, 9),
    ),
    "conv2d": (conv(2, padding=1), floats(4, 6, 5)),
    "conv2d few places": (conv(2, stride=3), floats(4, 6, 6)),
    "conv2d strided groups": (conv(2, stride=2, padding=(1, 0), groups=2), floats(4, 7, 6)),
    "conv2d dilated": (conv(2, dilation=(1, 2), padding_mode="circular", padding=1), floats(4, 6, 7)),
    "conv3d": (conv(3, padding=1), floats(4, 3, 4, 3)),
    "transposed convolution": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 3, 2, stride=2), nn.Tanh(), head(108)),
        floats(2, 3, 3),
    ),
    "embedding": (lambda: nn.Sequential(nn.Embedding(7, 4, padding_idx=0), nn.Tanh(), head(20)), words(5)),
    "one word": (lambda: nn.Sequential(nn.Embedding(7, 4), nn.Tanh(), head(4)), words(1)),
    "bag": (lambda: nn.Sequential(nn.EmbeddingBag(7, 4), nn.Linear(4, 3)), words(5)),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm([4, 5]), head(20)), floats(4, 5)),
    "rms norm": (lambda: nn.Sequential(nn.RMSNorm(5), nn.Tanh(), head(20)), floats(4, 5)),
    "group norm": (lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.Tanh(), head(36)), floats(4, 3, 3)),
    "instance norm": (lambda: nn.Sequential(nn.InstanceNorm2d(4, affine=True), nn.Tanh(), head(36)), floats(4, 3, 3)),
    "frozen batch norm": (lambda: nn.Sequential(nn.BatchNorm1d(5).eval(), nn.Linear(5, 3)), floats(5)),
    "prelu": (lambda: nn.Sequential(nn.Linear(5, 4), nn.PReLU(4), nn.Linear(4, 3)), floats(5)),
    "bilinear": (lambda: Apply(lambda m, x: m.mix(x, x), mix=nn.Bilinear(5, 5, 3)), floats(5)),
    "attention": (
        lambda: Apply(
            lambda m, x: m.out(m.attention(x, x, x)[0].mean(1)),
            attention=nn.MultiheadAttention(8, 2, batch_first=True),
            out=nn.Linear(8, 3),
        ),
        floats(6, 8),
    ),
    "cross attention": (
        lambda: Apply(
            cross,
            attention=nn.MultiheadAttention(8, 2, batch_first=True, kdim=4, vdim=4),
            other=nn.Linear(8, 4),
            out=nn.Linear(8, 3),
        ),
        floats(6, 8),
    ),
    "parts of one projection": (
        lambda: Apply(
            cross,
            attention=nn.MultiheadAttention(8, 2, batch_first=True),
            other=nn.Linear(8, 8),
            out=nn.Linear(8, 3),
        ),
        floats(6, 8),
    ),
    "transformer": (
        lambda: nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), head(40)),
        floats(5, 8),
    ),
    "lstm": (
        lambda: Apply(lambda m, x: m.out(m.rnn(x)[0][:, -1]), rnn=nn.LSTM(4, 6, batch_first=True), out=nn.Linear(6, 3)),
        floats(5, 4),
    ),
    "deep lstm both ways": (
        lambda: Apply(
            lambda m, x: m.out(m.rnn(x)[0].mean(1)) + m.rnn(x)[1][1][0][:, :3],
            rnn=nn.LSTM(4, 6, num_layers=2, bidirectional=True, batch_first=True),
            out=nn.Linear(12, 3),
        ),
        floats(5, 4),
    ),
    "gru": (
        lambda: Apply(
            lambda m, x: m.out(m.rnn(x)[1][-1]), rnn=nn.GRU(4, 6, num_layers=2, batch_first=True), out=nn.Linear(6, 3)
        ),
        floats(5, 4),
    ),
    "rnn without bias": (
        lambda: Apply(
            lambda m, x: m.out(m.rnn(x)[0][:, -1]), rnn=nn.RNN(4, 6, bias=False, batch_first=True), out=nn.Linear(6, 3)
        ),
        floats(5, 4),
    ),
    "rnn, positions first": (
        lambda: Apply(lambda m, x: m.out(m.rnn(x.transpose(0, 1))[0][-1]), rnn=nn.RNN(4, 6), out=nn.Linear(6, 3)),
        floats(5, 4),
    ),
    "bare parameters": (
        lambda: Apply(
            lambda m, x: m.out(x * m.scale + m.shift) / m.all,
            scale=parameter(5),
            shift=parameter(1, 5),
            all=parameter(),
            out=nn.Linear(5, 3),
        ),
        floats(5),
    ),
    "class token": (
        lambda: Apply(
            class_token, token=parameter(1, 1, 5), places=parameter(1, 9, 5), embed=nn.Linear(4, 5), out=nn.Linear(5, 3)
        ),
        floats(6, 4),
    ),
    "places": (
        lambda: Apply(
            lambda m, x: m.out((m.words(x) + m.places(torch.arange(x.shape[1]))).tanh().mean(1)),
            words=nn.Embedding(7, 4),
            places=nn.Embedding(9, 4),
            out=nn.Linear(4, 3),
        ),
        words(5),
    ),
    "shared layer": (
        lambda: Apply(
            lambda m, x: m.out(torch.tanh(m.twice(torch.tanh(m.twice(x))))), twice=nn.Linear(5, 5), out=nn.Linear(5, 3)
        ),
        floats(5),
    ),
    "tied weights": (lambda: Apply(tied, table=nn.Embedding(7, 4)), words(5)),
    "weight used by hand": (
        lambda: Apply(
            lambda m, x: m.out(torch.tanh(m.lin(x)) + 2 * F.linear(x, m.lin.weight)),
            lin=nn.Linear(5, 5, bias=False),
            out=nn.Linear(5, 3),
        ),
        floats(5),
    ),
    "weight norm": (
        lambda: nn.Sequential(torch.nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)), nn.Tanh(), nn.Linear(4, 3)),
        floats(5),
    ),
    "einsum": (
        lambda: Apply(lambda m, x: torch.einsum("bij,jk->bk", x, m.w) @ m.v, w=parameter(5, 4), v=parameter(4, 3)),
        floats(2, 5),
    ),
    "unused layer": (
        lambda: Apply(lambda m, x: m.used(x), used=nn.Linear(5, 3), unused=nn.Linear(5, 3)),
        floats(5),
    ),
    "partly frozen": (
        lambda: nn.Sequential(nn.Linear(5, 4).requires_grad_(False), nn.Tanh(), nn.Linear(4, 4), head(4)),
        floats(5),
    ),
    "low rank beside frozen": (  # LoRA
        lambda: Apply(
            lambda m, x: m.out(torch.tanh(m.base(x) + m.up(m.down(x))).flatten(1)),
            base=nn.Linear(5, 4).requires_grad_(False),
            down=nn.Linear(5, 2, bias=False),
            up=nn.Linear(2, 4, bias=False),
            out=nn.Linear(12, 3),
        ),
        floats(3, 5),
    ),
    "penalised by its size": (
        lambda: Apply(lambda m, x: m.lin(x) + m.lin.weight.square().sum(), lin=nn.Linear(5, 3)),
        floats(5),
    ),
    "dtype of its own": (
        lambda: Apply(lambda m, x: m.lin(x.double()).float(), lin=nn.Linear(5, 3).double()),
        floats(5),
    ),
}


def losses(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    x, y = batch
    out = model(x)
    return F.cross_entropy(out, y % out.shape[1], reduction="none")


def made(name: str, size: int, seed: int = 0) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """The model of that name and a batch of that size."""
    torch.manual_seed(seed)
    make, inputs = ZOO[name]
    model = make()
    if any(isinstance(module, nn.LazyLinear) for module in model.modules()):
        model(inputs(2))
    torch.manual_seed(seed + 1)
    return model, (inputs(size), torch.randint(3, (size,)))


def slowly(model: nn.Module, per_example: Any, batch: Any, rule: Any, sizes: list[int] | None = None) -> list[Tensor]:
    """Σ of clipped gradients, one example after the other."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    total = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
    first = 0
    for size in sizes or [1] * len(batch[0]):
        mine = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
        for place in range(first, first + size):
            loss = per_example(model, tuple(t[place : place + 1] for t in batch)).sum() / size
            for row, g in zip(mine, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
                if g is not None:
                    row += g
        first += size
        norms = [float(row.norm()) for row in mine]
        if isinstance(rule, PerLayer):
            used = sum(1 for norm in norms if norm)
            factors = [min(1.0, rule.clip / math.sqrt(used) / norm) if norm else 0.0 for norm in norms]
        else:
            norm = math.sqrt(sum(n * n for n in norms))
            factors = [min(1.0, rule.clip / norm) if norm else 0.0] * len(mine)
        for t, factor, row in zip(total, factors, mine, strict=True):
            t += factor * row
    return total


def distance(found: Any, expected: Any) -> float:
    """The relative l2 distance of two lists of tensors."""
    gap = math.sqrt(sum(float((a.double() - b).square().sum()) for a, b in zip(found, expected, strict=True)))
    return gap / max(math.sqrt(sum(float(b.square().sum()) for b in expected)), 1e-30)
