"""The loop: what is drawn is what was planned and charged; what cannot be promised is refused before data are read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler  # noqa: E402

from privet import Budget, accounting  # noqa: E402
from privet.accounting import Gaussian  # noqa: E402
from privet.clipping import Adaptive, Automatic  # noqa: E402
from privet.errors import InvalidParameter, NoAmplification, NoProvenBound, Overspent  # noqa: E402
from privet.ledger import Account  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.sampling import FixedSize, Poisson, TruncatedPoisson  # noqa: E402
from privet.torch import AdamBC, Phase, PrivateTraining, ScaledAdam  # noqa: E402

CROSS = nn.CrossEntropyLoss(reduction="none")


class Watched(TensorDataset):
    """Counts how often an example is read."""

    reads = 0

    def __getitem__(self, index: int) -> Any:
        type(self).reads += 1
        return tuple(tensor[index] for tensor in self.tensors)


def data(count: int = 100, seed: int = 1) -> Any:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, generator=generator)
    return TensorDataset(x, (x[:, 0] > 0).long())


def training(dataset: Any = None, model: Any = None, optimizer: Any = None, **changes: Any) -> PrivateTraining:
    torch.manual_seed(0)
    model = nn.Linear(3, 2) if model is None else model
    asked: dict[str, Any] = {"loss": CROSS, "epsilon": 2.0, "delta": 1e-6, "steps": 6, "batch_size": 20}
    asked.update(changes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5) if optimizer is None else optimizer
    return PrivateTraining(model, optimizer, data() if dataset is None else dataset, **asked)


def trained(run: PrivateTraining) -> PrivateTraining:
    for batch in run:
        run.step(batch)
    return run


# -- what is planned and charged ---------------------------------------------------------------------------------------


def test_the_rate_and_the_divisor_are_those_asked_for() -> None:
    """Batch 300 of 1,000 is a rate of exactly 0.3 and a divisor of exactly 300, not 250 (Opacus 1.6)."""
    run = training(data(1000), batch_size=300, clip=2.0, random=fixed_seed_invalidates_guarantee(1))
    assert run.plan["gradients"].sampling == Poisson(sampling_rate=0.3)
    model = run.model
    run._source.examples.read = lambda indices: []  # type: ignore[method-assign]
    before = [p.detach().clone() for p in model.parameters()]
    batch = next(iter(run))
    run.step(batch)
    stddev = run.plan["gradients"].noise_stddev("zero_out") / 300
    moved = torch.cat([(a - b).reshape(-1) for a, b in zip(before, model.parameters(), strict=True)]) / 0.5
    assert 0.3 * stddev < float(moved.detach().square().mean().sqrt()) < 3 * stddev


def test_the_guarantee_is_the_plan_s_and_says_what_it_rests_on() -> None:
    """The budget is met, nearly used up, and ideal noise and independence are named as assumed."""
    run = trained(training(random=None))
    assert 1.99 < run.guarantee.epsilon <= 2.0
    assert run.guarantee.delta == 1e-6
    said = run.guarantee.details
    for words in ("idealised Gaussian", "float sums", "by itself", "shapes and types", "clipped to norm 1", "Poisson"):
        assert words in said
    assert "shapes" not in training(example=(torch.zeros(3), torch.tensor(0))).guarantee.details
    assert "NOT PRIVATE" in str(training(random=fixed_seed_invalidates_guarantee(1)).guarantee)


def test_epsilon_spent_grows_to_the_guarantee() -> None:
    """Nothing at the start, that of the steps made in between, the plan's at the end."""
    run, seen = training(), []
    assert run.epsilon_spent == 0.0
    for batch in run:
        run.step(batch)
        seen.append(run.epsilon_spent)
    assert seen == sorted(seen)
    assert seen[-1] == run.guarantee.epsilon
    noise = run.plan["gradients"].noise_multiplier
    two = Gaussian(noise_multiplier=noise).poisson(rate=0.2) * 2
    assert seen[1] == accounting.epsilon(two, delta=1e-6, neighbours="zero_out")


