"""An account is charged before anything is released, adds up exactly, and never spends more than it has."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import pickle
import shutil
import signal
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from privet import Budget
from privet.accounting import Approximate, Gaussian, Laplace, Pure, epsilon, random_trials
from privet.accounting.filters import RenyiFilter
from privet.errors import InvalidParameter, NetworkDrive, NoProvenBound, Overspent
from privet.ledger import Account, storage

BUDGET = Budget(epsilon=2, delta=1e-6)
STEP = Gaussian(noise_multiplier=20.0)


def spend(account: Account, times: int, event: Gaussian = STEP) -> int:
    """Charge until refused or `times` are through; how many went through."""
    for done in range(times):
        try:
            account.charge(event, neighbours="replace_one", label="step")
        except Overspent:
            return done
    return times


def affordable() -> int:
    """How many steps the exact accountant allows."""
    count = 1
    while epsilon(STEP * (count + 1), delta=1e-6, neighbours="replace_one") <= 2:
        count += 1
    return count


@pytest.mark.parametrize("stored", [False, True])
def test_gaussian_charges_add_up_exactly_to_the_budget(stored: bool, tmp_path: Path) -> None:
    """As many Gaussian releases fit as the closed form allows, not one more, and the refused one leaves no trace."""
    account = Account.create(BUDGET, tmp_path / "a.db") if stored else Account(BUDGET)
    most = affordable()
    assert 5 < spend(account, 1000) == most == len(account.charges)
    assert not account.admits(STEP)
    assert account.epsilon == pytest.approx(epsilon(STEP * most, delta=1e-6, neighbours="replace_one"), rel=1e-9)
    assert account.epsilon <= 2
    assert account.guarantee().epsilon == 2
    assert account.charges[-1].together == account.epsilon
    assert account.charges[0].alone == pytest.approx(account.charges[0].together, rel=1e-9)


def test_small_spends_do_not_drift() -> None:
    """Three hundred charges cost what one event of three hundred steps costs, to the last digits but ten."""
    account = Account(Budget(epsilon=5, delta=1e-6))
    fine = Gaussian(noise_multiplier=100.1)
    assert spend(account, 300, fine) == 300
    assert account.epsilon == pytest.approx(epsilon(fine * 300, delta=1e-6, neighbours="replace_one"), rel=1e-10)


def test_another_relation_is_refused() -> None:
    """Prices under different relations do not add up."""
    account = Account(BUDGET, neighbours="zero_out")
    with pytest.raises(InvalidParameter, match="relation of the account"):
        account.charge(STEP, neighbours="replace_one")
    assert not account.charges


def test_what_the_filter_cannot_add_up_is_refused() -> None:
    """A sampled run in a Gaussian account, a failing one in any: refused, with nothing charged."""
    sampled = STEP.poisson(rate=0.1) * 10
    account = Account(BUDGET)
    for event in (sampled, Approximate(epsilon=0.1, delta=1e-8), random_trials(STEP, mean=5)):
        with pytest.raises(NoProvenBound, match="filter='renyi'"):
            account.charge(event, neighbours="replace_one")
    account.charge(Pure(epsilon=0.1), neighbours="replace_one")
    moments = Account(BUDGET, filter="renyi")
    for event in (sampled, random_trials(STEP, mean=5), Laplace(scale=40.0)):
        moments.charge(event, neighbours="replace_one")
    with pytest.raises(NoProvenBound, match="fail outright"):
        moments.charge(Approximate(epsilon=0.1, delta=1e-8), neighbours="replace_one")
    assert [charge.alone for charge in moments.charges] == [
        epsilon(charge.event, delta=1e-6, neighbours="replace_one") for charge in moments.charges
    ]
    assert len(moments.charges) == 3
    assert 0 < moments.epsilon < 2


def test_the_renyi_account_is_the_renyi_filter() -> None:
    """It admits exactly what `RenyiFilter` admits, and never more than the exact price allows."""
    account, state, count = Account(BUDGET, filter="renyi"), RenyiFilter(epsilon=2.0, delta=1e-6), 0
    mu = 2 / 20.0
    while state.admits(lambda t: mu**2 / 2 * t * (1 + t)):
        state = state.spend(lambda t: mu**2 / 2 * t * (1 + t))
        count += 1
    assert spend(account, 1000) == count <= affordable()


def test_copies_and_clones_are_the_account_itself(tmp_path: Path) -> None:
    """`clone`, `copy` and `deepcopy` give no fresh budget; a pickle of one with a path shares its file."""
    account = Account.create(BUDGET, tmp_path / "a.db")
    assert clone(account, safe=False) is copy.copy(account) is copy.deepcopy(account) is account
    other = pickle.loads(pickle.dumps(account))
    spend(other, 2)
    spend(account, 1)
    assert len(account.charges) == len(other.charges) == 3
    with pytest.raises(TypeError, match="with a path"):
        pickle.dumps(Account(BUDGET))


def test_a_file_keeps_its_terms(tmp_path: Path) -> None:
    """An account is opened again with the same terms only, and what was spent is still spent."""
    path = tmp_path / "a.db"
    spend(Account.create(BUDGET, path), 3)
    assert len(Account(BUDGET, path).charges) == 3
    with pytest.raises(InvalidParameter, match="terms"):
        Account(Budget(epsilon=3, delta=1e-6), path)
    with pytest.raises(InvalidParameter, match="terms"):
        Account(BUDGET, path, neighbours="zero_out")
    with pytest.raises(InvalidParameter, match="terms"):
        Account(BUDGET, path, filter="renyi")


def test_an_account_on_a_network_drive_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the innermost mount of its path, when it is made and when it is opened; a local disk says nothing."""
    table, local, far = tmp_path / "mountinfo", tmp_path / "local", tmp_path / "a far place"
    local.mkdir()
    far.mkdir()
    point = str(far).replace(" ", "\\040")
    table.write_text(
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"30 21 0:40 / {point} rw shared:7 - nfs4 server:/export rw\n"
        f"31 30 0:41 / {point}/disk rw - ext4 /dev/sdb1 rw\n"
        "a line of another kind\n"
    )
    monkeypatch.setattr(storage, "_MOUNTED", table)
    Account.create(BUDGET, local / "a.db")
    with pytest.warns(NetworkDrive, match="local disk"):
        Account.create(BUDGET, far / "a.db")
    with pytest.warns(NetworkDrive):
        Account(BUDGET, far / "a.db")
    (far / "disk").mkdir()
    Account.create(BUDGET, far / "disk" / "a.db")
    monkeypatch.setattr(storage, "_MOUNTED", tmp_path / "nothing")
    Account(BUDGET, far / "a.db")
    assert storage.mounted_as(Path("/data/x"), "1 1 0:1 / /data rw - fuse.sshfs me@there:/ rw") == "sshfs"


