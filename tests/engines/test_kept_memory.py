from __future__ import annotations

import os
import subprocess
import sys

import pytest

from privet.engines.kept_memory import _library

CODE = """
import resource, numpy as np
from privet.engines.kept_memory import memory_kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(30):
        np.ones(1 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
with memory_kept():
    with memory_kept():
        np.ones(1 << 17)
    inside = faults()
print(first, inside, faults())
"""


@pytest.mark.medium
@pytest.mark.skipif(not sys.platform.startswith("linux") or _library() is None, reason="needs the allocator of glibc")
def test_blocks_of_a_task_are_not_faulted_in_again() -> None:
    """Under the nanny's variable, thirty arrays of a megabyte cost 256 page faults each, and inside those of one;
    afterwards the worker is as it was.
    """
    variables = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    run = subprocess.run([sys.executable, "-c", CODE], env=variables, capture_output=True, text=True, check=True)
    before, inside, after = map(int, run.stdout.split())
    assert inside < 600
    assert min(before, after) > 30 * 200
