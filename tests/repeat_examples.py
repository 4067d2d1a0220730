"""How often does an example in the code fail by chance? Repeat each that draws noise, with fresh noise.

    python tests/repeat_examples.py [--times 200] [--only PART_OF_A_NAME] [FILE ...]
    python tests/repeat_examples.py $(git diff --name-only v0.1 -- 'src/*.py')

An example that fails none of 200 times fails less often than once in 67, with 95 % confidence: this finds a margin
that is too narrow, and does not prove one that is wide.
"""

from __future__ import annotations

import argparse
import doctest
import importlib
import importlib.util
import pkgutil
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import privet
from privet.errors import FixedSeed
from privet.randomness import generator

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples() -> Iterator[doctest.DocTest]:
    """Every docstring with examples of every module that can be imported here."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for found in pkgutil.walk_packages(privet.__path__, "privet."):
        if found.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except ImportError as error:
            print(f"left out {found.name}: {error}", file=sys.stderr)
            continue
        yield from (test for test in finder.find(module, found.name) if test.examples)


def fails(test: doctest.DocTest) -> str:
    """What one run printed that it should not, empty if nothing."""
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FixedSeed)
        runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
        runner.run(test, out=said.append, clear_globs=False)
    return "".join(said)


def main() -> int:
    """Print what failed and how often; 1 if anything did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("files", nargs="*", type=Path, help="the modules to look at; all without any")
    options = parser.parse_args()
    fresh, drawn, started = generator._system_key, 0, time.monotonic()

    def counted() -> bytes:
        nonlocal drawn
        drawn += 1
        return fresh()

    generator._system_key = counted
    read = repeated = bad = 0
    asked = {path.resolve() for path in options.files}
    for test in examples():
        if options.only not in test.name or (asked and Path(test.filename or "").resolve() not in asked):
            continue
        before, clean = drawn, dict(test.globs)
        said = [fails(test)]
        read += 1
        if drawn > before:
            repeated += 1
            for _ in range(options.times - 1):
                test.globs.clear()
                test.globs.update(clean)
                said.append(fails(test))
        failed = [text for text in said if text]
        if failed:
            bad += 1
            print(f"{test.name}: failed {len(failed)} of {len(said)}\n{failed[0]}", flush=True)
    print(f"{read} examples, {repeated} draw noise and ran {options.times} times: {bad} failed at least once.")
    print(f"{time.monotonic() - started:.0f} s")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
