"""All accountants side by side."""

from dataclasses import dataclass

from privet import _html
from privet.accounting import events as ev
from privet.accounting.accountants import ACCOUNTANTS, THEOREMS
from privet.accounting.query import epsilon
from privet.errors import NoProvenBound
from privet.privacy import Neighbours, check_delta, check_neighbours, up


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One accountant's answer: an upper bound on epsilon, or None and the reason.

    Examples
    --------
    >>> Row(accountant="renyi", epsilon=1.0, theorem="Mironov 2017").epsilon
    1.0
    """

    accountant: str
    epsilon: float | None
    theorem: str
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What each accountant says of the same run at the same delta. Its `str` is a table.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> found = compare(Gaussian(noise_multiplier=2.0), delta=1e-6, neighbours="add_remove")
    >>> found["closed"].epsilon == min(row.epsilon for row in found.rows if row.epsilon is not None)
    True
    """

    delta: float
    neighbours: Neighbours
    rows: tuple[Row, ...]

    def __getitem__(self, accountant: str) -> Row:
        return next(row for row in self.rows if row.accountant == accountant)

    def __str__(self) -> str:
        lines = [f"epsilon at delta = {self.delta:g}, {self.neighbours}:"]
        for row in self.rows:
            value = "–" if row.epsilon is None else up(row.epsilon)
            lines.append(f"  {row.accountant:<10}{value:>14}   {row.note or row.theorem}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(r.accountant, "–" if r.epsilon is None else up(r.epsilon), r.note or r.theorem) for r in self.rows]
        title = f"epsilon at delta = {self.delta:g}, {self.neighbours}"
        return _html.table(rows, head=("accountant", "epsilon", "theorem"), title=title)


def compare(run: ev.Event, delta: float, *, neighbours: Neighbours) -> Comparison:
    """Every accountant's epsilon for the same run: what each theorem proves, and what it costs to use a loose one.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> run = Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 1000
    >>> found = compare(run, delta=1e-5, neighbours="add_remove")
    >>> round(found["contour"].epsilon, 4), round(found["renyi"].epsilon, 4)
    (1.8282, 2.1013)
    """
    delta = check_delta(delta)
    check_neighbours(neighbours)
    rows = []
    for name in ACCOUNTANTS:
        try:
            found = epsilon(run, delta=delta, neighbours=neighbours, accountant=name)
            rows.append(Row(accountant=name, epsilon=found, theorem=THEOREMS[name]))
        except NoProvenBound as refused:
            why = str(refused).split(", got ", 1)[-1].split(": ", 1)[0]
            rows.append(Row(accountant=name, epsilon=None, theorem=THEOREMS[name], note=f"does not apply: {why}"))
    return Comparison(delta=delta, neighbours=neighbours, rows=tuple(rows))
