"""A fit that is charged to an account: priced on a table of the same shape without anything in it, before it looks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import clone

from privet.accounting import Event
from privet.errors import InvalidParameter, PrivetError
from privet.ledger import Account
from privet.randomness import Random

__all__ = ["charged", "check_account", "refuse_fixed_seed"]

Fit = TypeVar("Fit", bound=Callable[..., Any])


def charged(fit: Fit) -> Fit:
    """A `fit` that charges its whole event to `self.account`, if there is one, before it draws any noise.

    What a fit releases is decided by public facts: parameters, shapes, the list of classes. So the fit is rehearsed on
    a table of zeros, whose model is thrown away; the event of the rehearsal is charged. Should the
    fit itself then have another event, the model is withheld: its price would have depended on the rows.

    A fit that fails leaves the model as it was: no range or count that it learnt on its way stays behind, beside
    the guarantee of an earlier fit or none.
    """

    @wraps(fit)
    def fit_and_charge(self: Any, X: Any, y: Any = None, *others: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit_once(self, X, y, *others, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def fit_once(self: Any, X: Any, y: Any, *others: Any, **named: Any) -> Any:
        if check_account(self.account) is None:
            return fit(self, X, y, *others, **named)
        refuse_fixed_seed(self._random())
        planned = _rehearsed(self, fit, X, y, *others, **named)
        groups = named.get("groups", others[1] if len(others) > 1 else None)  # as in fit(X, y, sample_weight, groups)
        self.account.charge(
            planned,
            neighbours=self.neighbours,
            label=type(self).__name__,
            unit="record" if groups is None else "person",
        )
        fitted = fit(self, X, y, *others, **named)
        if self._event != planned:
            raise PrivetError(
                "Expected a fit that releases what was charged, got another one: its price must not depend on the "
                "rows, and the model was withheld. Please report this."
            )
        return fitted

    return fit_and_charge  # type: ignore[return-value]  # the same signature


def check_account(account: Any) -> Account | None:
    """Return the account, or None if there is none; refuse anything else."""
    if account is None or isinstance(account, Account):
        return account
    raise InvalidParameter(
        f"Expected account to be an Account or None, got {type(account).__name__}: nothing could be charged to it. "
        "Use privet.ledger.Account(Budget(epsilon=..., delta=...))."
    )


def refuse_fixed_seed(random: Random) -> None:
    """Refuse predictable noise: an account promises that what it was charged for is private."""
    if random.void:
        raise InvalidParameter(
            "Expected no random_state together with an account, got one: noise from a fixed seed can be subtracted, so "
            "the account would promise what does not hold. Leave random_state out."
        )


def _rehearsed(model: Any, fit: Callable[..., Any], X: Any, y: Any, *others: Any, **named: Any) -> Event:
    """The event of a fit on a table of zeros of the same shape."""
    shape = model._table(X, reset=True).shape
    blank = sparse.csr_matrix(shape) if sparse.issparse(X) else np.broadcast_to(0.0, shape)
    stand_in = clone(model).set_params(account=None, random_state=0)
    stand_in._paid = model._paid
    fit(stand_in, blank, y, *others, **named)
    event: Event = stand_in._event
    return event
