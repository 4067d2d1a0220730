"""Budgets that many fits share, that survive crashes and copies, and that refuse to overspend.

>>> from privet import Budget
>>> from privet.ledger import Account
>>> Account(Budget(epsilon=2, delta=1e-6))
Account(epsilon <= 2, delta = 1e-06, replace_one, in memory, 0 charges)
"""

from privet.ledger.account import Account, Charge

__all__ = ["Account", "Charge"]
