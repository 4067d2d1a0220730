"""One training step of each kind: plain PyTorch, privet, and its peers in each of their own modes."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_models import BATCH, examples, network

CLIP, NOISE, RATE = 1.0, 1.0, 0.1  # the noise multiplier and the learning rate of a timed step


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What a step is made of; a check turns the noise off and the rate up to the batch size, to see the sum itself."""

    name: str
    noise: float = NOISE
    rate: float = RATE

    @property
    def batch(self) -> int:
        """How many examples a step has, by which sums are divided."""
        return BATCH[self.name]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """A model, its step, and what the library said while it was set up."""

    model: nn.Module
    step: Callable[[Tensor, Tensor], None]
    said: Callable[[], str] = lambda: ""


def trained(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that move."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def plain(settings: Settings, *, noisy: bool = False) -> Ready:
    """The step without privacy; if `noisy`, with torch's own noise on every gradient, and no clipping."""
    model, loss = network(settings.name), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(trained(model), lr=settings.rate)

    def step(x: Tensor, y: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        if noisy:
            for parameter in trained(model):
                assert parameter.grad is not None
                parameter.grad.add_(torch.normal(0.0, settings.noise * CLIP / settings.batch, parameter.shape))
        optimizer.step()

    return Ready(model=model, step=step)


def privet(settings: Settings, *, ahead: bool = False) -> Ready:
    """privet's clipped sum, its cryptographic noise, then the same optimizer; `ahead`: noise drawn on another core."""
    from privet.clipping import Clip
    from privet.torch import ClippedGradients, FloatNoise, LossOf
    from privet.torch.noise_ahead import NoiseAhead

    model, rule, noise = network(settings.name), Clip(clip=CLIP), FloatNoise()
    engine = ClippedGradients(model, LossOf(nn.CrossEntropyLoss(reduction="none")))
    optimizer = torch.optim.SGD(engine.parameters, lr=settings.rate)
    spare = NoiseAhead(noise, sum(p.numel() for p in engine.parameters)) if ahead and settings.noise else None

    def step(x: Tensor, y: Tensor) -> None:
        if spare is not None:
            spare.prepare()
        for parameter in engine.parameters:
            parameter.grad = None
        total = engine.sum((x, y), rule)
        if spare is not None:
            spare.add_([total.row], settings.noise * CLIP)
        elif settings.noise:
            noise.add_(total.row, settings.noise * CLIP)
        total.row.div_(settings.batch)
        for parameter, gradient in zip(engine.parameters, total.gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()

    return Ready(model=model, step=step, said=lambda: f"by {engine.way}")


def opacus(settings: Settings, *, mode: str) -> Ready:
    """Opacus' own loop, in one of its modes of per-example gradients."""
    from opacus import PrivacyEngine
    from opacus.layers import DPLSTM
    from torch.utils.data import DataLoader, TensorDataset

    model = network(settings.name, recurrent=DPLSTM)
    engine = PrivacyEngine(accountant="rdp")
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(trained(model), lr=settings.rate),
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(*examples(settings.name, settings.batch)), batch_size=settings.batch),
        noise_multiplier=settings.noise,
        max_grad_norm=CLIP,
        poisson_sampling=False,  # batches are handed over here; its sampler is timed apart
        grad_sample_mode=mode,
    )
    wrapped, optimizer, loss = made[0], made[1], made[2] if mode == "ghost" else nn.CrossEntropyLoss()
    wrapped.train()

    def step(x: Tensor, y: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(wrapped(x), y).backward()
        optimizer.step()

    return Ready(model=model, step=step)


def fastdp(settings: Settings, *, mode: str) -> Ready:
    """awslabs/fast-differential-privacy, of a checkout named by PEERS_FASTDP, clipping all layers together."""
    sys.path.insert(0, os.environ["PEERS_FASTDP"])
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard):
        from fastDP import PrivacyEngine

        model, loss = network(settings.name), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(trained(model), lr=settings.rate)
        PrivacyEngine(
            model,
            batch_size=settings.batch,
            sample_size=50_000,
            noise_multiplier=settings.noise,
            epochs=1,
            max_grad_norm=CLIP,
            clipping_mode=mode,
            clipping_fn="Abadi",
            clipping_style="all-layer",
        ).attach(optimizer)

    def step(x: Tensor, y: Tensor) -> None:
        with contextlib.redirect_stdout(heard):
            loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return Ready(model=model.train(), step=step, said=lambda: _complaint(heard.getvalue()))


def _complaint(text: str) -> str:
    lines = [line for line in text.splitlines() if "not supported" in line]
    return lines[-1][:200] if lines else ""


Maker = Callable[[Settings], Ready]
OURS: dict[str, Maker] = {
    "plain": plain,
    "plain + torch noise": lambda settings: plain(settings, noisy=True),
    "privet": privet,
    "privet, noise ahead": lambda settings: privet(settings, ahead=True),
}
PEERS: dict[str, Maker] = {
    "Opacus hooks": lambda settings: opacus(settings, mode="hooks"),
    "Opacus ew": lambda settings: opacus(settings, mode="ew"),
    "Opacus ghost": lambda settings: opacus(settings, mode="ghost"),
    "fastDP MixOpt": lambda settings: fastdp(settings, mode="MixOpt"),
    "fastDP ghost": lambda settings: fastdp(settings, mode="ghost"),
}
MODES = OURS | PEERS


def ready(mode: str, **settings: Any) -> Ready:
    """The mode, set up; a peer's warnings are its own affair."""
    warnings.simplefilter("ignore")
    return MODES[mode](Settings(**settings))
