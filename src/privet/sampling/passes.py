"""Batches that somebody else draws, each record at most once a pass: no amplification is claimed for them."""

from dataclasses import dataclass

from privet._checks import whole
from privet.accounting import Event
from privet.arrays import IntArray
from privet.errors import InvalidParameter, NoProvenBound
from privet.privacy import Neighbours
from privet.randomness import Random


@dataclass(frozen=True, kw_only=True, slots=True)
class Passes:
    """A pass is `batches` batches of about `batch` records, drawn elsewhere; each record is in at most one of them.

    Promise: a record is exposed to ⌈steps ÷ batches⌉ releases, whichever batch it is in; steps that do not read it cost
    it nothing, and no luck in the order is relied on: it may be known. The order must not depend on the records, and
    the number of records is public; "add_remove" is refused.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> Passes(batch=10, batches=10).event(Gaussian(noise_multiplier=4.0), steps=25, records=100, neighbours="zero_out")
    Gaussian(noise_multiplier=4.0) * 3
    """

    batch: int
    batches: int

    def __post_init__(self) -> None:
        for name in ("batch", "batches"):
            because = "a pass has whole batches of whole records"
            object.__setattr__(self, name, whole(name, getattr(self, name), because=because, use="Use e.g. 256."))

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        raise InvalidParameter("""Expected batches that somebody else draws, got a request to draw one: who reads it
            would not be whom the plan is for. Use Poisson(sampling_rate=...).""")

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        if neighbours == "add_remove":
            raise NoProvenBound("""Expected 'replace_one' or 'zero_out' for batches that somebody else draws, got
                'add_remove': a record that joins moves all later ones to other batches. Let Poisson batches be drawn,
                or make the number of records public.""")
        return mechanism * -(-steps // self.batches)

    def batch_size(self, records: int) -> float:
        return float(min(self.batch, records))

    def most(self, records: int) -> int | None:
        return min(self.batch, records)
