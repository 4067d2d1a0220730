"""Norms and sums of gradients from what went in and what came back."""

import pytest
import torch
from torch import Tensor, nn

from privet.clipping import Clip
from privet.torch import ClippedGradients, LossOf
from privet.torch.scratch import Scratch
from privet.torch.uses import Product, SharedGram


def test_matrices_of_the_same_outputs_share_their_inner_products() -> None:
    """Norms by shared Gram matrices are those of the gradients themselves; neither forms them."""
    made = torch.Generator().manual_seed(3)
    first, second, outputs = (torch.randn(5, 14, width, generator=made) for width in (16, 64, 256))
    gram = SharedGram(2)
    for inputs in (first, second):
        scratch = Scratch()
        shared = Product(inputs, outputs, gram)
        found = shared.squared_norms(scratch)
        rows = torch.einsum("nti,nto->noi", inputs.double(), outputs.double())
        torch.testing.assert_close(found, rows.square().sum((1, 2)), rtol=1e-5, atol=0.0)
        assert shared.numbers == 2 * 14**2
    assert Product(first, outputs).numbers == 16 * 256  # alone, its gradients are cheaper to form


class Last(nn.Module):
    """An LSTM and a head on its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(16, 64, batch_first=True), nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.rnn(x)[0][:, -1])
        return scores


def looped(engine: ClippedGradients, batch: tuple[Tensor, Tensor], clip: float) -> list[Tensor]:
    """The clipped sum of a loop over examples."""
    wanted = [torch.zeros_like(p) for p in engine.parameters]
    for i in range(len(batch[0])):
        one = tuple(t[i : i + 1] for t in batch)
        alone = torch.autograd.grad(engine.per_example(engine.model, one).sum(), engine.parameters)
        norm = torch.stack([g.double().square().sum() for g in alone]).sum().sqrt()
        for total, g in zip(wanted, alone, strict=True):
            total += min(1.0, clip / float(norm)) * g
    return wanted


def test_an_lstm_forms_no_gradients_of_single_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide LSTM sums what a loop does, without a matrix an example."""
    torch.manual_seed(4)
    batch = torch.randn(6, 14, 16), torch.randint(3, (6,))
    engine = ClippedGradients(Last(), LossOf(nn.CrossEntropyLoss(reduction="none")))
    engine.prove(batch)
    taken: list[int] = []
    monkeypatch.setattr(Scratch, "take", lambda self, shape, device: taken.append(1))
    found = engine.sum(batch, Clip(clip=0.1))
    assert engine.way == "book-keeping"
    assert not taken
    for mine, theirs in zip(found.gradients, looped(engine, batch, 0.1), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


def test_a_loss_that_goes_back_through_an_lstm_itself() -> None:
    """Gates make room for their gradients on the way back; a loss that goes that way too still gets a loop's sum."""

    def losses(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        with torch.enable_grad():
            x = batch[0].clone().requires_grad_(True)
            scores = model(x).square().sum(1)
            (slope,) = torch.autograd.grad(scores.sum(), x, retain_graph=True)
        found: Tensor = scores * (1 + slope.flatten(1).norm(dim=1))
        return found

    torch.manual_seed(5)
    batch = torch.randn(4, 5, 16), torch.zeros(4)
    engine = ClippedGradients(Last(), losses)
    found = engine.sum(batch, Clip(clip=0.1))
    for mine, theirs in zip(found.gradients, looped(engine, batch, 0.1), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fails", [False, True])
def test_an_lstm_gives_threads_back(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short steps one after the other run on one thread; afterwards there are as many as before, also if they fail."""
    seen: list[int] = []
    batch = torch.randn(6, 14, 16), torch.zeros(6, dtype=torch.long)
    engine = ClippedGradients(Last(), LossOf(nn.CrossEntropyLoss(reduction="none")))
    engine.prove(batch)
    sigmoid = Tensor.sigmoid_

    def watched(tensor: Tensor) -> Tensor:
        seen.append(torch.get_num_threads())
        if fails:
            raise RuntimeError
        return sigmoid(tensor)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        monkeypatch.setattr(Tensor, "sigmoid_", watched)
        engine.sum(batch, Clip(clip=0.1))
        assert torch.get_num_threads() == 2
        assert set(seen) == {1}
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("shared", [False, True])
def test_norms_are_taken_on_the_way_back_where_nothing_is_to_come(shared: bool) -> None:
    """What a layer kept is freed as soon as its gradients are formed, unless the weight was used before as well."""
    torch.manual_seed(6)
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    model = nn.Sequential(first, nn.Tanh(), first if shared else second, nn.Flatten(), nn.Linear(120, 2))
    batch = torch.randn(5, 40, 3), torch.randint(2, (5,))
    engine = ClippedGradients(model, LossOf(nn.CrossEntropyLoss(reduction="none")))
    engine.prove(batch)
    uses = engine._uses(batch, None)
    formed = [use for use in uses if isinstance(use, Product) and not hasattr(use, "inputs")]
    assert len(formed) == (0 if shared else 2)
    found = engine.sum(batch, Clip(clip=0.1))
    assert engine.way == "book-keeping"
    for mine, theirs in zip(found.gradients, looped(engine, batch, 0.1), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
