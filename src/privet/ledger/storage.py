"""Where an account's lines are kept: in this process, or in a file that processes share and a crash leaves whole."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from privet.accounting import Event, from_json, to_json
from privet.errors import InvalidParameter
from privet.privacy import Budget, Neighbours, Unit

Line = tuple[str, Event]
Admits = Callable[[list[Event]], bool]

_VERSION = 2
_PATIENCE = 600.0  # seconds to wait for another process's charge
_TABLES = """
CREATE TABLE terms (epsilon TEXT NOT NULL, delta TEXT NOT NULL, neighbours TEXT NOT NULL, filter TEXT, unit TEXT);
CREATE TABLE charges (place INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL, event TEXT NOT NULL);
CREATE TRIGGER no_refund BEFORE DELETE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is final'); END;
CREATE TRIGGER no_change BEFORE UPDATE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is final'); END;
CREATE TRIGGER one_budget BEFORE UPDATE ON terms BEGIN SELECT RAISE(ABORT, 'the terms are final'); END;
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What an account was opened for."""

    budget: Budget
    neighbours: Neighbours
    filter: str
    unit: Unit = "record"


class InMemory:
    """Lines of one process; threads take turns."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def read(self) -> list[Line]:
        """All lines, oldest first."""
        return list(self._lines)

    def append(self, label: str, event: Event, *, admits: Admits) -> bool:
        """Add a line if all events together are admitted; whether they were."""
        if os.getpid() != self._process:
            raise InvalidParameter(
                "Expected an account with a path, got one in memory, in a forked process: the parent would not learn "
                "what is spent here. Use Account(budget, path='account.db')."
            )
        with self._lock:
            if not admits([*(known for _, known in self._lines), event]):
                return False
            self._lines.append((label, event))
            return True


class InFile:
    """Lines in an SQLite file: checked and written in one transaction, on the disk before `append` returns."""

    def __init__(self, path: Path, terms: Terms) -> None:
        self.path = path
        numbers = (repr(float(terms.budget.epsilon)), repr(float(terms.budget.delta)))
        known = (*numbers, terms.neighbours, terms.filter, terms.unit)
        with self._writing(make=True) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
            if version == 0 and empty:
                for statement in _statements(_TABLES):
                    connection.execute(statement)
                connection.execute("INSERT INTO terms VALUES (?, ?, ?, ?, ?)", known)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                return
            if version != _VERSION:
                raise InvalidParameter(
                    f"Expected an account of version {_VERSION}, got another file or version: its charges could be "
                    "misread. Use another path, or the version of privet that made it."
                )
            found = connection.execute("SELECT epsilon, delta, neighbours, filter, unit FROM terms").fetchall()
        if found != [known]:
            raise InvalidParameter(
                f"Expected the terms with which the account was opened, {found[0] if found else 'none'}, got {known} "
                "(epsilon, delta, neighbours, filter, unit): a budget does not grow by opening it again. Use those."
            )

    def read(self) -> list[Line]:
        """All lines, oldest first."""
        with self._open() as connection:
            return _lines(connection)

    def append(self, label: str, event: Event, *, admits: Admits) -> bool:
        """Add a line if all events together are admitted; whether they were."""
        text = to_json(event)
        with self._writing() as connection:  # from here on, no other process can write
            if not admits([*(known for _, known in _lines(connection)), event]):
                return False
            connection.execute("INSERT INTO charges (label, event) VALUES (?, ?)", (label, text))
        return True

    @contextmanager
    def _open(self, *, make: bool = False) -> Iterator[sqlite3.Connection]:
        mode = "rwc" if make else "rw"  # a file that has gone is not made again: that would forget what was spent
        try:
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE, isolation_level=None
            )
            try:
                connection.execute("PRAGMA synchronous = EXTRA")  # a commit is on the disk, its directory entry too
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise InvalidParameter(
                f"Expected the account's file to be readable and writable, got {type(error).__name__} from SQLite: "
                "without it nothing may be spent. Check the path, or restore the file."
            ) from None

    @contextmanager
    def _writing(self, *, make: bool = False) -> Iterator[sqlite3.Connection]:
        with self._open(make=make) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _lines(connection: sqlite3.Connection) -> list[Line]:
    rows = connection.execute("SELECT label, event FROM charges ORDER BY place").fetchall()
    return [(label, from_json(text)) for label, text in rows]


def _statements(script: str) -> list[str]:
    """The statements of a script, one a line; `executescript` would end the transaction."""
    return script.strip().splitlines()