def test_whoever_stops_early_has_the_guarantee_of_the_whole_plan() -> None:
    """To stop because of what was learnt is a choice that depends on the data."""
    run = training()
    for batch in run:
        run.step(batch)
        break
    assert run.guarantee == trained(training()).guarantee
    assert (run.steps_made, run.steps_left, len(run)) == (1, 5, 6)


@pytest.mark.medium
def test_the_plan_follows_from_public_facts() -> None:
    """Other values, or with records=... another number of examples, change nothing of the plan."""
    assert training(data(100)).plan == training(data(100, seed=9)).plan
    plans = [training(data(count), records=90).plan for count in (100, 99)]
    assert plans[0] == plans[1]
    assert (plans[0].neighbours, plans[0]["gradients"].sampling) == ("add_remove", Poisson(sampling_rate=20 / 90))


@pytest.mark.medium
def test_the_relation_is_said_and_the_number_of_records_is_public_or_guessed() -> None:
    """Without records it is zero_out, at the cost of add_remove; add_remove without a guess is refused."""
    assert training().plan.neighbours == "zero_out"
    same = [training(neighbours=n, records=100).plan["gradients"].noise_multiplier for n in ("zero_out", "add_remove")]
    assert same[0] == same[1] < training(neighbours="replace_one").plan["gradients"].noise_multiplier
    with pytest.raises(InvalidParameter, match="public guess"):
        training(neighbours="add_remove")
    with pytest.raises(InvalidParameter, match="Leave it out"):
        training(neighbours="zero_out", records=50)


def test_an_account_is_charged_for_the_whole_plan_before_an_example_is_read(tmp_path: Path) -> None:
    """The charge is there before the first step; what does not fit is refused, unread, and leaves no journal."""
    terms: dict[str, Any] = {"neighbours": "zero_out", "filter": "renyi"}
    account = Account(Budget(epsilon=3.0, delta=1e-6), **terms)
    training(account=account, label="first")
    assert [charge.label for charge in account.charges] == ["first"]
    Watched.reads = 0
    made_up = (torch.zeros(3), torch.tensor(0))
    with pytest.raises(Overspent):
        training(Watched(*data().tensors), account=account, example=made_up, journal=tmp_path / "steps")
    assert Watched.reads == 0
    assert not (tmp_path / "steps").exists()


@pytest.mark.medium
def test_clips_noise_and_batches_may_be_chosen() -> None:
    """Automatic and adaptive clipping, batches of fixed size or room, and phases of noise and clip all train."""
    for clip in (Automatic(clip=1.0), Adaptive(clip=1.0, count_noise=5.0)):
        assert trained(training(clip=clip)).guarantee.epsilon <= 2.0
    fixed = training(sampling=FixedSize(batch=20))
    assert "without_replacement" in repr(fixed.plan.event)
    truncated = trained(training(sampling=TruncatedPoisson(sampling_rate=0.2, batch=60)))
    assert "Approximate" in repr(truncated.plan.event)  # the chance that a batch is cut, as a delta
    assert (truncated.steps_left, truncated.guarantee.epsilon <= 2.0) == (0, True)
    run = training(phases=[Phase(share=2, noise=2.0), Phase(clip=0.5)])
    first, second = run.plan.releases
    assert (first.times, second.times) == (4, 2)
    assert first.noise_multiplier == pytest.approx(2 * second.noise_multiplier)
    assert (trained(run).steps_left, run.guarantee.epsilon <= 2.0) == (0, True)


# -- the loop ----------------------------------------------------------------------------------------------------------


