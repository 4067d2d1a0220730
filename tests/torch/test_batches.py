"""Reading examples: what is wrong with one leaves that one out, and touches no other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import IterableDataset, Subset, TensorDataset  # noqa: E402

from privet.errors import InvalidParameter  # noqa: E402
from privet.torch import Examples  # noqa: E402
from privet.torch.private_gradient import as_parts  # noqa: E402


class Listed:
    def __init__(self, *examples: Any) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.examples[index], Exception):
            raise self.examples[index]
        return self.examples[index]


def pair(value: float, size: int = 2) -> tuple[Any, int]:
    return torch.full((size,), value), int(value)


def firsts(parts: list[Any]) -> list[list[float]]:
    return [part.batch[0][:, 0].tolist() for part in parts]


def test_an_example_that_fails_takes_no_other_with_it() -> None:
    """Whatever is raised, by whichever example, the others are read as if it were not there."""
    bad = [ValueError("secret"), KeyError(), RuntimeError(), OSError(), StopIteration(), AssertionError()]
    dataset = Listed(pair(1), *bad, pair(2))
    assert firsts(Examples(dataset).read(range(8))) == [[1.0, 2.0]]
    assert Examples(dataset).read([1, 2, 3]) == []


def test_a_ragged_example_stands_alone() -> None:
    """Shapes, types and structures that differ are put into parts of their own, never dropped for another's sake."""
    odd = [pair(7, size=3), (torch.zeros(2, dtype=torch.float64), 0), {"x": torch.ones(2)}, [torch.ones(2), 1]]
    parts = Examples(Listed(pair(1), *odd, pair(2))).read(None)
    assert firsts(parts[:2]) == [[1.0, 2.0], [7.0]]
    assert [part.count for part in parts] == [2, 1, 1, 1, 1]


def test_what_nobody_can_put_together_is_left_out() -> None:
    """Objects, arrays of strings and numbers beyond 64 bits add no part and raise nothing."""
    odd = [object(), np.array(["a"]), (torch.zeros(2), 10**30), None]
    assert firsts(Examples(Listed(pair(1), *odd, pair(2))).read(None)) == [[1.0, 2.0]]


def test_a_collate_function_that_raises_costs_one_example_only() -> None:
    """With a collate of one's own the batch is tried whole, then one by one."""

    def collate(examples: list[Any]) -> Any:
        if any(label == 3 for _, label in examples):
            raise ValueError("3")
        return (torch.stack([x for x, _ in examples]),)

    parts = Examples(Listed(pair(1), pair(3), pair(2)), collate=collate).read(None)
    assert sorted(firsts(parts)) == [[1.0], [2.0]]


@pytest.mark.parametrize("places", [[], [3], [0, 4, 5], None])
def test_tensors_are_read_as_their_rows_would_be(places: list[int] | None) -> None:
    """The fast way and the slow way read the same; of tensors, arrays, and subsets of subsets."""
    x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    whole = TensorDataset(x, y)
    slow = Examples(Listed(*[whole[i] for i in range(6)])).read(places)
    nested = Subset(Subset(TensorDataset(x.flip(0), y.flip(0)), [0, 1, 2, 3, 4, 5]), [5, 4, 3, 2, 1, 0])
    for fast in (whole, (x, y), (x.numpy(), y.numpy()), nested):
        found = Examples(fast).read(places)
        assert [p.count for p in found] == [p.count for p in slow]
        for one, other in zip(found, slow, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(one.batch, other.batch, strict=True))


def test_halves_are_the_same_examples() -> None:
    """A part falls into two that together are it; one example falls into nothing."""
    x = torch.arange(10.0).reshape(5, 2)
    for part in (
        Examples((x,)).read(None)[0],
        Examples(Listed(*[(row,) for row in x])).read(None)[0],
        as_parts({"x": x})[0],
    ):
        halves = part.halves()
        assert [half.count for half in halves] == [2, 3]
        rows = [next(iter(h.batch.values())) if isinstance(h.batch, dict) else h.batch[0] for h in halves]
        assert torch.equal(torch.cat(rows), x)
        assert part.halves()[0].halves()[0].halves() == ()


def test_data_of_unknown_length_are_refused() -> None:
    """No len, no rate: streams and datasets without a length are refused, and rows that do not pair."""

    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Any:
            yield 1

    class Endless:
        def __getitem__(self, index: int) -> int:
            return index

    class Unknown(Endless):
        def __len__(self) -> int:
            raise TypeError

    for dataset in (Stream(), Endless(), Unknown(), iter([1])):
        with pytest.raises(InvalidParameter, match=r"known length|with len"):
            Examples(dataset)
    with pytest.raises(InvalidParameter, match="as many rows"):
        Examples((torch.zeros(3, 2), torch.zeros(4)))


def test_shapes_are_known_without_values() -> None:
    """The first example of tensors is zeros; of others, the first that can be read; or a made-up one is wanted."""
    assert torch.equal(Examples((torch.ones(3, 2),)).first()[0], torch.zeros(2))
    assert Examples(Listed(ValueError(), pair(2))).first()[1] == 2
    with pytest.raises(InvalidParameter, match="example="):
        Examples(Listed(ValueError())).first()


def test_nothing_private_is_printed() -> None:
    """The repr of examples, and of their parts, shows no value."""
    examples = Examples((torch.full((3, 1), 77.0),))
    shown = repr(examples) + repr(examples.read(None)[0])
    assert "77" not in re.sub(r"0x[0-9a-f]+", "", shown)  # nor is an address a value