def test_a_lost_or_foreign_file_stops_all_spending(tmp_path: Path) -> None:
    """A file that was deleted is not made afresh behind one's back, and one that is no account is refused."""
    path = tmp_path / "a.db"
    account = Account.create(BUDGET, path)
    spend(account, 1)
    bytes_ = pickle.dumps(account)
    path.unlink()
    with pytest.raises(InvalidParameter, match="readable and writable"):
        account.charge(STEP, neighbours="replace_one")
    assert not path.exists()
    with pytest.raises(InvalidParameter, match="nobody knows"):
        pickle.loads(bytes_)
    (tmp_path / "b.db").write_text("not a database, but long enough to be looked at as one" * 20)
    with pytest.raises(InvalidParameter, match="readable and writable"):
        Account(BUDGET, tmp_path / "b.db")
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute("CREATE TABLE something (x)")
    with pytest.raises(InvalidParameter, match="version"):
        Account(BUDGET, tmp_path / "c.db")


LINE = "(place, label, event) VALUES (1, '', '{}')"
TERMS = "VALUES ('9', '1e-06', 'replace_one', 'gaussian', 'record', 'x')"
VERBS = [
    "DELETE FROM charges",
    "DELETE FROM charges WHERE place = 2",
    "UPDATE charges SET label = ''",
    "UPDATE OR REPLACE charges SET place = 1 WHERE place = 2",
    "UPDATE OR IGNORE charges SET event = '{}'",
    f"REPLACE INTO charges {LINE}",
    f"REPLACE INTO charges {LINE.replace('1', '2')}",
    f"INSERT OR REPLACE INTO charges {LINE}",
    f"INSERT INTO charges {LINE} ON CONFLICT (place) DO UPDATE SET event = excluded.event",
    "REPLACE INTO charges SELECT 1, label, event FROM charges WHERE place = 2",
    "UPDATE terms SET epsilon = '9'",
    "DELETE FROM terms",
    f"INSERT INTO terms {TERMS}",
    f"REPLACE INTO terms {TERMS}",
    "INSERT OR REPLACE INTO terms (rowid, epsilon, identity) VALUES (1, '9', 'x')",
]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("recursive", ["OFF", "ON"])
def test_lines_of_a_file_are_final(verb: str, recursive: str, tmp_path: Path) -> None:
    """Neither a charge nor the terms can be deleted, changed or replaced through any verb of SQL.

    On what was: REPLACE INTO took 0.934 spent back to 0, DELETE and INSERT raised the budget.
    """
    path = tmp_path / "a.db"
    account = Account.create(BUDGET, path)
    spend(account, 2)
    spent = account.epsilon
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA recursive_triggers = {recursive}")
        with pytest.raises(sqlite3.IntegrityError, match="final"):
            connection.execute(verb)
    connection.close()
    assert account.epsilon == Account(BUDGET, path).epsilon == spent


