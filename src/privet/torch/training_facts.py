"""What a run follows from in public: the number of examples, how batches are drawn, and what was charged so far."""

import hashlib
from functools import lru_cache
from pathlib import Path

from privet import accounting
from privet._checks import whole
from privet.errors import InvalidParameter
from privet.ledger import Account
from privet.plan import Plan, plan_to_json
from privet.privacy import Neighbours
from privet.problems.facts import public_count
from privet.sampling import Passes, Sampling
from privet.torch.batch_source import Source
from privet.torch.processes import Processes
from privet.torch.step_journal import StepJournal


@lru_cache(maxsize=8)
def spent(plan: Plan, made: int) -> float:
    """The epsilon of the first `made` steps of a plan at its budget's delta; rounded up."""
    run, left = None, made
    for release in plan.releases:
        times = min(left, release.times)
        left -= times
        if times:
            part = release.event(records=plan.count, neighbours=plan.neighbours, times=times)
            run = part if run is None else run + part
    if run is None or plan.budget is None:
        return 0.0
    return accounting.epsilon(run, delta=plan.budget.delta, neighbours=plan.neighbours)


def charge(plan: Plan, account: Account | None, label: str, journal: str | Path | None) -> StepJournal | None:
    """Start the journal and charge the whole plan; a run that is refused leaves no journal."""
    started = None if journal is None else StepJournal.create(journal, plan=plan_digest(plan))
    try:
        if account is not None:
            account.reserve(plan, label=label)
    except BaseException:
        StepJournal.remove(started)
        raise
    return started


def batches_of(source: Source, batch_size: int | None, sampling: Sampling | None) -> tuple[int, Sampling | None]:
    """The divisor, and how batches are drawn."""
    if source.loader is None:
        return batch_size, sampling  # type: ignore[return-value]  # checked by the plan
    own = source.loader.sampling
    if sampling is not None or batch_size not in (None, own.batch):
        raise InvalidParameter("""Expected neither batch_size nor sampling with a DataLoader, got one of them: it has
            its own batches. Leave them out, or pass the dataset itself.""")
    return min(own.batch, max(1, len(source.examples))), own


def passes(epochs: float | None) -> int:
    """The passes over a loader, a whole number."""
    return whole("epochs", epochs, because="a DataLoader is read in whole passes", use="Use a whole number.")


def public_records(true: int, neighbours: Neighbours, records: int | None) -> int:
    """The number of examples that may be used in public."""
    count = public_count(true, neighbours, records)
    if neighbours != "add_remove" and count != true:
        raise InvalidParameter(f"""Expected records to be left out under {neighbours!r}, where it is public, got
            {records!r} for a dataset of another number: rates would not be what the guarantee covers. Leave it out.""")
    return count


def check_source(plan: Plan, source: Source) -> None:
    """Refuse a dataset that is not of the plan's number of examples, where that is public."""
    public_records(len(source.examples), plan.neighbours, plan.records)
    if (source.loader is None) == isinstance(plan.releases[0].sampling, Passes) or source.unit != plan.unit:
        raise InvalidParameter("""Expected data of the kind that the plan is for, got a DataLoader in place of a
            dataset, rows in place of people, or the reverse: their batches have another price, or protect somebody
            else. Pass what the run was set up with.""")


def charged(journal: StepJournal, made: int) -> int:
    """Steps that the journal counts; refused if they are fewer than those of the checkpoint."""
    if journal.steps < made:
        raise InvalidParameter("""Expected a journal that counts at least the steps of the checkpoint, got fewer: it is
            an older copy, and nobody knows how many steps were made. Use the journal itself.""")
    return journal.steps


def reopened(path: str | Path, plan: Plan, run: str, made: int) -> tuple[StepJournal | None, int]:
    """The journal of a run, which the first of several processes keeps for all, and how many steps it counts."""

    def first() -> StepJournal:
        journal = StepJournal.reopen(path, plan=plan_digest(plan), run=run)
        charged(journal, made)
        return journal

    here = Processes()
    journal = here.once(first)
    return journal, here.told(0 if journal is None else journal.steps)


def plan_digest(plan: Plan) -> str:
    """What tells a plan from any other."""
    return hashlib.sha256(plan_to_json(plan).encode()).hexdigest()
