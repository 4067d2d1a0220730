from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from tests.torch.zoo import ZOO, Apply, distance, losses, made, slowly  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from privet.clipping import Automatic, Clip  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.torch import ClippedGradients, LossOf, PerLayer, make_compatible  # noqa: E402
from privet.torch.recording import Recording  # noqa: E402

# Whatever is not here must be recorded: a slower way would be right, but a regression.
SLOWER: dict[str, str] = {}


@pytest.mark.parametrize("name", ZOO)
def test_sum_is_that_of_a_loop(name: str) -> None:
    """For every kind of layer the clipped sum is that of a loop over examples, whatever the micro-batch."""
    model, batch = made(name, 9)
    clip = Clip(clip=0.5)
    expected = slowly(model, losses, batch, clip)
    for micro in (None, 1, 4, 9):
        engine = ClippedGradients(model, losses, micro_batch=micro)
        found = engine.sum(batch, clip)
        assert distance(found.gradients, expected) < 1e-5, micro
    assert engine.way == SLOWER.get(name, "book-keeping")


@pytest.mark.parametrize(
    "name", ["no bias, in place", "positions", "conv2d", "embedding", "lstm", "tied weights", "class token"]
)
@pytest.mark.parametrize("sizes", [[3, 3, 3], [1, 5, 2, 1]], ids=str)
def test_units_of_several_examples_are_clipped_together(name: str, sizes: list[int]) -> None:
    """The mean gradient of a person's examples is clipped as one, as a loop would."""
    model, batch = made(name, 9)
    clip = Clip(clip=0.3)
    expected = slowly(model, losses, batch, clip, sizes)
    for micro in (None, 2):
        found = ClippedGradients(model, losses, micro_batch=micro).sum(batch, clip, sizes=torch.tensor(sizes))
        assert distance(found.gradients, expected) < 1e-5


@pytest.mark.parametrize("name", ["positions", "conv2d", "unused layer"])
def test_parameters_clipped_by_themselves(name: str) -> None:
    """With PerLayer every parameter's gradient is clipped to its share."""
    model, batch = made(name, 9)
    rule = PerLayer(clip=0.3)
    found = ClippedGradients(model, losses).sum(batch, rule)
    assert distance(found.gradients, slowly(model, losses, batch, rule)) < 1e-5


def test_automatic_clipping_normalises() -> None:
    """A rule that chooses factors of its own is followed, and never beyond the clip."""
    model, batch = made("linear", 1)
    found = ClippedGradients(model, losses).sum(batch, Automatic(clip=0.5, stability=1e-6))
    norm = sum(float(g.square().sum()) for g in found.gradients) ** 0.5
    assert 0.499 < norm <= 0.5


@pytest.mark.parametrize(
    "name", ["linear", "positions", "conv2d", "lstm", "attention", "bare parameters", "layer norm"]
)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38, 3e30], ids=str)
def test_no_example_moves_the_sum_by_more_than_the_clip(name: str, value: float) -> None:
    """One example with an odd value, in the place of any other, leaves a finite sum within the clip of the rest's."""
    model, (x, y) = made(name, 6)
    engine, clip = ClippedGradients(model, losses, micro_batch=4), Clip(clip=0.5)
    rest = engine.sum((x[1:], y[1:]), clip).gradients
    x = x.clone()
    x[0] = value
    found = engine.sum((x, y), clip).gradients
    moved = sum(float((a.double() - b.double()).square().sum()) for a, b in zip(found, rest, strict=True)) ** 0.5
    assert moved <= 0.5 * (1 + 1e-5)


def test_words_and_classes_that_do_not_exist_contribute_nothing() -> None:
    """An index beyond the table, or a class that is none, neither stops the run nor shows."""
    model, (x, y) = made("embedding", 6)
    engine, clip = ClippedGradients(model, losses), Clip(clip=0.5)
    rest = engine.sum((x[:-1], y[:-1]), clip).gradients
    x[-1, 2] = 10_000
    found = engine.sum((x, y), clip).gradients
    assert distance(found, [r.double() for r in rest]) < 1e-5


def test_an_empty_batch_sums_to_nothing() -> None:
    """A Poisson batch may be empty: zeros, and no error."""
    model, batch = made("conv2d", 4)
    engine = ClippedGradients(model, losses)
    engine.sum(batch, Clip(clip=1.0))
    found = engine.sum(tuple(t[:0] for t in batch), Clip(clip=1.0))
    assert [float(g.abs().sum()) for g in found.gradients] == [0.0] * len(engine.names)
    assert found.within == 0