@pytest.mark.parametrize(
    "cut", ["DROP TRIGGER no_refund; DELETE FROM charges WHERE place = 1", "DROP TRIGGER one_budget"]
)
def test_a_file_without_its_triggers_is_refused(cut: str, tmp_path: Path) -> None:
    """Whoever drops them is noticed at the next look; what they do with them gone and restored is not."""
    path = tmp_path / "a.db"
    account = Account.create(BUDGET, path)
    spend(account, 2)
    with sqlite3.connect(path) as connection:
        connection.executescript(cut)
    connection.close()
    for look in (lambda: account.epsilon, lambda: account.charge(STEP, neighbours="replace_one")):
        with pytest.raises(InvalidParameter, match="as it was left"):
            look()
    with pytest.raises(InvalidParameter, match="as it was left"):
        Account(BUDGET, path)


def test_an_older_copy_put_back_is_noticed_by_who_saw_more(tmp_path: Path) -> None:
    """By an account that is open, and by one that was pickled; a new process that never looked cannot know."""
    path, copy = tmp_path / "a.db", tmp_path / "b.db"
    account = Account.create(BUDGET, path)
    spend(account, 1)
    shutil.copy(path, copy)
    spend(account, 2)
    assert account.epsilon > 0
    pickled = pickle.dumps(account)
    shutil.copy(copy, path)
    with pytest.raises(InvalidParameter, match="as it was left"):
        account.charge(STEP, neighbours="replace_one")
    with pytest.raises(InvalidParameter, match="as it was left"):
        pickle.loads(pickled)
    path.unlink()
    spend(Account.create(BUDGET, path), 5)  # another account at the same path, with as many charges
    with pytest.raises(InvalidParameter, match="as it was left"):
        account.charge(STEP, neighbours="replace_one")


def test_no_fresh_budget_by_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleted file, an empty one, and the same relative path in another folder are refused; so is making it twice."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    account = Account.create(BUDGET, "a.db")
    monkeypatch.chdir(tmp_path / "two")
    spend(account, 2)  # where it was made
    with pytest.raises(InvalidParameter, match="at this path, got none"):
        Account(BUDGET, "a.db")
    assert len(Account(BUDGET, "../one/a.db").charges) == 2
    with pytest.raises(InvalidParameter, match="nothing is yet"):
        Account.create(BUDGET, "../one/a.db")
    Path("a.db").touch()
    with pytest.raises(InvalidParameter, match="or an empty one"):
        Account(BUDGET, "a.db")
    with pytest.raises(InvalidParameter, match="nothing is yet"):
        Account.create(BUDGET, "a.db")
    with pytest.raises(InvalidParameter, match="readable and writable"):
        Account.create(BUDGET, "nowhere/a.db")


def test_a_commit_is_on_the_disk(tmp_path: Path) -> None:
    """SQLite says so itself: synchronous is EXTRA, and the journal is a rollback journal (docs/footguns.md, 59)."""
    path = tmp_path / "a.db"
    Account.create(BUDGET, path)
    with storage._opened(path) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


