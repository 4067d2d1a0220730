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


def test_an_lstm_forms_no_gradients_of_single_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide LSTM sums what a loop does, without a matrix an example."""

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.LSTM(16, 64, batch_first=True), nn.Linear(64, 3)

        def forward(self, x: Tensor) -> Tensor:
            scores: Tensor = self.head(self.rnn(x)[0][:, -1])
            return scores

    torch.manual_seed(4)
    model, loss = Last(), nn.CrossEntropyLoss(reduction="none")
    x, y = torch.randn(6, 14, 16), torch.randint(3, (6,))
    engine = ClippedGradients(model, LossOf(loss))
    engine.prove((x, y))
    taken: list[int] = []
    monkeypatch.setattr(Scratch, "take", lambda self, shape, device: taken.append(1))
    found = engine.sum((x, y), Clip(clip=0.1))
    assert engine.way == "book-keeping"
    assert not taken
    wanted = [torch.zeros_like(p) for p in engine.parameters]
    for i in range(6):
        alone = torch.autograd.grad(loss(model(x[i : i + 1]), y[i : i + 1]).sum(), engine.parameters)
        norm = torch.stack([g.double().square().sum() for g in alone]).sum().sqrt()
        for total, g in zip(wanted, alone, strict=True):
            total += min(1.0, 0.1 / float(norm)) * g
    for mine, theirs in zip(found.gradients, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
