"""Reading drawn examples: whatever is wrong with one leaves that one out, and touches no other.

An example that cannot be read, or that fits no other, must neither stop a run nor take its neighbours with it: an error
would tell of it, and a batch that is lost for one example's sake moves by more than a clip. So examples are read one by
one, and those of one shape are put together; what fits nothing stands alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset, TensorDataset, default_collate

from privet.arrays import IntArray
from privet.errors import InvalidParameter

Collate = Callable[[list[Any]], Any]


class Part(Protocol):
    """Some examples of a batch, put together. Private."""

    @property
    def batch(self) -> Any:
        """What `per_example` takes."""

    @property
    def count(self) -> int:
        """How many examples."""

    def halves(self) -> tuple["Part", ...]:
        """The same examples in two parts; none if there is one example only."""


@dataclass(frozen=True, repr=False, slots=True)
class Rows:
    """Rows of tensors: the examples of a `TensorDataset`, of tensors or of arrays."""

    batch: tuple[Tensor, ...]

    @property
    def count(self) -> int:
        return len(self.batch[0])

    def halves(self) -> tuple[Part, ...]:
        middle = self.count // 2
        return (Rows(tuple(t[:middle] for t in self.batch)), Rows(tuple(t[middle:] for t in self.batch))) * (middle > 0)


@dataclass(frozen=True, repr=False, slots=True)
class Collated:
    """Examples read one by one, and what `collate` made of them."""

    examples: list[Any]
    batch: Any
    collate: Collate

    @property
    def count(self) -> int:
        return len(self.examples)

    def halves(self) -> tuple[Part, ...]:
        middle = self.count // 2
        pieces = (self.examples[:middle], self.examples[middle:]) if middle else ()
        return tuple(part for piece in pieces for part in put_together(piece, self.collate))


class Examples:
    """A map-style dataset, read by index; an example that fails is left out, silently.

    Promise: what is made of one example does not depend on any other; no exception of a dataset or a collate function
    comes through. Tensors (a `TensorDataset`, a `Subset` of one, a tuple of tensors or arrays) are indexed at once.

    Parameters
    ----------
    dataset : has `len` and `[index]`, or is a tuple of tensors or arrays, the example first
    collate : from a list of examples, a batch; it must treat each by itself. None for `default_collate`

    Examples
    --------
    >>> class Broken:
    ...     def __len__(self): return 4
    ...     def __getitem__(self, index): return torch.tensor([1.0 / (index - 2)]), index
    >>> [part.batch for part in Examples(Broken()).read([0, 2, 3])]
    [[tensor([[-0.5000],
            [ 1.0000]]), tensor([0, 3])]]
    """

    def __init__(self, dataset: Any, *, collate: Collate | None = None) -> None:
        self._dataset, self.collate = dataset, collate
        self._tensors, self._map = (None, None) if collate is not None else as_tensors(dataset)
        if self._tensors is None and not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise InvalidParameter(f"""Expected a dataset with len() and [index], got {type(dataset).__name__}: batches
                are drawn by index, and their rate follows from a known number. Pass a map-style dataset; read a stream
                into one first.""")
        try:
            self._count = len(dataset) if self._tensors is None or self._map is not None else len(self._tensors[0])
        except (TypeError, NotImplementedError):
            raise InvalidParameter(f"""Expected a dataset of known length, got {type(dataset).__name__}, whose len()
                fails: the sampling rate follows from it. Give it a __len__.""") from None

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<examples of {type(self._dataset).__name__}>"

    def read(self, indices: Sequence[int] | IntArray | None) -> list[Part]:
        """The examples at `indices`, all of them if None, in parts that fit together; those that fail are left out."""
        wanted = np.arange(self._count) if indices is None else np.asarray(indices, dtype=np.int64)
        if self._tensors is not None:
            if not len(wanted):
                return []
            rows = torch.from_numpy(wanted if self._map is None else self._map[wanted])
            return [Rows(tuple(tensor.index_select(0, rows.to(tensor.device)) for tensor in self._tensors))]
        return list(put_together([e for i in wanted.tolist() for e in self._example(i)], self.collate))

    def first(self) -> Any:
        """One example that can be read, for its shapes; they are public."""
        if self._tensors is not None:
            return tuple(torch.zeros(t.shape[1:], dtype=t.dtype, device=t.device) for t in self._tensors)
        for place in range(min(self._count, 100)):
            if found := self._example(place):
                return found[0]
        raise InvalidParameter("""Expected shapes of an example to be known, got a dataset whose first ones cannot be
            read: model and loss could not be tried before data is touched. Pass example=..., a made-up one.""")

    def of_two(self, example: Any) -> Any:
        """What two such examples are put together to, for its shapes."""
        if self._tensors is not None:
            return tuple(torch.stack([torch.as_tensor(leaf)] * 2) for leaf in example)
        try:
            return (self.collate or default_collate)([example, example])
        except Exception as error:  # noqa: BLE001  # code of a user
            raise InvalidParameter(f"""Expected examples that can be put together, got {type(error).__name__} for two
                of one shape: nothing could be trained on. Pass collate=..., or example=... of the right
                structure.""") from None

    def _example(self, index: int) -> list[Any]:
        try:
            return [self._dataset[index]]
        except Exception:  # noqa: BLE001  # a dataset may raise anything; it would tell of the example
            return []


def as_tensors(dataset: Any) -> tuple[tuple[Tensor, ...] | None, IntArray | None]:
    """The tensors that a dataset is made of, with the places of a subset; None where it is none of tensors."""
    if type(dataset) is Subset:
        tensors, inner = as_tensors(dataset.dataset)
        places = np.asarray(dataset.indices, dtype=np.int64)
        return tensors, places if inner is None else inner[places]
    if type(dataset) is TensorDataset:
        return tuple(dataset.tensors), None
    if isinstance(dataset, tuple | list) and dataset and all(isinstance(t, Tensor | np.ndarray) for t in dataset):
        tensors = tuple(torch.as_tensor(t) for t in dataset)
        if len({t.shape[:1] for t in tensors}) != 1 or not tensors[0].dim():
            raise InvalidParameter("""Expected tensors with as many rows each, got different numbers: examples and
                labels would be paired wrongly. Pass (features, labels), the example first.""")
        return tensors, None
    return None, None


def put_together(examples: list[Any], collate: Collate | None) -> Iterator[Part]:
    """Batches of examples that fit together; what does not even fit alone is left out."""
    if collate is not None:
        yield from _collated(examples, collate)
        return
    alike: dict[Any, list[Any]] = {}
    for example in examples:
        try:
            alike.setdefault(form(example), []).append(example)
        except Exception:  # noqa: BLE001, S112  # a mapping of one's own may raise anything; it is left out
            continue
    for group in alike.values():
        yield from _collated(group, default_collate)


def _collated(examples: list[Any], collate: Collate) -> Iterator[Part]:
    if not examples:
        return
    try:
        batch = collate(examples)
    except Exception:  # noqa: BLE001  # whatever it is, it may be one example's fault
        if len(examples) > 1:  # then each by itself: who fits alone is not left out for another's sake
            for example in examples:
                yield from _collated([example], collate)
        return
    yield Collated(examples, batch, collate)


def form(example: Any) -> Any:
    """Types and shapes of an example: what decides with which others it is put together.

    Examples
    --------
    >>> form((torch.zeros(3), 1)) == form((torch.ones(3), 2)), form((torch.zeros(3), 1)) == form((torch.zeros(4), 1))
    (True, False)
    """
    if isinstance(example, Tensor | np.ndarray):
        return (type(example).__name__, tuple(example.shape), str(example.dtype), str(getattr(example, "device", "")))
    if isinstance(example, Mapping):
        return (type(example).__name__, tuple((str(key), form(value)) for key, value in sorted_items(example)))
    if isinstance(example, tuple | list):
        return (type(example).__name__, tuple(form(value) for value in example))
    return type(example).__name__


def sorted_items(example: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Items in the order of their keys' names."""
    return sorted(example.items(), key=lambda item: str(item[0]))
