"""The networks whose private steps are timed, with their batches; from fixed seeds: all modes see the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

BATCH = {"logreg": 256, "mlp": 256, "cnn": 64, "transformer": 32, "lora": 32, "lstm": 64}
SHAPES = {
    "logreg": "logistic regression 784-10",
    "mlp": "MLP 784-1000-1000-10",
    "cnn": "CNN 3-32-64-64-128 with GroupNorm, 32 × 32 pixels",
    "transformer": "transformer, 4 layers of 128, 64 tokens",
    "lora": "the same frozen, LoRA of rank 8 on q and v, and the head",
    "lstm": "LSTM 64-128, 32 steps",
}
WORDS, TOKENS, WIDTH, HEADS, LAYERS, RANK = 1000, 64, 128, 4, 4, 8
STEPS, INPUTS, HIDDEN = 32, 64, 128
CLASSES = 10


class Adapted(nn.Module):
    """A frozen linear map plus a trained one of low rank."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, RANK, bias=False)
        self.up = nn.Linear(RANK, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    """Attention and two linear maps, each behind a LayerNorm; attention is spelt out, as all modes can then run it."""

    def __init__(self, outer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = outer(), nn.Linear(WIDTH, WIDTH), outer(), nn.Linear(WIDTH, WIDTH)
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        h = self.before(x)
        q, k, v = (self._split(part(h)) for part in (self.q, self.k, self.v))
        weights = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)).softmax(-1)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(x.shape))
        return x + self.narrow(functional.gelu(self.wide(self.after(x))))

    @staticmethod
    def _split(x: Tensor) -> Tensor:
        return x.view(len(x), -1, HEADS, WIDTH // HEADS).transpose(1, 2)


class Transformer(nn.Module):
    """Embeddings, blocks, the mean over tokens, a head; with `lora` only low-rank parts and the head are trained."""

    def __init__(self, *, lora: bool) -> None:
        super().__init__()
        outer: Callable[[], nn.Module] = Adapted if lora else lambda: nn.Linear(WIDTH, WIDTH)
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList([Block(outer) for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)
        if lora:
            for name, parameter in self.named_parameters():
                parameter.requires_grad_(name.startswith("head") or ".up." in name or ".down." in name)

    def forward(self, x: Tensor) -> Tensor:
        # repeated, not expanded: Opacus' ghost mode fails on an expanded index
        h = self.words(x) + self.places(torch.arange(TOKENS).repeat(len(x), 1))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h).mean(1))


class Recurrent(nn.Module):
    """An LSTM and a head on its last state; Opacus trains its own DPLSTM in place of PyTorch's."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.rnn, self.head = kind(INPUTS, HIDDEN, batch_first=True), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


def network(name: str, *, recurrent: Callable[..., nn.Module] = nn.LSTM) -> nn.Module:
    """A fresh network, the same each time."""
    torch.manual_seed(0)
    if name == "logreg":
        return nn.Linear(784, CLASSES)
    if name == "mlp":
        first, second, last = nn.Linear(784, 1000), nn.Linear(1000, 1000), nn.Linear(1000, CLASSES)
        return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)
    if name == "cnn":
        layers: list[nn.Module] = []
        for number, (inner, outer) in enumerate([(3, 32), (32, 64), (64, 64), (64, 128)]):
            pool = nn.AvgPool2d(2) if number < 3 else nn.AdaptiveAvgPool2d(1)
            layers += [nn.Conv2d(inner, outer, 3, padding=1), nn.GroupNorm(8, outer), nn.ReLU(), pool]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128, CLASSES))
    if name == "lstm":
        return Recurrent(recurrent)
    return Transformer(lora=name == "lora")


def examples(name: str, count: int) -> tuple[Tensor, Tensor]:
    """Made-up inputs and classes."""
    random = torch.Generator().manual_seed(1)
    y = torch.randint(CLASSES, (count,), generator=random)
    if name in ("transformer", "lora"):
        return torch.randint(WORDS, (count, TOKENS), generator=random), y
    shape = {"cnn": (3, 32, 32), "lstm": (STEPS, INPUTS)}.get(name, (784,))
    return torch.randn(count, *shape, generator=random), y
