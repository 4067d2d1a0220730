"""Print the oldest version that pyproject.toml allows of each dependency, as requirements for pip.

    python .ci/lowest.py plot tables fast dask test --without torch > build/lowest.txt

An extra that names another (`privet[plot,tables]`) is followed. A dependency without a lower bound is an error: nobody
knows then under which version the tests pass.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<extras>\[[^]]+\])?(?:>=|==)(?P<version>[0-9][0-9.]*)")


def requirements(project: dict[str, Any], extras: list[str], without: set[str]) -> dict[str, str]:
    """Each dependency of the package and of the extras, pinned to its lower bound."""
    found: dict[str, str] = {}
    seen: set[str] = set()

    def follow(lines: list[str]) -> None:
        for line in lines:
            inner = re.fullmatch(rf"{project['name']}\[(.+)\]", line)
            if inner:
                visit(inner[1].split(","))
                continue
            bound = BOUND.fullmatch(line)
            if bound is None:
                raise SystemExit(f"Expected a lower bound, such as name>=1.2, got {line!r} in pyproject.toml.")
            if bound["name"] not in without:
                found[bound["name"]] = f"{bound['name']}{bound['extras'] or ''}=={bound['version']}"

    def visit(names: list[str]) -> None:
        for name in names:
            if name not in seen:
                seen.add(name)
                follow(project["optional-dependencies"][name])

    follow(project["dependencies"])
    visit(extras)
    return found


def main() -> None:
    """Read the arguments and the file above this folder, and print."""
    parser = argparse.ArgumentParser(description="The oldest versions that pyproject.toml allows.")
    parser.add_argument("extras", nargs="*")
    parser.add_argument("--without", action="append", default=[], metavar="NAME")
    asked = parser.parse_args()
    path = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    sys.stdout.write("\n".join(sorted(requirements(project, asked.extras, set(asked.without)).values())) + "\n")


if __name__ == "__main__":
    main()
