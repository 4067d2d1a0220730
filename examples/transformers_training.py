"""Fine-tune a Hugging Face model privately: the model, its configuration and its state dict stay as they are.

    pip install "privet[torch]" transformers
    python examples/transformers_training.py

The model is tiny and built in code; `from_pretrained` gives one of the same class. Only its head and its last layer are
trained here: all else is frozen, which costs nothing and adds no noise.
"""

from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification

from privet.torch import PrivateTraining


class Reviews(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Made-up texts of 12 words; a text is positive if its word 7 comes more than once."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.words = torch.randint(1, 12, (count, 12), generator=generator)
        self.labels = ((self.words == 7).sum(1) > 1).long()

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        words = self.words[place]
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": self.labels[place]}


def losses(model: torch.nn.Module, batch: Any) -> torch.Tensor:
    """One loss for each text: the library's own `outputs.loss` is a mean, and could not be clipped text by text."""
    labels = batch["labels"]
    outputs = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
    return cross_entropy(outputs.logits, labels, reduction="none")


def main() -> PrivateTraining:
    """Train, and print the guarantee."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertForSequenceClassification(BertConfig(vocab_size=12, max_position_embeddings=12, num_labels=2, **sizes))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("layer.1" in name or "pooler" in name or "classifier" in name)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    run = PrivateTraining(
        model,
        torch.optim.AdamW(trained, lr=2e-3),
        Reviews(2000),
        per_example=losses,
        epsilon=8,
        delta=1e-5,
        epochs=2,
        batch_size=200,
    )
    for batch in run:
        run.step(batch)
    print(f"{sum(p.numel() for p in trained):,} of {sum(p.numel() for p in model.parameters()):,} parameters trained")
    print(run.guarantee)
    return run


if __name__ == "__main__":
    main()
