from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import toeplitz

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

from privet import Budget  # noqa: E402
from privet.errors import InvalidParameter, NoProvenBound  # noqa: E402
from privet.noise import banded_inverse_square_root, banded_square_root, correlated_mechanism  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.sampling import Cyclic, CyclicPoisson, Poisson  # noqa: E402
from privet.torch import LatticeNoise, Phase, PrivateTraining, training_plan  # noqa: E402
from privet.torch.network_checkpoint import Checkpoint  # noqa: E402

ZEROS = torch.zeros(100, 3), torch.zeros(100, dtype=torch.long)


def zero_gradients(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """A loss whose gradient is nothing, so that what is written is noise alone."""
    found: Tensor = model(batch[0]).sum(1) * 0.0
    return found


def gradient(run: PrivateTraining) -> Tensor:
    found: Tensor = torch.cat([p.grad.reshape(-1) for p in run.model.parameters() if p.grad is not None]) * 10
    return found


def started(**settings: object) -> PrivateTraining:
    model = nn.Linear(3, 40)
    given = {"per_example": zero_gradients, "epsilon": 2, "delta": 1e-6, "steps": 20, "batch_size": 10, **settings}
    return PrivateTraining(model, torch.optim.SGD(model.parameters(), lr=1.0), ZEROS, **given)  # type: ignore[arg-type]


def test_noise_of_a_run_is_correlated_as_planned() -> None:
    """Consecutive steps cancel in part, so that a step is noisier than planned, and the sum of all steps less."""
    strategy = banded_inverse_square_root(5)
    run = started(correlation=strategy, sampling=Cyclic(batch=10), random=fixed_seed_invalidates_guarantee(1))
    written = []
    for batch in run:
        run.step(batch)
        written.append(gradient(run))
    steps = torch.stack(written).double()
    stddev = run.plan["gradients"].noise_stddev("zero_out")
    neighbours = (steps[:-1] * steps[1:]).mean() / steps.square().mean()
    assert -0.5 < float(neighbours) < -0.2  # −0.31 for five bands; independent noise has 0 ± 0.02
    assert steps.square().mean().sqrt() > stddev  # each single step is noisier; their sum is not
    independent = started(sampling=Cyclic(batch=10), random=fixed_seed_invalidates_guarantee(1))
    total = []
    for batch in independent:
        independent.step(batch)
        total.append(gradient(independent))
    assert steps.sum(0).std() < 0.7 * torch.stack(total).sum(0).std()


def test_price_is_that_of_all_steps_together() -> None:
    """The guarantee meets the budget, and a part of the run is priced as one release of so many steps."""
    run = started(correlation=banded_square_root(4), sampling=CyclicPoisson(sampling_rate=0.4, groups=4))
    assert run.guarantee.epsilon <= 2
    run.step(next(iter(run)))
    assert 0 < run.epsilon_spent <= run.guarantee.epsilon


@pytest.mark.parametrize(
    "settings",
    [
        {"sampling": Poisson(sampling_rate=0.1)},
        {"sampling": Cyclic(batch=10), "phases": [Phase(), Phase(noise=2.0)]},
        {"sampling": CyclicPoisson(sampling_rate=0.2, groups=2)},
    ],
    ids=["plain Poisson", "phases", "too few groups"],
)
def test_what_has_no_proof_is_refused(settings: dict[str, object]) -> None:
    """Correlated noise is planned only with batches for which its price is proven."""
    with pytest.raises(Exception, match="Expected"):
        training_plan(
            records=100,
            batch_size=10,
            steps=20,
            budget=Budget(epsilon=2, delta=1e-6),
            neighbours="zero_out",
            correlation=banded_square_root(4),
            **settings,  # type: ignore[arg-type]
        )


def test_exact_noise_has_no_correlated_form() -> None:
    """LatticeNoise with a correlation is refused before an example is drawn."""
    with pytest.raises(InvalidParameter, match="FloatNoise"):
        started(correlation=banded_inverse_square_root(3), sampling=Cyclic(batch=10), noise=LatticeNoise)


def interrupted(folder: Path, x: Tensor, cut: int | None, **settings: Any) -> list[Tensor]:
    """The noisy sums of a run whose weights stand still, resumed before step `cut` from a checkpoint of step 3."""
    given: dict[str, Any] = {
        "epsilon": 2,
        "delta": 1e-6,
        "steps": 20,
        "batch_size": 10,
        "clip": 0.7,
        "sampling": Cyclic(batch=10),
    }
    data, found = (x, torch.zeros(100, dtype=torch.long)), []
    torch.manual_seed(0)
    model = nn.Linear(3, 4)
    still = torch.optim.SGD(model.parameters(), lr=0.0)
    asked: dict[str, Any] = {"loss": nn.CrossEntropyLoss(reduction="none"), "journal": folder / "steps"}
    run = PrivateTraining(
        model,
        still,
        data,
        random=fixed_seed_invalidates_guarantee(1),
        **asked,
        **given | settings,
    )
    for batch in run:
        run.step(batch)
        found.append(gradient(run))
        if run.steps_made == 3:
            run.save(folder / "last.pt")
        if run.steps_made == cut:
            random = fixed_seed_invalidates_guarantee(2)
            run = PrivateTraining.resume(folder / "last.pt", model, still, data, random=random, **asked)
            assert run.plan.guarantee().epsilon <= 2
            break
    for batch in run:
        run.step(batch)
        found.append(gradient(run))
    return found


@pytest.mark.parametrize("cut", [5, 10, 17])
def test_a_run_resumed_on_a_neighbour_moves_as_planned(cut: int, tmp_path: Path) -> None:
    """One example shows at its own steps alone, before and after the cut, within what the whole run is priced for."""
    strategy = banded_inverse_square_root(5)
    x = torch.randn(100, 3, generator=torch.Generator().manual_seed(3))
    other = x.clone()
    other[47] = float("nan")
    sums = []
    for name, rows in (("one", x), ("other", other)):
        (tmp_path / name).mkdir()
        sums.append(torch.stack(interrupted(tmp_path / name, rows, cut, correlation=strategy)))
    moved = (sums[0] - sums[1]).double()
    assert [step for step in range(20) if float(moved[step].norm()) > 1e-3] == [4, 14]
    assert float(moved.norm(dim=1).max()) <= 0.7 * (1 + 1e-4)
    coefficients = strategy.sum_coefficients(20)
    matrix = np.tril(toeplitz(coefficients))
    matrix[cut:, :cut] = 0
    priced = correlated_mechanism(strategy, noise_multiplier=1.0, steps=20, participations=2, separation=10)
    assert np.linalg.norm(matrix @ moved.numpy()) <= 0.7 * (1 + 1e-4) / priced.noise_multiplier  # type: ignore[attr-defined]


def test_noise_after_a_resume_holds_nothing_of_the_noise_before(tmp_path: Path) -> None:
    """The first step after the cut has the noise of a first step; the checkpoint holds weights and counts alone."""
    strategy = banded_inverse_square_root(5)
    found = interrupted(tmp_path, torch.full((100, 3), float("nan")), 7, correlation=strategy)
    kept = Checkpoint.load(tmp_path / "last.pt")
    assert set(kept.model) == {"weight", "bias"}
    assert (dict(kept.extra), dict(kept.clips), kept.average) == ({}, {}, None)
    torch.manual_seed(0)  # the same seed from its start gives the noise of steps 7, 8, …: no past is in it
    model = nn.Linear(3, 4)
    asked: dict[str, Any] = {
        "loss": nn.CrossEntropyLoss(reduction="none"),
        "epsilon": 2,
        "delta": 1e-6,
        "steps": 20,
        "batch_size": 10,
    }
    x = torch.full((100, 3), float("nan")), torch.zeros(100, dtype=torch.long)
    fresh = PrivateTraining(
        model,
        torch.optim.SGD(model.parameters(), lr=0.0),
        x,
        clip=0.7,
        sampling=Cyclic(batch=10),
        correlation=strategy,
        random=fixed_seed_invalidates_guarantee(2),
        **asked,
    )
    for batch, seen in zip(fresh, found[7:], strict=False):
        fresh.step(batch)
        torch.testing.assert_close(gradient(fresh), seen)


@pytest.mark.parametrize("sampling", [Cyclic(batch=10), CyclicPoisson(sampling_rate=0.4, groups=4)], ids=repr)
def test_batches_by_place_are_refused_for_people(sampling: object) -> None:
    """Somebody who is gone moves all later people to other places, and so to other batches."""
    with pytest.raises(NoProvenBound, match="people drawn at random"):
        started(groups=[i // 2 for i in range(100)], sampling=sampling, batch_size=10)