def test_as_many_examples_as_positions() -> None:
    """A batch that happens to be as long as its sequences is no other than the rest."""
    model, batch = made("places", 5)
    assert batch[0].shape[0] == batch[0].shape[1]
    found = ClippedGradients(model, losses).sum(batch, Clip(clip=0.5))
    assert distance(found.gradients, slowly(model, losses, batch, Clip(clip=0.5))) < 1e-5


def test_the_model_stays_as_it_is() -> None:
    """No wrapper, no hook, no gradient and no change of state is left behind."""
    model, batch = made("transformer", 4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kept = torch.ones_like(next(model.parameters()))
    next(model.parameters()).grad = kept
    ClippedGradients(model, losses).sum(batch, Clip(clip=1.0))
    assert next(model.parameters()).grad is kept
    assert all(parameter.grad is None for parameter in list(model.parameters())[1:])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._backward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("name", ["transformer", "prelu", "cross attention", "lstm"])
def test_a_step_gives_back_what_it_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs of layers are freed with the step, not when the garbage collector comes round, or never."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    start = Recording.__init__

    def watched(self: Any, *args: Any, **settings: Any) -> None:
        alive.add(self)
        start(self, *args, **settings)

    model, batch = made(name, 4)
    ClippedGradients(model, losses).sum(batch, Clip(clip=1.0))  # torch.func keeps frames of its first call
    monkeypatch.setattr(Recording, "__init__", watched)
    gc.disable()
    try:
        ClippedGradients(model, losses).sum(batch, Clip(clip=1.0))
        assert not alive
    finally:
        gc.enable()


def contrastive(model: nn.Module, batch: Any) -> Any:
    out = model(batch[0])
    return F.cross_entropy(out @ out.T, torch.arange(len(out)), reduction="none")


MIXING: dict[str, tuple[Any, Any]] = {
    "batch norm": (lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)), losses),
    "running statistics": (
        lambda: nn.Sequential(nn.Unflatten(1, (1, 5)), nn.InstanceNorm1d(1, track_running_stats=True), nn.Flatten()),
        losses,
    ),
    "batch mean": (lambda: Apply(lambda m, x: m.out(x - x.mean(0, keepdim=True)), out=nn.Linear(5, 3)), losses),
    "batch norm by hand": (
        lambda: Apply(lambda m, x: m.out(F.batch_norm(x, None, None, training=True)), out=nn.Linear(5, 3)),
        losses,
    ),
    "contrastive loss": (lambda: nn.Linear(5, 3), contrastive),
    "attention across examples": (
        lambda: Apply(
            lambda m, x: m.out(x[None], x[None], x[None])[0][0][:, :3],
            out=nn.MultiheadAttention(5, 1, batch_first=True),
        ),
        losses,
    ),
}


@pytest.mark.parametrize("name", MIXING)
def test_models_that_mix_examples_are_refused(name: str) -> None:
    """Statistics of the batch, contrastive losses and attention across examples are refused, with what to do."""
    torch.manual_seed(0)
    make, per_example = MIXING[name]
    engine = ClippedGradients(make(), per_example)
    with pytest.raises(InvalidParameter, match=r"examples|remember"):
        engine.sum((torch.randn(6, 5), torch.randint(3, (6,))), Clip(clip=1.0))


def test_a_buffer_that_remembers_examples_is_refused() -> None:
    """A running mean that a module keeps by itself would be released without noise."""

    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(5, 3)
            self.register_buffer("seen", torch.zeros(5))

        def forward(self, x: Any) -> Any:
            self.seen += x.detach().mean(0)
            return self.lin(x)

    model = Remembers()
    with pytest.raises(InvalidParameter, match="'seen'"):
        ClippedGradients(model, losses).sum((torch.randn(6, 5), torch.randint(3, (6,))), Clip(clip=1.0))
    assert torch.equal(model.seen, torch.zeros(5))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_that_is_reduced_already_is_refused(reduction: str) -> None:
    """One number for a batch cannot be clipped example by example."""
    engine = ClippedGradients(nn.Linear(5, 3), lambda m, b: F.cross_entropy(m(b[0]), b[1], reduction=reduction))
    with pytest.raises(InvalidParameter, match='reduction="none"'):
        engine.sum((torch.randn(6, 5), torch.randint(3, (6,))), Clip(clip=1.0))


def test_parameters_added_after_set_up_are_refused() -> None:
    """What was not there when the run was made would be trained without privacy."""
    model, batch = made("linear", 4)
    engine = ClippedGradients(model, losses)
    engine.sum(batch, Clip(clip=1.0))
    model.extra = nn.Parameter(torch.zeros(3))
    with pytest.raises(InvalidParameter, match="extra"):
        engine.sum(batch, Clip(clip=1.0))


