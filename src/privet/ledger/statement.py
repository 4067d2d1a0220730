"""What an account says of itself: every charge, alone and with those before, as text and for notebooks."""

import math
from typing import TYPE_CHECKING

from privet import _html
from privet.ledger.terms import FILTERS
from privet.privacy import up

if TYPE_CHECKING:
    from privet.ledger.account import Account, Charge

_NOT_HERE = "Scores and choices that were made by looking at the same records are not in this table."


def as_text(account: "Account") -> str:
    """The table of charges."""
    charges = account.charges
    lines = ["    #   alone  together  what"] if charges else []
    lines += [
        f"{place:5d} {_short(charge.alone):>7}   {_short(charge.together):>7}  {charge.label}"
        for place, charge in enumerate(charges, 1)
    ]
    return "\n".join([_head(account, charges), *lines, _NOT_HERE])


def as_html(account: "Account") -> str:
    """The same for a notebook."""
    charges = account.charges
    rows = [
        (place, _short(charge.alone), _short(charge.together), charge.label) for place, charge in enumerate(charges, 1)
    ]
    shown = _html.table(rows, head=("#", "alone", "together", "what"), title=_head(account, charges))
    return shown + _html.line(_NOT_HERE)


def counted(charges: int) -> str:
    """So many charges, in words."""
    return f"{charges} charge{'' if charges == 1 else 's'}"


def _head(account: "Account", charges: "tuple[Charge, ...]") -> str:
    spent = charges[-1].together if charges else 0.0
    theorem = FILTERS[account.filter].split(",", 1)[0]
    return (
        f"Account of epsilon <= {account.budget.epsilon:g} at delta = {account.budget.delta:g}, {account.neighbours}: "
        f"{up(spent, 3)} spent by {counted(len(charges))} ({theorem})"
    )


def _short(value: float) -> str:
    return up(value, 3) if math.isfinite(value) else "inf"
