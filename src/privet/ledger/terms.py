"""What an account was opened for: its budget, relation, unit and rule of adding up."""

from dataclasses import dataclass

from privet.errors import InvalidParameter
from privet.privacy import Budget, Neighbours, Unit, check_neighbours, check_unit

FILTERS = {
    "gaussian": "Gaussian DP, adaptively composed, Smith and Thakurta 2022",
    "renyi": "Rényi filter, Feldman and Zrnic 2021, delta shared among its orders",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What an account was opened for."""

    budget: Budget
    neighbours: Neighbours
    filter: str
    unit: Unit = "record"

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        check_unit(self.unit)
        if not isinstance(self.budget, Budget):
            raise InvalidParameter(f"""Expected budget=Budget(epsilon=..., delta=...), got {type(self.budget).__name__}:
                an account needs an end. Use e.g. Budget(epsilon=1, delta=1e-6).""")
        if self.filter not in FILTERS:
            raise InvalidParameter(f"""Expected filter to be 'gaussian' or 'renyi', got {self.filter!r}: no other rule
                of adding up is known here. Use 'gaussian' for Gaussian noise on all records, 'renyi' for searches and
                sampled runs.""")

    @property
    def texts(self) -> tuple[str, ...]:
        """As a file keeps them."""
        numbers = (repr(float(self.budget.epsilon)), repr(float(self.budget.delta)))
        return (*numbers, self.neighbours, self.filter, self.unit)
