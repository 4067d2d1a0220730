"""Poisson batches that never exceed a size, so that every step has arrays of one shape."""

from dataclasses import dataclass

from privet._checks import between, whole
from privet.accounting import Event, truncated_poisson
from privet.arrays import IntArray
from privet.errors import InvalidParameter, NoProvenBound
from privet.privacy import Neighbours
from privet.randomness import Random, binomial, choose


@dataclass(frozen=True, kw_only=True, slots=True)
class TruncatedPoisson:
    """As `Poisson`, but if more than `batch` records are drawn, so many of them are kept, at random.

    Its event is that of Poisson batches and a chance, in δ, for the steps in which the cap may act: make `batch` some
    seven standard deviations larger than the expected size, and that chance is nothing beside δ. It rests on a bound on
    the number of records. Where that number is public it is known; under "add_remove" it is private, what a plan has is
    a guess, and `most_records`, a bound that holds whatever is in the table, has to be declared.

    Parameters
    ----------
    sampling_rate : probability that a record is drawn, below 1
    batch : the most that are kept; public
    most_records : a public bound on the number of records, for "add_remove"; a larger table is refused

    Examples
    --------
    >>> from privet.accounting import Gaussian, epsilon
    >>> batches = TruncatedPoisson(sampling_rate=0.01, batch=180)
    >>> run = batches.event(Gaussian(noise_multiplier=1.0), steps=500, records=10_000, neighbours="zero_out")
    >>> f"{epsilon(run, delta=1e-6, neighbours='zero_out'):.4f}"
    '1.5803'
    """

    sampling_rate: float
    batch: int
    most_records: int | None = None

    def __post_init__(self) -> None:
        why = "it is the probability that a record is drawn"
        hint = "Use expected batch size ÷ number of records, both public; for a fixed share, FixedSize."
        rate = between("sampling_rate", self.sampling_rate, 0, 1, closed=(False, False), because=why, use=hint)
        batch = whole("batch", self.batch, because="a step reads whole records", use="Use e.g. 256.")
        object.__setattr__(self, "sampling_rate", rate)
        object.__setattr__(self, "batch", batch)
        if self.most_records is not None:
            most = whole("most_records", self.most_records, because="a table has whole records", use="Use e.g. 10**6.")
            object.__setattr__(self, "most_records", most)

    def indices(self, count: int, step: int, random: Random) -> IntArray | None:
        if self.most_records is not None and count > self.most_records:
            raise InvalidParameter(f"""Expected at most most_records = {self.most_records:,} records, got more: the
                chance that the cap acts would be larger than was priced. Declare a bound that holds.""")
        # A uniform subset of a uniform subset is a uniform subset.
        return choose(random, count, min(binomial(random, count, self.sampling_rate), self.batch))

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        most = records if self.most_records is None else max(records, self.most_records)
        if neighbours == "add_remove":
            if self.most_records is None:
                raise NoProvenBound("""Expected most_records for capped Poisson batches under 'add_remove', got none:
                    how often the cap acts depends on the number of records, which is private there. Pass
                    most_records=..., a public bound on it, or use Poisson.""")
            most = self.most_records
        if self.batch >= most:  # there are not so many others: the cap never acts
            return mechanism.poisson(rate=self.sampling_rate) * steps
        return truncated_poisson(mechanism, rate=self.sampling_rate, batch=self.batch, records=most) * steps

    def batch_size(self, records: int) -> float:
        return self.sampling_rate * records

    def most(self, records: int) -> int | None:
        return min(self.batch, records)