def test_only_the_batch_that_the_run_drew_last_is_stepped() -> None:
    """A batch of tensors, of another run, or one stepped before is refused; so is the next before a step."""
    run, other = training(), training()
    batch, foreign = next(iter(run)), next(iter(other))
    for wrong in (foreign, data().tensors, None):
        with pytest.raises(InvalidParameter, match="this run drew"):
            run.step(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="drawn before"):
        next(iter(run))
    run.step(batch)
    with pytest.raises(InvalidParameter, match="this run drew"):
        run.step(batch)


@pytest.mark.medium
def test_a_loop_ends_with_the_plan_however_it_is_written() -> None:
    """Epochs, broken loops and loops begun again are one run of as many steps as planned."""
    run = training(steps=None, epochs=2.5)
    assert len(run) == 13
    made = []
    for _ in range(4):
        made.append(0)
        for batch in run.epoch():
            run.step(batch)
            made[-1] += 1
    assert made == [5, 5, 3, 0]
    assert list(run) == []


def test_empty_batches_are_steps() -> None:
    """At one expected example of a thousand most batches are small, some empty; each is a step, and none is NaN."""
    run = training(data(1000), batch_size=1, steps=40, random=fixed_seed_invalidates_guarantee(3))
    empty = 0
    for batch in run:
        empty += not batch.parts
        run.step(batch)
    assert empty > 5
    assert run.steps_made == 40
    assert all(bool(torch.isfinite(p).all()) for p in run.model.parameters())


@pytest.mark.medium
def test_it_learns() -> None:
    """Accuracy on two thousand easy examples is far above chance; the seed is fixed."""
    examples = data(2000)
    run = training(examples, steps=30, batch_size=100, random=fixed_seed_invalidates_guarantee(1), ema=0.9)
    trained(run)
    x, y = examples.tensors
    for model in (run.model, run.averaged()):
        assert float((model.forward(x).argmax(1) == y).double().mean()) > 0.9


OPTIMISERS: dict[str, Any] = {
    "SGD with momentum": lambda weights: torch.optim.SGD(weights, lr=0.3, momentum=0.9),
    "Adam": lambda weights: torch.optim.Adam(weights, lr=0.1),
    "AdamW": lambda weights: torch.optim.AdamW(weights, lr=0.1),
    "Adafactor": lambda weights: torch.optim.Adafactor(weights, lr=0.1),
    "AdamBC": lambda weights: AdamBC(weights, lr=0.02),
    "ScaledAdam": lambda weights: ScaledAdam(weights, lr=0.1),
}


@pytest.mark.medium
@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_learn_from_the_private_gradient_and_are_resumed(name: str, tmp_path: Path) -> None:
    """Accuracy on two thousand easy examples is far above chance, with a checkpoint in between; the seed is fixed."""
    examples, model = data(2000), nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = OPTIMISERS[name](model.parameters())
    asked: dict[str, Any] = {"steps": 40, "batch_size": 100, "epsilon": 4.0, "journal": tmp_path / "steps"}
    run = training(examples, model, optimizer, random=fixed_seed_invalidates_guarantee(1), **asked)
    for batch in run:
        run.step(batch)
        if run.steps_made == 20:
            run.save(tmp_path / "last.pt")
            break
    seed = fixed_seed_invalidates_guarantee(2)
    again: dict[str, Any] = {"loss": CROSS, "journal": tmp_path / "steps", "random": seed}
    optimizer = OPTIMISERS[name](model.parameters())
    trained(PrivateTraining.resume(tmp_path / "last.pt", model, optimizer, examples, **again))
    x, y = examples.tensors
    assert float((model(x).argmax(1) == y).double().mean()) > 0.9


def test_an_average_of_weights_is_kept_on_request() -> None:
    """It lags behind the weights, leaves them alone, and without ema=... there is none."""
    run = trained(training(ema=0.99))
    average = run.averaged()
    assert isinstance(average, nn.Linear)
    assert not torch.equal(average.weight, run.model.weight)
    with pytest.raises(InvalidParameter, match="ema="):
        training().averaged()


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.Adafactor, torch.optim.RMSprop])
def test_any_optimiser_steps_on_the_private_gradient(kind: Any) -> None:
    """Adam and its kin see nothing but the noisy gradient."""
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    trained(training(model=model, optimizer=kind(model.parameters(), lr=0.01)))
    assert not torch.equal(before, model.weight)


