from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.medium
@pytest.mark.parametrize(("package", "steps"), [("lightning", 200), ("transformers", 20)])
def test_examples_of_other_libraries_run(package: str, steps: int) -> None:
    """The worked example trains as planned, within its budget; `make test-integrations` installs the libraries."""
    pytest.importorskip(package, reason="make test-integrations installs it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        run = runpy.run_path(str(EXAMPLES / f"{package}_training.py"))["main"]()
    assert run.steps_made == steps
    assert run.guarantee.epsilon <= 8
