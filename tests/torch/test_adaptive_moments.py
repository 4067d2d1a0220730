"""AdamBC: without noise it is Adam; with noise its denominator is that of the signal."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from privet.errors import InvalidParameter  # noqa: E402
from privet.torch import AdamBC, Phase, PrivateTraining  # noqa: E402


def test_without_noise_it_is_adam() -> None:
    """The same path as torch's own, for gradients well above the floor."""
    weights = [nn.Parameter(torch.ones(3)) for _ in range(2)]
    ours = AdamBC([weights[0]], lr=0.01, floor=1e-8)
    theirs = torch.optim.Adam([weights[1]], lr=0.01, eps=0.0)
    for step in range(20):
        for weight in weights:
            weight.grad = torch.sin(torch.arange(3.0) + step) + 2.0
        ours.step()
        theirs.step()
    assert torch.allclose(weights[0], weights[1], atol=1e-6)


def test_the_denominator_is_that_of_the_signal() -> None:
    """Noise of 1 on signals of 1 and 0.5: after 4,000 steps the corrected moment is near their squares; Adam's is not.

    The mean of squares has a standard error of about 0.04; the seed is fixed.
    """
    torch.manual_seed(0)
    weight = nn.Parameter(torch.zeros(2))
    optimizer = AdamBC([weight], lr=1e-9, noise_stddev=1.0, betas=(0.9, 0.9995))
    signal = torch.tensor([1.0, 0.5])
    for _ in range(4000):
        weight.grad = signal + torch.randn(2)
        optimizer.step()
    state = optimizer.state[weight]
    seen = 1 - 0.9995 ** state["step"]
    corrected = (state["squares"] - state["noise"]) / seen
    assert torch.allclose(corrected, signal**2, atol=0.15)
    assert float(state["squares"][1] / seen) > 1.0


def test_a_run_tells_it_the_noise_of_each_step() -> None:
    """The standard deviation is that of the plan over the divisor, phase by phase; and it is kept in a checkpoint."""
    x = torch.randn(100, 3)
    model = nn.Linear(3, 2)
    optimizer = AdamBC(model.parameters(), lr=1e-3)
    asked: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6, "steps": 4, "batch_size": 20}
    loss = nn.CrossEntropyLoss(reduction="none")
    phases = [Phase(noise=2.0), Phase()]
    run = PrivateTraining(model, optimizer, (x, (x[:, 0] > 0).long()), loss=loss, phases=phases, **asked)
    seen = []
    for batch in run:
        run.step(batch)
        seen.append(optimizer.noise_stddev)
    expected = [release.noise_stddev("zero_out") / 20 for release in run.plan.releases for _ in range(2)]
    assert seen == pytest.approx(expected)
    again = AdamBC(nn.Linear(3, 2).parameters(), lr=1e-3)
    again.load_state_dict(optimizer.state_dict())
    assert again.state_dict()["state"][0]["noise"] == optimizer.state_dict()["state"][0]["noise"] > 0


def test_settings_that_mean_nothing_are_refused() -> None:
    """Step size, decays, floor and noise are checked."""
    weight = nn.Parameter(torch.zeros(1))
    for wrong in ({"lr": 0.0}, {"betas": (0.9, 1.0)}, {"floor": 0.0}, {"noise_stddev": -1.0}):
        with pytest.raises(InvalidParameter):
            AdamBC([weight], **wrong)