@pytest.mark.medium
def test_a_fixed_seed_repeats_a_run_and_nothing_else_does() -> None:
    """Two runs of one seed end with the same weights, two of none with others, whatever torch was seeded with."""

    def weights(seed: int | None) -> Any:
        random = None if seed is None else fixed_seed_invalidates_guarantee(seed)
        model: Any = trained(training(random=random)).model
        return model.weight.detach()

    assert torch.equal(weights(4), weights(4))
    assert not torch.equal(weights(None), weights(None))


class Readable:
    """Rows, one of which may be anything at all."""

    def __init__(self, place: int, odd: Any) -> None:
        self.x, self.y = data(60).tensors
        self.place, self.odd = place, odd

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> Any:
        if index != self.place:
            return self.x[index], self.y[index]
        if isinstance(self.odd, Exception):
            raise self.odd
        return self.odd


def test_a_run_replayed_on_a_neighbour_differs_by_at_most_the_clip_in_each_step() -> None:
    """Same batches and noise, weights held still: one example zeroed out moves no noisy sum by more than the clip.

    Zeroed out is an example that cannot be read; its neighbours are ordinary, huge, NaN, ragged or out of range.
    """

    def sums(odd: Any) -> list[Any]:
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        asked: dict[str, Any] = {"steps": 12, "batch_size": 30, "clip": 0.7, "epsilon": 5.0}
        asked["example"] = (torch.zeros(3), torch.tensor(0))
        random = fixed_seed_invalidates_guarantee(11)
        run = training(Readable(7, odd), model, optimizer, random=random, **asked)
        found = []
        for batch in run:
            run.step(batch)
            found.append(30.0 * torch.cat([p.grad.reshape(-1) for p in model.parameters()]))  # type: ignore[union-attr]
        return found

    empty = sums(ValueError("unreadable"))
    label = torch.tensor(1)
    odd = [(torch.tensor([9e3, -1.0, 2.0]), label), (torch.full((3,), math.nan), label), (torch.ones(5), label)]
    odd += [(torch.full((3,), 3e38), label), (torch.ones(3), torch.tensor(77)), (torch.full((3,), math.inf), label)]
    farthest = []
    for neighbour in odd:
        moved = [float((a - b).norm()) for a, b in zip(sums(neighbour), empty, strict=True)]
        assert max(moved) <= 0.7 * (1 + 1e-4)
        farthest.append(max(moved))
    assert farthest[0] > 0.69  # the clip is reached, by an ordinary large one
    assert max(farthest[1], farthest[2], farthest[4], farthest[5]) < 1e-4  # and these are nothing


# -- batches of others -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("drop_last", "batches"), [(False, 4), (True, 3)])
def test_a_loader_is_charged_once_a_pass_and_told_so(shuffle: bool, drop_last: bool, batches: int) -> None:
    """Full Gaussian releases, one for each epoch, no amplification; each example is read once a pass at most."""
    loader = DataLoader(data(), batch_size=30, shuffle=shuffle, drop_last=drop_last)
    with pytest.warns(NoAmplification, match="once a pass"):
        run = training(loader, steps=None, batch_size=None, epochs=3)
    noise = run.plan["gradients"].noise_multiplier
    assert run.plan.event == Gaussian(noise_multiplier=noise) * 3
    assert "loader's order" in run.guarantee.details
    read: list[int] = []
    for batch in run.epoch():
        read.extend(batch._indices)  # type: ignore[arg-type]
        run.step(batch)
    assert len(read) == len(set(read)) == (90 if drop_last else 100)
    assert (run.steps_made, len(run)) == (batches, 3 * batches)
    trained(run)
    assert run.epsilon_spent == run.guarantee.epsilon


