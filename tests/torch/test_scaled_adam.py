from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from tests.torch.zoo import losses, made  # noqa: E402
from torch import nn  # noqa: E402

from privet.clipping import Clip  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.torch import ClippedGradients, PrivateTraining, ScaledAdam  # noqa: E402


@pytest.mark.parametrize("name", ["positions", "conv2d", "embedding", "lstm"])
def test_scaled_gradients_are_within_the_clip(name: str) -> None:
    """A scaled gradient has norm at most the clip, and is the gradient times the scale where it is short."""
    model, batch = made(name, 1)
    engine = ClippedGradients(model, losses)
    torch.manual_seed(3)
    scales = [torch.rand_like(p) * 5 + 0.1 for p in engine.parameters]
    whole = engine.sum(batch, Clip(clip=1e6)).gradients
    scaled = engine.sum(batch, Clip(clip=1e6), scales=scales).gradients
    for share, gradient, scale in zip(scaled, whole, scales, strict=True):
        torch.testing.assert_close(share, gradient * scale, rtol=1e-4, atol=1e-6)
    clipped = engine.sum(batch, Clip(clip=0.01), scales=scales).gradients
    norm = sum(float(share.square().sum()) for share in clipped) ** 0.5
    assert 0.0099 < norm <= 0.01


def test_noise_follows_the_scale() -> None:
    """Where the second moment is small, so is the noise that is written; the budget is the plan's."""
    torch.manual_seed(0)
    model = nn.Linear(50, 2, bias=False)
    x = torch.randn(400, 50)
    x[:, 25:] *= 0.01
    y = (x[:, 0] > 0).long()
    optimizer = ScaledAdam(model.parameters(), lr=0.01, betas=(0.9, 0.9))
    run = PrivateTraining(
        model,
        optimizer,
        (x, y),
        loss=nn.CrossEntropyLoss(reduction="none"),
        epsilon=50,
        delta=1e-6,
        steps=60,
        batch_size=200,
        random=fixed_seed_invalidates_guarantee(2),
    )
    for batch in run:
        run.step(batch)
    assert run.plan.guarantee().epsilon <= 50
    scales = optimizer.scales(list(model.parameters()))
    assert scales is not None
    assert scales[0][:, 25:].mean() > 1.5 * scales[0][:, :25].mean()


def test_scales_keep_the_energy_of_a_gradient() -> None:
    """Σ v s² = Σ v, so that a clip means what it meant without scales."""
    weight = nn.Parameter(torch.zeros(100))
    optimizer = ScaledAdam([weight], lr=0.1, betas=(0.9, 0.99))
    torch.manual_seed(1)
    for _ in range(3):
        weight.grad = torch.randn(100) * torch.logspace(-3, 0, 100)
        optimizer.step()
    moment = optimizer.state[weight]["exp_avg_sq"]
    scales = optimizer.scales([weight])
    assert scales is not None
    torch.testing.assert_close((moment * scales[0].square()).sum(), moment.sum(), rtol=1e-4, atol=0)
