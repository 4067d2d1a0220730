from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from privet.lectures import Finding, check_for


@pytest.fixture(scope="session")
def finding() -> Callable[[str], Finding]:
    """What the quick check of a claim finds; run once a session."""
    return cache(lambda id: check_for(id)())