def test_a_broken_loop_goes_on_in_the_same_pass() -> None:
    """To begin anew after a break would read some examples twice in a pass."""
    with pytest.warns(NoAmplification):
        run = training(DataLoader(data(), batch_size=30), steps=None, batch_size=None, epochs=2)
    read: list[int] = []
    while run.steps_made < 4:
        for batch in run:
            read.extend(batch._indices)  # type: ignore[arg-type]
            run.step(batch)
            break
    assert sorted(read) == list(range(100))


def test_loaders_whose_order_may_depend_on_examples_are_refused() -> None:
    """Weights, replacement, several rounds, an order or batches of one's own; add_remove; phases; another size."""
    examples = data()
    weights = WeightedRandomSampler([1.0] * 100, 100)
    loaders = [
        DataLoader(examples, batch_size=10, sampler=weights),
        DataLoader(examples, batch_size=10, sampler=RandomSampler(examples, replacement=True)),
        DataLoader(examples, batch_size=10, sampler=RandomSampler(examples, num_samples=200)),
        DataLoader(examples, batch_size=10, sampler=list(range(100))),
        DataLoader(examples, batch_sampler=[[0, 0, 0]]),
        DataLoader(examples, batch_size=None),
    ]
    for loader in loaders:
        with pytest.raises(InvalidParameter, match="Poisson batches are drawn"):
            training(loader, steps=None, batch_size=None, epochs=1)
    plain = DataLoader(examples, batch_size=10)
    with pytest.raises(NoProvenBound, match="replace_one"):
        training(plain, steps=None, batch_size=None, epochs=1, neighbours="add_remove", records=100)
    with pytest.raises(InvalidParameter, match="neither phases"):
        training(plain, steps=None, batch_size=None, epochs=1, phases=[Phase(), Phase()])
    with pytest.raises(InvalidParameter, match="its own batches"):
        training(plain, steps=None, batch_size=20, epochs=1)
    with pytest.raises(InvalidParameter, match="whole"):
        training(plain, steps=None, batch_size=None, epochs=1.5)


# -- refusals ----------------------------------------------------------------------------------------------------------


class Centred(nn.Module):
    """Subtracts the mean of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.linear(x - x.mean(0, keepdim=True))


class Remembering(nn.Module):
    """Keeps the largest value it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.largest: Any
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.largest = torch.maximum(self.largest, x.abs().max().detach())
        return self.linear(x)