@pytest.mark.parametrize("stored", [False, True])
def test_threads_cannot_overspend(stored: bool, tmp_path: Path) -> None:
    """Eight threads at once: exactly what the budget allows goes through."""
    account = Account.create(BUDGET, tmp_path / "a.db") if stored else Account(BUDGET)
    done: list[int] = []
    threads = [threading.Thread(target=lambda: done.append(spend(account, 40))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == len(account.charges) == affordable()


def _worker(account: Account, released: str) -> None:
    """Charge, then release: one byte for each charge that returned."""
    with open(released, "ab", buffering=0) as out:
        for _ in range(1000):
            try:
                account.charge(STEP, neighbours="replace_one")
            except Overspent:
                return
            out.write(b"x")


def test_killed_processes_leave_charges_never_free_releases(tmp_path: Path) -> None:
    """Three processes, one killed midway: releases never exceed charges, charges never exceed the budget."""
    account = Account.create(BUDGET, tmp_path / "a.db")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_worker, args=(account, str(tmp_path / f"{i}"))) for i in range(3)]
    for worker in workers:
        worker.start()
    time.sleep(0.05)
    os.kill(workers[0].pid or 0, signal.SIGKILL)
    for worker in workers:
        worker.join()
    released = sum(path.stat().st_size for path in tmp_path.glob("[0-9]"))
    assert affordable() - 1 <= released <= len(account.charges) <= affordable()
    assert account.epsilon <= 2


def test_an_account_in_memory_is_refused_in_a_forked_process() -> None:
    """A child's charges would be lost to the parent, so the child may not charge."""
    account = Account(BUDGET)
    pid = os.fork()
    if pid == 0:
        try:
            account.charge(STEP, neighbours="replace_one")
        except InvalidParameter:
            os._exit(17)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 17


def test_bad_terms_are_refused() -> None:
    """A budget that is none, a relation and a filter that nobody knows."""
    with pytest.raises(InvalidParameter, match="Budget"):
        Account(1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="neighbours"):
        Account(BUDGET, neighbours="swap")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="filter"):
        Account(BUDGET, filter="exact")


def test_the_table_shows_every_charge(tmp_path: Path) -> None:
    """`print` names what was charged, alone and together, and says what is not in it; the repr is one line."""
    account = Account.create(BUDGET, tmp_path / "a.db")
    account.charge(STEP, neighbours="replace_one", label="first")
    account.charge(STEP * 2, neighbours="replace_one", label="second")
    text = str(account)
    assert "first" in text
    assert "second" in text
    assert "2 charges" in text
    assert "not in this table" in text
    assert repr(account) == "Account(epsilon <= 2, delta = 1e-06, replace_one, in a.db, 2 charges)"
    assert np.all(np.diff([charge.together for charge in account.charges]) > 0)


def test_the_promise_is_the_budget_whenever_one_stops() -> None:
    """Who may stop when the loss is large finds more delta than stated at the epsilon spent; at the budget, never."""
    given = Budget(epsilon=2, delta=1e-3)
    nodes, chances = np.polynomial.hermite_e.hermegauss(41)
    chances = chances / chances.sum()
    squares = np.geomspace(1e-6, 0.46, 60)  # Σμ² after each release; the loss is normal with half of it as mean
    spent = np.array(
        [epsilon(Gaussian(noise_multiplier=2 / math.sqrt(v)), delta=1e-3, neighbours="replace_one") for v in squares]
    )
    assert spent[-1] <= 2
    place = np.linspace(-8, 8, 1601)

    def best_stop(stated: np.ndarray) -> float:
        losses = squares[:, None] / 2 + place * np.sqrt(squares)[:, None]
        gains = np.maximum(0.0, -np.expm1(stated[:, None] - losses))
        value = gains[-1]
        for i in range(len(squares) - 2, -1, -1):
            jump = math.sqrt(squares[i + 1] - squares[i])
            ends = (place[:, None] * math.sqrt(squares[i]) + nodes * jump) / math.sqrt(squares[i + 1])
            value = np.maximum(gains[i], np.interp(ends, place, value) @ chances)
        weight = np.exp(-(place**2) / 2)
        return float(value @ weight / weight.sum())

    assert best_stop(spent) > 3e-3
    assert best_stop(np.full(len(squares), 2.0)) <= 1.01e-3
    account = Account(given)
    assert account.guarantee().epsilon == 0
    account.charge(STEP, neighbours="replace_one")
    assert account.epsilon < account.guarantee().epsilon == 2
