"""One budget for many releases about the same records: charged before noise is drawn, refused when it is spent."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.accounting import Event
from privet.accounting.query import ask
from privet.errors import InvalidParameter, Overspent
from privet.ledger.filtering import price
from privet.ledger.statement import as_html, as_text, counted
from privet.ledger.storage import InFile, InMemory
from privet.ledger.terms import FILTERS, Terms
from privet.plan import Plan
from privet.plan.plan import PERSON
from privet.privacy import Budget, Guarantee, Neighbours, Unit, check_neighbours, check_unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """One line of an account: what was released, its least epsilon alone, and that of all up to here by the filter.

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.accounting import Gaussian
    >>> from privet.ledger import Account
    >>> account = Account(Budget(epsilon=2, delta=1e-6))
    >>> account.charge(Gaussian(noise_multiplier=10.0), neighbours="replace_one", label="a mean")
    >>> [(charge.label, round(charge.together, 3)) for charge in account.charges]
    [('a mean', 0.834)]
    """

    label: str
    event: Event
    alone: float
    together: float


class Account:
    """A budget that is passed along: to estimators as `account=`, and through them to scikit-learn's searches.

    Each fit charges its whole event before the first noise is drawn. What does not fit is refused, with nothing
    released and nothing charged. All charges add up, whatever part of the records they saw, as the folds of a
    cross-validation overlap. `clone`, `copy` and `deepcopy` return the account itself, so that no copy starts afresh.
    With a `path` it is a file that processes share (`n_jobs=2`) and that survives a crash: a charge is on the disk
    before `charge` returns. Without one, pickling it is refused, and so is its use in a forked process.

    Promise: all that was charged together is (epsilon, delta)-private, though each release, and its noise, may have
    been chosen after looking at those before.
    Theorem: by `filter`. "gaussian": adaptive Gaussian DP, Σμ² ≤ μ² (Smith and Thakurta 2022; Koskela, Tobaben and
    Honkela 2023), which for Gaussian noise is the exact privacy cost. "renyi": `RenyiFilter`, for searches and sampled
    runs, at a somewhat higher epsilon. The exact accountants of sampled runs must not serve as filters
    (docs/accountants.md).
    Edges: an event without a bound for the filter, or under another relation, is refused.

    Parameters
    ----------
    budget : the most that all charges together may cost
    path : of the file, made by `Account.create` with the same terms: one that is not there, or is no account, is
        refused, as nobody knows what was spent. A local disk, please: network file systems may not lock
    neighbours : the relation of every charge
    filter : "gaussian" or "renyi"
    unit : whom every charge protects: "record", or "person" for fits with `groups`. One does not follow from the other:
        a record that is replaced may go from one person to another, and so change two

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.estimators import LogisticRegression
    >>> from privet.ledger import Account
    >>> account = Account(Budget(epsilon=1.5, delta=1e-6))
    >>> X, y = [[0.0], [1.0]] * 500, [0, 1] * 500
    >>> for _ in range(2):
    ...     model = LogisticRegression(epsilon=1, bounds=(0, 1), classes=[0, 1], account=account).fit(X, y)
    >>> round(account.epsilon, 3)
    1.455
    >>> LogisticRegression(epsilon=1, bounds=(0, 1), classes=[0, 1], account=account).fit(X, y)
    Traceback (most recent call last):
        ...
    privet.errors.Overspent: Expected a release that fits what is left of the account ...
    """

    def __init__(
        self,
        budget: Budget,
        path: str | Path | None = None,
        *,
        neighbours: Neighbours = "replace_one",
        filter: str = "gaussian",
        unit: Unit = "record",
    ) -> None:
        self._terms = Terms(budget=budget, neighbours=neighbours, filter=filter, unit=unit)
        self._store = InMemory() if path is None else InFile(Path(path).resolve(), self._terms)

    @classmethod
    def create(
        cls,
        budget: Budget,
        path: str | Path,
        *,
        neighbours: Neighbours = "replace_one",
        filter: str = "gaussian",
        unit: Unit = "record",
    ) -> "Account":
        """Make the file of a new account, once; refused where there is a file. Parameters as above.

        Examples
        --------
        >>> import os, tempfile
        >>> from privet import Budget
        >>> path = os.path.join(tempfile.mkdtemp(), "account.db")
        >>> Account.create(Budget(epsilon=1, delta=1e-6), path)
        Account(epsilon <= 1, delta = 1e-06, replace_one, in account.db, 0 charges)
        """
        InFile.made(Path(path).resolve(), Terms(budget=budget, neighbours=neighbours, filter=filter, unit=unit))
        return cls(budget, path, neighbours=neighbours, filter=filter, unit=unit)

    @property
    def filter(self) -> str:
        """The theorem by which charges add up: "gaussian" or "renyi"."""
        return self._terms.filter

    @property
    def budget(self) -> Budget:
        """The most that all charges together may cost."""
        return self._terms.budget

    @property
    def neighbours(self) -> Neighbours:
        """The relation of every charge."""
        return self._terms.neighbours

    @property
    def unit(self) -> Unit:
        """Whom every charge protects."""
        return self._terms.unit

    @property
    def epsilon(self) -> float:
        """What has been spent, at the budget's delta; what is promised is `guarantee`."""
        return self._price([event for _, event in self._store.read()])

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Every charge, oldest first."""
        lines = self._store.read()
        events = [event for _, event in lines]
        return tuple(
            Charge(label=label, event=event, alone=self._alone(event), together=self._price(events[: place + 1]))
            for place, (label, event) in enumerate(lines)
        )

    def admits(self, event: Event) -> bool:
        """Whether `charge` would accept the event now."""
        return self._fits([*(event for _, event in self._store.read()), event])

    def charge(self, event: Event, *, neighbours: Neighbours, label: str = "", unit: Unit = "record") -> None:
        """Charge a release before it is made; refuse what does not fit.

        Parameters
        ----------
        event : all of the release
        neighbours : the relation it will be made under; must be the account's
        label : a public name, for the table
        unit : whom the release protects; must be the account's

        Examples
        --------
        >>> from privet import Budget
        >>> from privet.accounting import Gaussian
        >>> account = Account(Budget(epsilon=1, delta=1e-6))
        >>> account.charge(Gaussian(noise_multiplier=20.0), neighbours="replace_one", label="ages")
        >>> print(account)
        Account of epsilon <= 1 at delta = 1e-06, replace_one: 0.397 spent by 1 charge (Gaussian DP)
            #   alone  together  what
            1   0.397     0.397  ages
        Scores and choices that were made by looking at the same records are not in this table.
        """
        if check_neighbours(neighbours) != self.neighbours:
            raise InvalidParameter(f"""Expected a release under {self.neighbours!r}, the relation of the account, got
                one under {neighbours!r}: privacy costs under different relations do not add up. Keep an account for
                each.""")
        if check_unit(unit) != self.unit:
            raise InvalidParameter(f"""Expected a release that protects a {self.unit}, as the account does, got one that
                protects a {unit}: their privacy costs do not add up to a promise about either. Keep an account for
                each: Account(..., unit={unit!r}), and groups=... in every fit of one for people.""")
        self._price([event])  # refuses here what has no bound under this filter
        if not self._store.append(label, event, admits=self._fits):
            raise Overspent(
                f"Expected a release that fits what is left of the account (epsilon <= {self.budget.epsilon:g} at "
                f"delta = {self.budget.delta:g}), got one that would exceed it: nothing was charged, nothing was "
                "released. Lower epsilon of this release, or stop here."
            )

    def reserve(self, plan: Plan, *, label: str = "") -> None:
        """Charge all of a plan before any of it is run; refuse what does not fit."""
        self.charge(plan.event, neighbours=plan.neighbours, label=label, unit=plan.unit)

    def guarantee(self) -> Guarantee:
        """What all charged releases promise together: the budget, once anything was charged, not what was spent of it.

        To stop when the releases so far happen to tell much is a choice, too. A filter answers for the budget whatever
        the choices; for what is spent when one stops, it does not (an odometer would: Rogers, Roth, Ullman and Vadhan
        2016). At delta = 1e-6 and a budget of 2, the best time to stop has a delta of 2.7e-5 at the epsilon spent.
        `epsilon` is a promise only if all charges were fixed beforehand.

        Examples
        --------
        >>> from privet import Budget
        >>> from privet.accounting import Gaussian
        >>> account = Account(Budget(epsilon=1, delta=1e-6))
        >>> account.charge(Gaussian(noise_multiplier=20.0), neighbours="replace_one")
        >>> round(account.epsilon, 3), account.guarantee().epsilon
        (0.397, 1.0)
        """
        lines = self._store.read()
        return Guarantee(
            epsilon=float(self.budget.epsilon) if lines else 0.0,
            delta=self.budget.delta,
            neighbours=self.neighbours,
            accountant="account's",
            theorem=FILTERS[self._terms.filter],
            lower=0.0,
            sampling=f"{counted(len(lines))} to one account, each possibly chosen after those before",
            releases=f"{counted(len(lines))} to one account",
            assumptions=(
                "everything released about these records was charged here",
                "what chose the next release was public, or charged",
                *((PERSON,) if self.unit == "person" else ()),
            ),
            unit=self.unit,
        )

    def _price(self, events: list[Event]) -> float:
        return price(events, self._terms)

    def _alone(self, event: Event) -> float:
        """The least epsilon of one release by itself; the filter's own is generous to what is far below the budget."""
        return ask(event, self.neighbours, "auto", self.budget.delta, None)[0].upper

    def _fits(self, events: list[Event]) -> bool:
        return self._price(events) <= self.budget.epsilon

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __repr__(self) -> str:
        place = "in memory" if isinstance(self._store, InMemory) else f"in {self._store.path.name}"
        return (
            f"Account(epsilon <= {self.budget.epsilon:g}, delta = {self.budget.delta:g}, {self.neighbours}, {place}, "
            f"{counted(len(self._store.read()))})"
        )

    def __sklearn_clone__(self) -> "Account":
        return self

    def __copy__(self) -> "Account":
        return self

    def __deepcopy__(self, memo: Any) -> "Account":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._store, InMemory):
            raise TypeError(
                "Expected an account with a path, got one in memory, to be pickled: the copy would not know what the "
                "other spends. Use Account.create(budget, 'account.db'), which processes share."
            )
        return _reopened, (self._terms, self._store.path, self._store.identity, self._store.seen)


def _reopened(terms: Terms, path: Path, identity: str, seen: int) -> Account:
    account = Account(terms.budget, neighbours=terms.neighbours, filter=terms.filter, unit=terms.unit)
    account._store = InFile(path, terms, identity=identity, seen=seen)
    return account
