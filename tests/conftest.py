"""What all tests share: threads, how hypothesis runs, and the two ways in which a sum is computed."""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Iterator

# Small products, in as many processes as there are cores: threads of BLAS would only wait for each other, ten times
# longer than they work. Read when NumPy is loaded, so it stands before the imports; set it yourself to have others.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of PyTorch

import pytest
from hypothesis import settings

from privet.sums import compiled

# PyTorch is an extra: without it its room cannot be imported, and so not be asked for examples.
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["torch/*"]

# What collection makes lives as long as the run: no use in looking through it again and again for what could be freed.
gc.disable()

# On a shared machine one slow example says nothing of the code; time is measured by the benchmarks.
# The same examples every time, so that a red run means a changed project; HYPOTHESIS_PROFILE=search looks for new ones.
settings.register_profile("house", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("search", deadline=None, max_examples=1500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def both_paths(request: pytest.FixtureRequest) -> Iterator[str]:
    """Sums of generalised linear models by NumPy alone, then by the compiled functions where they can be had."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(compiled, "_WORTH_CALLING", 2**62)
        else:
            pytest.importorskip("numba")
            assert compiled.kernels() is not None
            patch.setattr(compiled, "_WORTH_CALLING", 0)
        yield request.param
