"""Where batches come from: drawn here, or in the order of a `DataLoader`, which is worth no amplification."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler

from privet.arrays import IntArray
from privet.errors import InvalidParameter
from privet.plan import Plan
from privet.privacy import Unit
from privet.sampling import Passes
from privet.torch.batches import Collate, Examples, Part
from privet.torch.people_batches import PeopleExamples
from privet.torch.private_gradient import PrivateGradient

APART = "collate, user-supplied code, treats each example by itself"
ORDER = "the loader's order does not depend on the examples, and their number is public"


class LoaderBatches:
    """The order of a `DataLoader`, whose examples are read here, one by one, as any others are.

    Promise: within a pass an index is read at most once, whatever the loader says. Only orders that cannot depend on
    the examples are taken: by place, or shuffled. Its workers and its pinned memory are not used.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import TensorDataset
    >>> batches = LoaderBatches(DataLoader(TensorDataset(torch.zeros(10, 2)), batch_size=4, drop_last=True))
    >>> batches.sampling, [len(indices) for indices in batches]
    (Passes(batch=4, batches=2), [4, 4])
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        drawn = loader.batch_sampler
        if isinstance(loader.dataset, IterableDataset) or type(drawn) is not BatchSampler:
            raise InvalidParameter("""Expected a DataLoader of a map-style dataset, with batch_size=..., got a stream or
                a batch sampler of its own: how often it reads an example is not known. Pass the dataset itself, and
                Poisson batches are drawn from it.""")
        order: Any = drawn.sampler
        plain = type(order) is SequentialSampler or (
            type(order) is RandomSampler and not order.replacement and order.num_samples == len(order.data_source)
        )
        if not plain:
            raise InvalidParameter(f"""Expected a DataLoader in order, or shuffled, got {type(order).__name__}: weights
                and orders of one's own may depend on the examples, or read one more than once. Pass the dataset itself,
                and Poisson batches are drawn from it.""")
        self._drawn = drawn
        self.sampling = Passes(batch=drawn.batch_size, batches=max(1, len(drawn)))
        own = loader.collate_fn
        collate: Collate | None = None if getattr(own, "__module__", "").startswith("torch.utils.data") else own
        self.examples = Examples(loader.dataset, collate=collate)

    def __iter__(self) -> Iterator[list[int]]:
        """One pass: the indices of each batch, none twice."""
        seen: set[int] = set()
        for indices in self._drawn:
            fresh = [int(i) for i in dict.fromkeys(indices) if i not in seen]
            seen.update(fresh)
            yield fresh


class DrawnBatch:
    """The examples of one step, read when they are first asked for. Private: only the step that follows is not."""

    def __init__(self, examples: Examples, indices: Sequence[int] | IntArray | None) -> None:
        self._examples, self._indices = examples, indices
        self._parts: list[Part] | None = None

    @property
    def parts(self) -> list[Part]:
        """The examples, those of one shape together; none for an empty batch."""
        if self._parts is None:
            self._parts = self._examples.read(self._indices)
        return self._parts

    def __repr__(self) -> str:
        return "<batch, private>"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where examples come from: the dataset, and the loader that orders it, if there is one."""

    examples: Examples
    loader: LoaderBatches | None

    @classmethod
    def of(cls, dataset: Any, collate: Collate | None, groups: Any = None) -> "Source":
        """That of a dataset or of a `DataLoader`; with `groups`, of people."""
        if groups is not None:
            if isinstance(dataset, DataLoader):
                raise InvalidParameter("""Expected a dataset with groups=..., got a DataLoader: it would read a person's
                    rows in several batches of a pass. Pass the dataset itself.""")
            return cls(examples=PeopleExamples(dataset, groups=groups, collate=collate), loader=None)
        if isinstance(dataset, DataLoader):
            loader = LoaderBatches(dataset)
            return cls(examples=loader.examples, loader=loader)
        return cls(examples=Examples(dataset, collate=collate), loader=None)

    @property
    def unit(self) -> Unit:
        """Whom a run protects."""
        return "person" if isinstance(self.examples, PeopleExamples) else "record"

    @property
    def assumed(self) -> tuple[str, ...]:
        """What is assumed of how examples are read."""
        return ((ORDER,) if self.loader else ()) + ((APART,) if self.examples.collate else ())

    @property
    def batches(self) -> int:
        """The batches of a pass of the loader; 0 where there is none."""
        return 0 if self.loader is None else self.loader.sampling.batches

    def order(self) -> Iterator[list[int]]:
        """The batches of the loader, pass after pass, without end; none where there is no loader."""
        while self.loader is not None:
            yield from self.loader

    def draw(self, private: PrivateGradient, order: Iterator[list[int]]) -> DrawnBatch:
        """Charge a step and draw its batch."""
        if self.loader is None:
            return DrawnBatch(self.examples, private.draw(len(self.examples)))
        private.draw_elsewhere()
        return DrawnBatch(self.examples, next(order, []))

    def next_pass(self, made: int, plan: Plan) -> int:
        """Steps that count as made when a run is resumed: a loader begins a new pass, and the old one counts whole."""
        total = sum(release.times for release in plan.releases)
        if self.loader is None:
            return min(made, total)
        batches = self.loader.sampling.batches
        return min(-(-made // batches) * batches, total)
