from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

from privet import Budget  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.noise import banded_inverse_square_root, banded_square_root  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.sampling import Cyclic, CyclicPoisson, Poisson  # noqa: E402
from privet.torch import LatticeNoise, Phase, PrivateTraining, training_plan  # noqa: E402

ZEROS = torch.zeros(100, 3), torch.zeros(100, dtype=torch.long)


def zero_gradients(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """A loss whose gradient is nothing, so that what is written is noise alone."""
    found: Tensor = model(batch[0]).sum(1) * 0.0
    return found


def gradient(run: PrivateTraining) -> Tensor:
    return torch.cat([p.grad.reshape(-1) for p in run.model.parameters() if p.grad is not None]) * 10


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
    """LatticeNoise with a correlation is refused before noise is written."""
    run = started(correlation=banded_inverse_square_root(3), sampling=Cyclic(batch=10), noise=LatticeNoise)
    with pytest.raises(InvalidParameter, match="FloatNoise"):
        run.step(next(iter(run)))