class Sharing(nn.Module):
    """Two layers that share a buffer; one adds to it what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 2)
        seen = torch.zeros(3)
        for layer in (self.first, self.second):
            layer.register_buffer("seen", seen)

    def forward(self, x: Any) -> Any:
        self.second.seen.add_(x.detach().mean(0))  # type: ignore[operator]
        return self.second(self.first(x) + self.first.seen)


def shared_out(model: Any, batch: Any) -> Any:
    return CROSS(model(batch[0]), batch[1]) / len(batch[0])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a loss that is a mean": ({"loss": nn.CrossEntropyLoss()}, "reduction='none'"),
    "a loss that adds up": ({"loss": lambda out, y: CROSS(out, y).sum()}, "one loss for each"),
    "a loss for each number": (
        {"loss": None, "per_example": lambda model, batch: model(batch[0])},
        "one loss for each",
    ),
    "a loss shared out over the batch": ({"loss": None, "per_example": shared_out}, "alone and among others"),
    "no loss": ({"loss": None}, "loss= and per_example="),
    "a loss that raises": ({"loss": lambda out, y: out[:, 7]}, "made-up examples, got IndexError"),
    "batch statistics": ({"model": nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))}, "GroupNorm"),
    "a mean over the batch": ({"model": Centred()}, "own example alone"),
    "a buffer that learns": ({"model": Remembering()}, "'largest', which it changes"),
    "a buffer that two layers share": ({"model": Sharing()}, "seen', which it changes"),
    "a model on no device": ({"model": nn.Linear(3, 2, device="meta")}, "one device"),
    "half precision": ({"model": nn.Linear(3, 2).to(torch.float16)}, "swallow the noise"),
    "nothing to train": ({"model": nn.Linear(3, 2).requires_grad_(False)}, "Unfreeze"),
    "no epsilon": ({"epsilon": 0.0}, "no finite noise"),
    "an infinite epsilon": ({"epsilon": math.inf}, "epsilon"),
    "a delta above 1/n": ({"delta": 0.02}, "below 1/n"),
    "no number of steps": ({"steps": None}, "epochs= and steps="),
    "both numbers of steps": ({"epochs": 3}, "epochs= and steps="),
    "no batch size": ({"batch_size": None}, "batch_size"),
    "a batch of more than all": ({"batch_size": 101}, "batch_size"),
    "a clip of nothing": ({"clip": 0.0}, "clip"),
    "a clip of words": ({"clip": "much"}, "clipping rule"),
    "a decay of one": ({"ema": 1.0}, "ema"),
    "a phase without a step": ({"phases": [Phase(share=1e-6), Phase()]}, "have a step"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_private_is_refused_before_an_example_is_read(case: str) -> None:
    """The words say what to do, and no example was touched."""
    changes, words = REFUSED[case]
    Watched.reads = 0
    changes = {"example": (torch.zeros(3), torch.tensor(0))} | changes
    model = changes.pop("model", None)
    optimizer = None
    if case == "nothing to train":
        optimizer = torch.optim.SGD(nn.Linear(3, 2).parameters(), lr=0.1)
    with pytest.raises(InvalidParameter, match=words):
        training(Watched(*data().tensors), model, optimizer, **changes)
    assert Watched.reads == 0


def test_an_optimiser_of_other_parameters_is_refused() -> None:
    """One that lacks a parameter, holds another model's, needs several gradients a step, or is none."""
    model = nn.Linear(3, 2)
    lacking = torch.optim.SGD([model.weight], lr=0.1)
    both = torch.optim.SGD([*model.parameters(), nn.Parameter(torch.zeros(1))], lr=0.1)
    for optimizer, words in (
        (lacking, "without 'bias'"),
        (both, "only, got others"),
        (torch.optim.SGD(nn.Linear(3, 2).parameters(), lr=0.1), "without 'weight'"),
        (torch.optim.LBFGS(model.parameters()), "LBFGS"),
        ("sgd", "torch.optim.Optimizer"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            training(model=model, optimizer=optimizer)


def test_the_trial_leaves_no_trace() -> None:
    """Weights, buffers and torch's generator are after the set-up as before, also when it is refused."""
    asked: dict[str, Any] = {"loss": CROSS, "epsilon": 1, "delta": 1e-6, "steps": 1, "batch_size": 10}
    for model in (Remembering(), nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))):
        optimizer, examples = torch.optim.SGD(model.parameters(), lr=0.1), data()
        before, state = {k: v.clone() for k, v in model.state_dict().items()}, torch.random.get_rng_state()
        if isinstance(model, Remembering):
            with pytest.raises(InvalidParameter, match="changes"):
                PrivateTraining(model, optimizer, examples, **asked)
        else:
            PrivateTraining(model, optimizer, examples, **asked)
        assert torch.equal(torch.random.get_rng_state(), state)
        assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
        assert all(p.grad is None for p in model.parameters())


def test_dropout_is_no_coupling_and_batches_may_be_dictionaries() -> None:
    """Chance in the model, examples as dictionaries and a collate of one's own are taken."""

    class Dictionaries:
        def __len__(self) -> int:
            return 50

        def __getitem__(self, index: int) -> Any:
            return {"x": torch.full((3,), float(index % 5)), "y": index % 2}

    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    run = training(Dictionaries(), model, loss=None, per_example=lambda m, b: CROSS(m(b["x"]), b["y"]))
    assert trained(run).steps_left == 0
