"""Networks in channels_last. There Opacus 1.6.0 has wrong gradients of convolutions, and examples exceed the clip."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from tests.torch.zoo import distance, losses, slowly  # noqa: E402
from torch import nn  # noqa: E402

from privet.clipping import Clip  # noqa: E402
from privet.torch import ClippedGradients  # noqa: E402


@pytest.mark.parametrize("kernel", [2, 4])
def test_channels_last_changes_no_sum(kernel: int) -> None:
    """The clipped sum of a network in channels_last is that of a loop over examples of the network as it was."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, 2, padding=1), nn.Tanh(), nn.Conv2d(8, 6, kernel, 2), nn.Flatten())
    model.append(nn.Linear(6 * (6 if kernel == 4 else 7) ** 2, 10))
    batch, clip = (torch.randn(5, 1, 28, 28), torch.arange(5)), Clip(clip=0.5)
    expected = slowly(model, losses, batch, clip)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # the stubs do not know it
    assert model[2](model[0](batch[0])).stride()[1] == 1  # channels are indeed last
    engine = ClippedGradients(model, losses)
    assert distance(engine.sum(batch, clip).gradients, expected) < 1e-5
    assert engine.way == "book-keeping"
    alone = engine.sum(tuple(part[:1] for part in batch), clip).gradients
    assert sum(float(g.double().square().sum()) for g in alone) <= 0.5**2
