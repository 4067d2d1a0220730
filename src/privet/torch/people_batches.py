"""Batches of people: all rows of a person are drawn, clipped and left out together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

from privet.arrays import IntArray
from privet.data import person_numbers
from privet.errors import InvalidParameter
from privet.torch.batches import Collate, Examples, Part, form
from privet.torch.gradient_ways import part


@dataclass(frozen=True, repr=False, slots=True)
class Persons:
    """The rows of some people, those of one together, and how many each has."""

    batch: Any
    sizes: Tensor

    @property
    def count(self) -> int:
        return len(self.sizes)

    def halves(self) -> tuple[Part, ...]:
        middle, rows = self.count // 2, int(self.sizes[: self.count // 2].sum())
        if not middle:
            return ()
        first = Persons(part(self.batch, 0, rows), self.sizes[:middle])
        return first, Persons(part(self.batch, rows, int(self.sizes.sum())), self.sizes[middle:])


class PeopleExamples(Examples):
    """As `Examples`, but an index is a person: what is read are all rows of that person.

    Promise: a person is in one part only, with all readable rows, so that one clip bounds them together; what is read
    of one does not depend on any other. Rows of nobody (a missing label) are never read; rows of another shape than the
    public example's are left out.

    Parameters
    ----------
    groups : one label for each row: whose it is; private

    Examples
    --------
    >>> people = PeopleExamples((torch.arange(4.0),), groups=["bob", "ann", "bob", None])
    >>> found = people.read([0, 1])[0]
    >>> len(people), found.batch, found.sizes
    (2, (tensor([1., 0., 2.]),), tensor([1, 2]))
    """

    def __init__(self, dataset: Any, *, groups: Any, collate: Collate | None = None) -> None:
        super().__init__(dataset, collate=collate)
        numbers = person_numbers(groups)
        if len(numbers) != len(self):
            raise InvalidParameter("""Expected one label of groups for each example, got another number: rows would be
                taken for other people's. Pass as many labels as the dataset has examples.""")
        order = np.argsort(numbers, kind="stable")
        order = order[np.searchsorted(numbers[order], 0) :]
        self._rows = np.split(order, np.cumsum(np.bincount(numbers[order]))[:-1]) if len(order) else []
        self._count = len(self._rows)
        self._like: Any = None

    def read(self, indices: Sequence[int] | IntArray | None) -> list[Part]:
        """All rows of the people at `indices`; rows that fail are left out, and people without any."""
        people = range(self._count) if indices is None else [int(i) for i in indices]
        rows = [self._rows[person] for person in people]
        if not rows:
            return []
        if self._tensors is not None:
            sizes = torch.tensor([len(mine) for mine in rows])
            places = np.concatenate(rows)
            found = torch.from_numpy(places if self._map is None else self._map[places])
            return [Persons(tuple(t.index_select(0, found.to(t.device)) for t in self._tensors), sizes)]
        read = [[e for i in mine.tolist() for e in self._example(i) if self._fits(e)] for mine in rows]
        return list(self._together([mine for mine in read if mine]))

    def first(self) -> Any:
        """One example that can be read, for its shapes; they are public."""
        people, self._count = self._count, sum(map(len, self._rows))
        try:
            return super().first()
        finally:
            self._count = people

    def of_two(self, example: Any) -> Any:
        """What two such examples are put together to; rows of other shapes are left out from now on."""
        self._like = None if self.collate is not None else form(example)
        return super().of_two(example)

    def _fits(self, example: Any) -> bool:
        try:
            return self._like is None or form(example) == self._like
        except Exception:  # noqa: BLE001  # a mapping of one's own may raise anything
            return False

    def _together(self, people: list[list[Any]]) -> Iterator[Part]:
        """All in one batch, or each person by itself where that fails; who fails alone is left out."""
        if not people:
            return
        try:
            batch = (self.collate or default_collate)([example for mine in people for example in mine])
        except Exception:  # noqa: BLE001  # whatever it is, it may be one person's fault
            if len(people) > 1:
                for mine in people:
                    yield from self._together([mine])
            return
        yield Persons(batch, torch.tensor([len(mine) for mine in people]))
