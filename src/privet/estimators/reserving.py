"""A fit that is charged before it begins, and that leaves nothing behind if it fails."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privet._checks import is_whole
from privet.errors import FixedSeed, InvalidParameter
from privet.ledger import Account
from privet.plan import Meter, Plan, ResumableMeter
from privet.randomness import Random, fixed_seed_invalidates_guarantee, system_random, why_invalid


def check_account(account: Any) -> Account | None:
    """Return the account, or None if there is none; refuse anything else."""
    if account is None or isinstance(account, Account):
        return account
    raise InvalidParameter(
        f"Expected account to be an Account or None, got {type(account).__name__}: nothing could be charged to it. "
        "Use privet.ledger.Account(Budget(epsilon=..., delta=...))."
    )


def reserve(account: Any, plan: Plan, label: str, random: Random) -> None:
    """Charge the whole plan to the account, if there is one, before any noise is drawn."""
    if check_account(account) is None:
        return
    if why_invalid(random):
        raise InvalidParameter(
            "Expected no random_state together with an account, got one: noise from a fixed seed can be subtracted, so "
            "the account would promise what does not hold. Leave random_state out."
        )
    account.reserve(plan, label=label)


def begun(plan: Plan, random: Random | None, *, account: Any, label: str, journal: Any = None, of: str = "") -> Meter:
    """The meter of a fit, which is charged before any record is read; with a journal, of one that may be gone on with.

    What is charged once is not charged again when the run is resumed; draws that were interrupted are, each once.
    """
    if journal is None:
        meter = Meter(plan, random=random)
        reserve(account, plan, label, meter.random)
        return meter
    if random is not None and why_invalid(random):
        raise InvalidParameter(
            "Expected no random_state together with a journal, got one: a run that is resumed would draw the same "
            "noise a second time, and whoever has both could subtract it. Leave random_state out."
        )
    resumed = ResumableMeter(plan, journal, of=of)
    if check_account(account) is not None:
        told = f"{label}, run {resumed.journal.run[:12]}"
        facts: dict[str, Any] = {"records": plan.records or 1, "neighbours": plan.neighbours}
        charges = {told: plan.event} | {f"{told}: {each.name}": each.event(**facts) for each in resumed.redrawn}
        known = {charge.label for charge in account.charges}
        for name, event in charges.items():
            if name not in known:
                account.charge(event, neighbours=plan.neighbours, label=name, unit=plan.unit)
    return resumed


@contextmanager
def undone_on_failure(model: Any) -> Iterator[None]:
    """A fit that fails leaves the model as it was: nothing that it learnt on its way stays behind."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def randomness(random_state: Any, *, stacklevel: int = 3) -> Random:
    """The system's randomness; a fixed seed's, which invalidates the guarantee, if a random_state was given."""
    if random_state is None:
        return system_random()
    if is_whole(random_state):
        warnings.warn(
            f"Expected no random_state, got {int(random_state)}: whoever knows a seed can compute the noise again and "
            "subtract it, so that nothing is promised (guarantee_ says NOT PRIVATE). Leave it out; to have the same "
            "model again, save it. Seeds are for tests, which may silence this FixedSeed.",
            FixedSeed,
            stacklevel=stacklevel,
        )
        return fixed_seed_invalidates_guarantee(int(random_state))
    raise InvalidParameter(
        f"Expected random_state to be None or a whole number, got {type(random_state).__name__}: other "
        "generators are not cryptographic. Leave it out."
    )
