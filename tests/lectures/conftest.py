from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import cache

import pytest

from privet.lectures import Check, Finding, check_for

_run = Check.__call__  # some tests replace it by `finding`


@pytest.fixture(scope="session")
def finding(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Finding]:
    """What the quick check of a claim finds; run once a session, and kept where the session's processes all look."""
    home = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        home = home.parent

    @cache
    def found(id: str) -> Finding:
        kept = home / f"claim-{id}.pickle"
        if not kept.exists():
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_bytes(pickle.dumps(_run(check_for(id))))
            part.replace(kept)  # at once, so that nobody reads a half
        result: Finding = pickle.loads(kept.read_bytes())
        return result

    return found
