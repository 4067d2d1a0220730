"""Private gradient descent, and a price for it that is true, tight and checkable.

Importing this costs next to nothing: it brings the words of a privacy statement and the errors.
Pricing a run is in :mod:`privet.accounting`.
"""

from __future__ import annotations

from privet import errors
from privet.privacy import Budget, Guarantee

__all__ = ["Budget", "Guarantee", "__version__", "errors"]

__version__ = "0.1.0"
