"""Train privately under Lightning: the run is the data loader, and its step is the training step.

    pip install "privet[torch]" lightning
    python examples/lightning_training.py

Lightning keeps what it is good at (callbacks, logging, checkpoints of weights); batches, clipping, noise and the
optimiser's step stay with the run, which is what the guarantee is about. Nothing that is computed on private examples,
such as a training loss, may be logged.
"""

from typing import Any

import lightning
import torch
from torch import nn

from privet.torch import PrivateTraining


class Digits(lightning.LightningModule):  # type: ignore[misc]  # Lightning ships no types here
    """A network whose steps a private run makes."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False  # the run steps
        self.network = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
        self.run: PrivateTraining | None = None

    def configure_optimizers(self) -> None:
        """None: the run has its own."""

    def training_step(self, batch: Any, index: int) -> None:
        """One step of the run, on the batch that it drew."""
        if self.run is not None:
            self.run.step(batch)


def main() -> PrivateTraining:
    """Train on the digits of scikit-learn, and print the guarantee and the accuracy on rows that were held out."""
    from sklearn.datasets import load_digits

    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x, y = x.float() / 16, y.long()
    torch.manual_seed(0)
    module = Digits()
    module.run = PrivateTraining(
        module.network,
        torch.optim.Adam(module.network.parameters(), lr=0.02),
        torch.utils.data.TensorDataset(x[:1400], y[:1400]),
        loss=nn.CrossEntropyLoss(reduction="none"),
        epsilon=8,
        delta=1e-5,
        epochs=20,
        batch_size=140,
    )
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", **quiet)  # one pass over the run is the whole run
    trainer.fit(module, train_dataloaders=module.run)
    with torch.no_grad():
        right = (module.network(x[1400:]).argmax(1) == y[1400:]).double().mean()
    print(f"accuracy {right:.3f} on {len(x) - 1400} held-out rows after {module.run.steps_made} steps")
    print(module.run.guarantee)
    return module.run


if __name__ == "__main__":
    main()
