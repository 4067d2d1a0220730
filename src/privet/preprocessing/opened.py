"""What a schema is learnt from: columns that were read, and whose rows they are. Private."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from privet.arrays import IntArray
from privet.data.cells import Names, Numbers
from privet.data.floats import columns_at
from privet.plan import Meter
from privet.preprocessing.categories import NameFinder


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Opened:
    """Columns that were read, the names met in them, and whose rows they are; private."""

    columns: dict[str, NDArray[Any]]
    names: dict[str, Names]
    people: Any

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))

    def numbers(self, names: Sequence[str], places: IntArray | None) -> list[Any]:
        """The columns of these names, at some places; missing is what is no number."""
        values = [self.columns[name] for name in names]
        return [Numbers().read(each) for each in values] if places is None else list(columns_at(values, places))

    def learnt_names(self, finder: NameFinder, places: IntArray | None, meter: Meter) -> dict[str, Any]:
        """The names that a finder shows, of the records at some places."""
        found = {name: self.columns[name] for name in finder.columns}
        return finder.run(found if places is None else {n: c[places] for n, c in found.items()}, self.names, meter)
