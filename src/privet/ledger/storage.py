"""Where an account's lines are kept: in this process, or in a file that processes share and a crash leaves whole."""

import os
import re
import secrets
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from privet.accounting import Event, from_json, to_json
from privet.errors import InvalidParameter, NetworkDrive
from privet.ledger.terms import Terms

Line = tuple[str, Event]
Admits = Callable[[list[Event]], bool]

_VERSION = 3
_MOUNTED = Path("/proc/self/mountinfo")
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "beegfs", "gpfs", "glusterfs", "sshfs"}
_PATIENCE = 600.0  # seconds to wait for another process's charge
# A REPLACE deletes without asking the triggers of DELETE, but it inserts first: so each verb has its own.
_TABLES = """
CREATE TABLE terms (epsilon TEXT, delta TEXT, neighbours TEXT, filter TEXT, unit TEXT, identity TEXT NOT NULL);
CREATE TABLE charges (place INTEGER PRIMARY KEY AUTOINCREMENT CHECK (place > 0), \
label TEXT NOT NULL, event TEXT NOT NULL);
CREATE TRIGGER no_refund BEFORE DELETE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is final'); END;
CREATE TRIGGER no_change BEFORE UPDATE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is final'); END;
CREATE TRIGGER no_replacement BEFORE INSERT ON charges WHEN EXISTS (SELECT 1 FROM charges WHERE place = NEW.place) \
BEGIN SELECT RAISE(ABORT, 'a charge is final'); END;
CREATE TRIGGER terms_stay BEFORE DELETE ON terms BEGIN SELECT RAISE(ABORT, 'the terms are final'); END;
CREATE TRIGGER one_budget BEFORE UPDATE ON terms BEGIN SELECT RAISE(ABORT, 'the terms are final'); END;
CREATE TRIGGER terms_once BEFORE INSERT ON terms WHEN EXISTS (SELECT 1 FROM terms) \
BEGIN SELECT RAISE(ABORT, 'the terms are final'); END;
"""
_STATEMENTS = [statement.rstrip(";") for statement in _TABLES.strip().splitlines()]


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
            raise InvalidParameter("""Expected an account with a path, got one in memory, in a forked process: the
                parent would not learn what is spent here. Use Account.create(budget, 'account.db').""")
        with self._lock:
            if not admits([*(known for _, known in self._lines), event]):
                return False
            self._lines.append((label, event))
            return True


class InFile:
    """Lines in an SQLite file: checked and written in one transaction, on the disk before `append` returns.

    It remembers the file's identity and how many charges it saw, which never become fewer: `identity` and `seen` are
    those of an earlier look.
    """

    def __init__(self, path: Path, terms: Terms, *, identity: str = "", seen: int = 0) -> None:
        self.path, self.identity, self.seen = path, identity, seen
        if not path.exists():
            raise InvalidParameter("""Expected the file of an account at this path, got none: where a file was lost,
                nobody knows what was spent. Bring it back, or check the folder; a new account is made by
                Account.create(budget, path).""")
        if mounted_as(path.resolve(), _mounts()) in _NETWORK:
            warnings.warn(
                "The account is on a network drive, whose locks may be broken: two machines could spend one budget. "
                "Keep it on a local disk.",
                NetworkDrive,
                stacklevel=4,
            )
        with _opened(path) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != _VERSION:
                raise InvalidParameter(f"""Expected an account of version {_VERSION}, got another file or version, or an
                    empty one: its charges could be misread. Use another path, or the version of privet that made
                    it.""")
            found = connection.execute("SELECT epsilon, delta, neighbours, filter, unit FROM terms").fetchall()
            self._lines(connection)
        if found != [terms.texts]:
            raise InvalidParameter(f"""Expected the terms with which the account was made,
                {found[0] if found else "none"}, got {terms.texts} (epsilon, delta, neighbours, filter, unit): a budget
                does not grow by opening it again. Use those.""")

    @classmethod
    def made(cls, path: Path, terms: Terms) -> "InFile":
        """A new file; refuses a path where anything is already."""
        try:
            path.open("xb").close()
        except FileExistsError:
            raise InvalidParameter("""Expected a path where nothing is yet, got one with a file: to make it anew would
                forget what was spent. Open it with Account(budget, path).""") from None
        except OSError as error:
            raise _unusable(error) from None
        with _writing(path) as connection:
            for statement in _STATEMENTS:
                connection.execute(statement)
            connection.execute("INSERT INTO terms VALUES (?, ?, ?, ?, ?, ?)", (*terms.texts, secrets.token_hex(16)))
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        return cls(path, terms)

    def read(self) -> list[Line]:
        """All lines, oldest first."""
        with _opened(self.path) as connection:
            return self._lines(connection)

    def append(self, label: str, event: Event, *, admits: Admits) -> bool:
        """Add a line if all events together are admitted; whether they were."""
        text = to_json(event)
        with _writing(self.path) as connection:  # from here on, no other process can write
            if not admits([*(known for _, known in self._lines(connection)), event]):
                return False
            connection.execute("INSERT INTO charges (label, event) VALUES (?, ?)", (label, text))
        return True

    def _lines(self, connection: sqlite3.Connection) -> list[Line]:
        """What is written, if it can be what was written: all of it, under the triggers that keep it."""
        seen = self.seen  # before looking: another thread may see more meanwhile
        schema = connection.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%'").fetchall()
        (identity,) = connection.execute("SELECT identity FROM terms").fetchone() or ("",)
        rows = connection.execute("SELECT place, label, event FROM charges ORDER BY place").fetchall()
        whole = [place for place, _, _ in rows] == list(range(1, len(rows) + 1)) and len(rows) >= seen
        if not whole or self.identity not in ("", identity) or {sql for (sql,) in schema} != set(_STATEMENTS):
            raise InvalidParameter("""Expected the account's file as it was left, got one with fewer charges, another
                account's, or one without its triggers: what was spent is no longer known. Bring the right file
                back.""")
        self.identity, self.seen = identity, max(self.seen, len(rows))
        return [(label, from_json(text)) for _, label, text in rows]


def mounted_as(path: Path, mounts: str) -> str:
    """The type of the file system that a path is on, by a table as in proc(5), mountinfo; "" where it does not say."""
    longest, kind = 0, ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), [*fields.split(), *[""] * 5][4])
        if rest and point and path.is_relative_to(point) and len(point) >= longest:  # the last of equals lies on top
            longest, kind = len(point), rest.split()[0].removeprefix("fuse.")
    return kind


def _mounts() -> str:
    try:
        return _MOUNTED.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux, or not to be seen
        return ""


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file that is there: one that has gone is not made again, which would forget what was spent."""
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = EXTRA")  # a commit is on the disk, its directory entry too
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise _unusable(error) from None


@contextmanager
def _writing(path: Path) -> Iterator[sqlite3.Connection]:
    with _opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _unusable(error: Exception) -> InvalidParameter:
    return InvalidParameter(f"""Expected the account's file to be readable and writable, got {type(error).__name__}:
        without it nothing may be spent. Check the path, or restore the file.""")
