"""`privet lectures`: what the lectures claim, and where it is true, computed on the spot."""

import os
import signal
import textwrap
import threading
from functools import partial
from multiprocessing import get_context
from typing import Any, get_args

import click

from privet._progress import shown
from privet.cli.answers import Answers, answer
from privet.cli.options import json_option
from privet.lectures import Claim, Finding, Kind, all_checks, check_for, look_up, select
from privet.sums.blocks import blas, most_threads

FORMAT = 1
"""Of the JSON: raised when a field changes its meaning or goes away; new fields may join."""

_WORDS = {"holds": "holds", "holds_within": "holds within", "fails": "fails"}
_FEW = 3
_MANY = 30  # checks that are worth another process
_FIELDS = ("place", "kind", "statement", "formula", "realised_by", "erratum")


@click.group(cls=Answers, epilog="Python: privet.lectures.check_for(id)(), privet.lectures.look_up(id)")
def lectures() -> None:
    """The 117 claims of five lectures: list them, show one, check where they are true."""


@lectures.command("list", epilog="Python: privet.lectures.select(words)")
@click.argument("claims", nargs=-1, metavar="[ID|LECTURE]...")
@click.option("--kind", type=click.Choice(get_args(Kind)), help="Only claims of this kind.")
@json_option
def list_claims(claims: tuple[str, ...], kind: str | None, as_json: bool) -> None:
    """List the claims, all or those named by id or by lecture."""
    chosen = [claim for claim in select(claims) if kind in (None, claim.kind)]
    width = max([len(claim.place) for claim in chosen], default=0)
    rows = [f"{c.id:>3}  {c.lecture.key:<10}  {c.place:<{width}}  {c.kind:<11}  {c.formula}" for c in chosen]
    answer("\n".join(rows), _records(chosen) if as_json else {}, as_json=as_json)


@lectures.command(epilog="Python: privet.lectures.look_up(id)")
@click.argument("claim", metavar="ID")
@json_option
def show(claim: str, as_json: bool) -> None:
    """Show one claim: what it says, what realises it, what is wrong in print, how it is checked."""
    found = look_up(claim)
    answer(_shown(found), _records([found]), as_json=as_json)


@lectures.command(epilog="Python: privet.lectures.check_for(id)(full=...)")
@click.argument("claims", nargs=-1, metavar="[ID|LECTURE]...")
@click.option("--full", is_flag=True, help="Run the long simulations, too; minutes.")
@json_option
def check(claims: tuple[str, ...], full: bool, as_json: bool) -> None:
    """Run the checks of claims, all or those named, and say holds, holds within a range, or fails."""
    chosen = select(claims)
    findings = _found([claim.id for claim in chosen], full=full)
    record = _records(chosen)
    for row, finding in zip(record["claims"], findings, strict=True):
        row |= {"verdict": finding.verdict, "sentence": finding.sentence, "numbers": finding.numbers}
        row |= {"close": check_for(row["id"]).close(finding)}
    lines = [_told(c, f, numbers=len(chosen) <= _FEW) for c, f in zip(chosen, findings, strict=True)]
    answer("\n".join([*lines, _count(findings)]), record | {"full": full}, as_json=as_json)


def _found(ids: list[str], *, full: bool) -> list[Finding]:
    """What each check finds. Each has seeds of its own, so many may run on all cores, where a fork is safe."""
    work, turns, cores = partial(_finding, full=full), shown(len(ids), "privet is checking"), most_threads()
    with blas().limit(limits=1):  # its threads would wait for each other: matrices are small
        if len(ids) < _MANY or cores < 2 or threading.active_count() > 1 or not hasattr(os, "fork"):
            return [work(ids[place]) for place in turns]
        all_checks()  # read once, before the fork
        deaf = (signal.SIGINT, signal.SIG_IGN)  # this process will say that it was interrupted
        with get_context("fork").Pool(cores, signal.signal, deaf) as pool:
            coming = pool.imap(work, ids)
            return [next(coming) for _ in turns]


def _finding(claim: str, *, full: bool) -> Finding:
    return check_for(claim)(full=full)


def _records(claims: tuple[Claim, ...] | list[Claim]) -> dict[str, Any]:
    """All that is known of claims but whether they are true."""
    rows = []
    for claim in claims:
        lecture = {"lecture": claim.lecture.key, "author": claim.lecture.author, "title": claim.lecture.title}
        own = {name: getattr(claim, name) for name in _FIELDS}
        known = all_checks()[claim.id]
        how = {"method": known.method, "varies": known.varies, "mutant": dict(known.mutant)}
        rows.append({"id": claim.id, **lecture, **own, **how})
    return {"format": FORMAT, "claims": rows}


def _shown(claim: Claim) -> str:
    known = all_checks()[claim.id]
    parts = {
        "lecture": f"{claim.lecture} ({claim.lecture.key})",
        "place": f"{claim.place} ({claim.kind})",
        "claim": claim.statement,
        "formula": claim.formula,
        "realised by": ", ".join(claim.realised_by),
        "erratum": claim.erratum or "none",
        "check": known.method,
        "varies": known.varies,
        "mutant": ", ".join(f"{name} = {value:g}" for name, value in known.mutant.items()) + " turns the verdict",
    }
    rows = [_wrapped(f"{name:<12} {text}", 13) for name, text in parts.items()]
    return "\n".join([f"Claim {claim.id}", *rows, f"Run it: privet lectures check {claim.id}"])


def _told(claim: Claim, finding: Finding, *, numbers: bool) -> str:
    head = f"{claim.id:>3}  {_WORDS[finding.verdict]:<12}  {claim.lecture.key}, {claim.place}: {finding.sentence}"
    known = check_for(claim.id)
    rows = [_wrapped(head, 19), _wrapped(f"{'':19}Varied: {known.varies}. Close: {known.close(finding)}.", 19)]
    if numbers:
        rows += [f"{'':19}{name} = {value:.10g}" for name, value in finding.numbers.items()]
    return "\n".join(rows)


def _count(findings: list[Finding]) -> str:
    told = [f"{sum(f.verdict == verdict for f in findings)} {word}" for verdict, word in _WORDS.items()]
    return f"{len(findings)} checked: {told[0]}, {told[1]} a range that the sentence names, {told[2]} as printed."


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(text, 100, subsequent_indent=" " * indent, break_long_words=False)