def test_batch_norm_must_stay_frozen() -> None:
    """A frozen BatchNorm is fine; switched to training afterwards it is refused."""
    model, batch = made("frozen batch norm", 4)
    engine = ClippedGradients(model, losses)
    engine.sum(batch, Clip(clip=1.0))
    model.train()
    with pytest.raises(InvalidParameter, match="evaluation mode"):
        engine.sum(batch, Clip(clip=1.0))


def test_made_compatible() -> None:
    """BatchNorm becomes GroupNorm, and the copy trains with activations in place."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3))
    found = make_compatible(model)
    assert isinstance(list(found.children())[1], nn.GroupNorm)
    assert isinstance(model[1], nn.BatchNorm2d)
    batch = torch.randn(5, 1, 6, 6), torch.randint(3, (5,))
    total = ClippedGradients(found, losses).sum(batch, Clip(clip=0.5)).gradients
    assert distance(total, slowly(found, losses, batch, Clip(clip=0.5))) < 1e-5


def test_dropout_draws_once_for_the_whole_step() -> None:
    """With dropout the sum is that of one random network: its norm stays within the clip, and nothing is refused."""
    model = nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.5), nn.Linear(16, 3))
    engine = ClippedGradients(model, losses)
    found = engine.sum((torch.randn(1, 5), torch.tensor([1])), Clip(clip=0.1))
    assert engine.way == "book-keeping"
    assert sum(float(g.square().sum()) for g in found.gradients) ** 0.5 <= 0.1


def test_a_mutant_that_skips_a_use_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the rules forgot a use of a shared weight, the proof would fail and a slower way be taken, still right."""
    from privet.torch.uses import together

    monkeypatch.setattr("privet.torch.gradient_ways.together", lambda uses, shape: together(uses[:1], shape))
    model, batch = made("shared layer", 5)
    engine = ClippedGradients(model, losses)
    found = engine.sum(batch, Clip(clip=0.5))
    assert engine.way == "torch.func"
    assert distance(found.gradients, slowly(model, losses, batch, Clip(clip=0.5))) < 1e-5


def test_bf16_forward_clips_in_float32() -> None:
    """Under autocast the forward pass is in bfloat16; norms, factors and sums are in float32, within the clip."""
    model, batch = made("positions", 6)

    def half(model: nn.Module, batch: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return losses(model, batch).float()

    found = ClippedGradients(model, half).sum(batch, Clip(clip=0.1)).gradients
    assert all(g.dtype == torch.float32 for g in found)
    assert distance(found, slowly(model, half, batch, Clip(clip=0.1))) < 0.05


@pytest.mark.parametrize("sizes", [None, [3, 3, 3], [1, 5, 2, 1]], ids=str)
def test_softmax_regression_has_a_closed_form(sizes: list[int] | None) -> None:
    """One linear layer under cross-entropy needs no backward pass, and gives the same sum."""
    torch.manual_seed(0)
    model, batch = nn.Sequential(nn.Flatten(), nn.Linear(10, 3)), (torch.randn(9, 2, 5), torch.randint(3, (9,)))
    per_example = LossOf(nn.CrossEntropyLoss(reduction="none"))
    engine = ClippedGradients(model, per_example)
    found = engine.sum(batch, Clip(clip=0.5), sizes=None if sizes is None else torch.tensor(sizes))
    assert engine.way == "closed form"
    assert distance(found.gradients, slowly(model, per_example, batch, Clip(clip=0.5), sizes)) < 1e-5
    batch[1][4] = 7  # no such class
    assert all(bool(g.isfinite().all()) for g in engine.sum(batch, Clip(clip=0.5)).gradients)


@pytest.mark.medium
@pytest.mark.parametrize("how", ["wrapped", "in place"])
def test_a_compiled_model_has_the_sum_of_the_model(how: str) -> None:
    """Compiled parts run as they are written in private steps, and the compiler is not asked to look at those."""
    asked: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        asked.append(1)
        return graph.forward

    model, batch = made("layer norm", 6)
    expected = ClippedGradients(model, losses).sum(batch, Clip(clip=0.1))
    compiled: Any = torch.compile(model, backend=backend) if how == "wrapped" else model
    if how == "in place":
        model.compile(backend=backend)
    engine = ClippedGradients(compiled, losses)
    found = engine.sum(batch, Clip(clip=0.1))
    assert engine.way == "book-keeping"
    assert not asked
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(found.gradients, expected.gradients, strict=True))
