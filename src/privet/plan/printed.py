"""A plan as a table that a person can read."""

from typing import TYPE_CHECKING

from privet import _html, accounting
from privet.accounting import Gaussian
from privet.privacy import up
from privet.sampling import FullBatch

if TYPE_CHECKING:
    from privet.plan.plan import Plan


def shares(plan: "Plan") -> dict[str, float] | None:
    """Each release's share of the budget, if all are Gaussian noise on sums over all records; else None.

    Such releases compose to one with μ² = Σ times ÷ (noise ÷ sensitivity)², and a share is a part of that sum.
    """
    if not all(release.plain and release.calibrated for release in plan.releases):
        return None
    parts = {name: plan.times(name) / plan[name].noise_multiplier ** 2 for name in plan.names}
    return {name: part / sum(parts.values()) for name, part in parts.items()}


def printed(plan: "Plan") -> str:
    """The table."""
    rows = _rows(plan)
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]:>{widths[3]}}  "
        f"{row[4]:>{widths[4]}}  {row[5]}".rstrip()
        for row in rows
    ]
    return "\n".join([_head(plan), *lines])


def as_html(plan: "Plan") -> str:
    """The table for a notebook."""
    head, *rows = _rows(plan)
    return _html.table(rows, head=head, title=_head(plan))


def _head(plan: "Plan") -> str:
    head = f"Plan for {_who(plan)}, {plan.neighbours}"
    if plan.budget is not None:
        head += f", epsilon <= {plan.budget.epsilon:g} at delta = {plan.budget.delta:g}"
    return head


def _rows(plan: "Plan") -> list[tuple[str, ...]]:
    """The cells, their names in the first row."""
    of_all = shares(plan)
    delta = None if plan.budget is None else plan.budget.delta
    last = "share" if of_all is not None else "ε alone" if delta is not None else ""
    rows: list[tuple[str, ...]] = [("release", "times", "batches", "noise", last, "one record's influence")]
    for name in plan.names:
        release = plan[name]
        noise = (
            "" if release.mechanism is not None else f"{release.noise_multiplier:.4g}" if release.calibrated else "?"
        )
        if of_all is not None:
            value = f"{of_all[name]:.1%}"
        elif delta is not None and release.calibrated:
            event = release.event(records=plan.records or 1, neighbours=plan.neighbours, times=plan.times(name))
            value = up(accounting.epsilon(event, delta=delta, neighbours=plan.neighbours), 3)
        else:
            value = ""
        batches = "all" if isinstance(release.sampling, FullBatch) else repr(release.sampling)
        if release.mechanism is not None and not isinstance(release.mechanism, Gaussian):
            noise = type(release.mechanism).__name__
        rows.append((name, f"{plan.times(name):,}", batches, noise, value, release.bound.describe()))
    return rows


def _who(plan: "Plan") -> str:
    who = "people" if plan.unit == "person" else "records"
    if plan.records is None:
        return f"any number of {who}"
    return f"{plan.records:,} {who}" + (" (a public guess)" if plan.neighbours == "add_remove" else "")
