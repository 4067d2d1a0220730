"""How an answer leaves the command line: a sentence or JSON on stdout, remarks and refusals on stderr."""

import json
import math
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privet.accounting.event_json import to_json
from privet.accounting.events import Event
from privet.errors import LooseBound, PrivetError, RepeatedFit, SchemaMisfit, SmallEffectiveSample
from privet.privacy import Guarantee

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_REMARKS: tuple[type[Warning], ...] = (LooseBound, RepeatedFit, SchemaMisfit, SmallEffectiveSample)


class Refusal(click.ClickException):
    """An error that the user can mend: one paragraph on stderr, exit code 2."""

    exit_code = 2


class Answering(click.Command):
    """A command whose known errors become one paragraph, and whose warnings become remarks; never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what went wrong into words."""
        try:
            with warnings.catch_warnings(record=True) as remarks:
                for kind in _REMARKS:
                    warnings.simplefilter("always", kind)
                return super().invoke(ctx)
        except BrokenPipeError:  # whoever read us has seen enough; click ends quietly
            raise
        except (EOFError, zlib.error):  # click would call the first an abort
            raise Refusal(
                "Expected a whole compressed file, got one that is cut off or damaged: its rows cannot be read. "
                "Copy it again."
            ) from None
        except (PrivetError, ImportError, OSError, UnicodeDecodeError) as error:
            raise Refusal(str(error)) from None
        finally:
            _pass_on(remarks)


def _pass_on(remarks: list[warnings.WarningMessage]) -> None:
    """Say each of our own remarks once, all those on loose bounds in one line; leave other warnings as they are."""
    for kind in _REMARKS:
        notes = list(dict.fromkeys(str(remark.message) for remark in remarks if remark.category is kind))
        if kind is LooseBound and len(notes) > 1:
            notes = [f"{notes[0]} (And {len(notes) - 1} more bounds likewise.)"]
        for note in notes:
            click.echo(f"Note: {note}", err=True)
    for remark in remarks:
        if remark.category not in _REMARKS:
            warnings.warn_explicit(remark.message, remark.category, remark.filename, remark.lineno)


class Answers(click.Group):
    """A group of answering commands."""

    command_class = Answering


def answer(text: str, record: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the sentence, or the record as one JSON object; both say the same."""
    click.echo(json.dumps(_plain(record), allow_nan=False) if as_json else text)


def guarantee_record(promise: Guarantee, run: Event) -> dict[str, Any]:
    """Return all that a guarantee says, and the event it is about, by field name."""
    record = {field.name: getattr(promise, field.name) for field in fields(promise)}
    return record | {"event": json.loads(to_json(run))}


def draw(figure: "Callable[[], Figure]", path: Path | None) -> None:
    """Draw the figure to `path` if one is asked for, and say so on stderr."""
    if path is None:
        return
    from privet.report import save

    click.echo(f"Figure written to {save(figure(), path)}.", err=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):  # also NumPy's
        return float(value) if math.isfinite(value) else None
    return value
