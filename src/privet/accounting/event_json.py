"""Events as JSON text and back, unchanged.

The text is `{"privet_event": 1, "event": {...}}`; every event is an object with its `kind` and exactly the fields of
that kind. An event's meaning never changes, so neither does what version 1 says; a new meaning is a new kind.
"""

import json
import sys
from typing import Any, NoReturn

from privet.accounting import events as ev
from privet.errors import EventFormat, InvalidParameter

VERSION = 1

# kind -> (class, its fields in the order they are written). "event" and "parts" hold events, "neighbours" a
# relation, all others numbers.
_KINDS: dict[str, tuple[type[ev.Event], tuple[str, ...]]] = {
    "gaussian": (ev.Gaussian, ("noise_multiplier",)),
    "laplace": (ev.Laplace, ("scale",)),
    "randomized_response": (ev.RandomizedResponse, ("epsilon",)),
    "kary_response": (ev.KaryResponse, ("epsilon", "answers")),
    "discrete_laplace": (ev.DiscreteLaplace, ("scale", "clip")),
    "discrete_gaussian": (ev.DiscreteGaussian, ("noise_multiplier",)),
    "pure": (ev.Pure, ("epsilon",)),
    "approximate": (ev.Approximate, ("epsilon", "delta")),
    "exponential_mechanism": (ev.ExponentialMechanism, ("epsilon",)),
    "zero_concentrated": (ev.ZeroConcentrated, ("rho",)),
    "poisson_sampled": (ev.PoissonSampled, ("rate", "event")),
    "fixed_size_sampled": (ev.FixedSizeSampled, ("batch", "records", "event")),
    "allocated": (ev.Allocated, ("steps", "times", "event")),
    "negative_binomial_trials": (ev.NegativeBinomialTrials, ("shape", "stop", "event")),
    "poisson_trials": (ev.PoissonTrials, ("mean", "event")),
    "repeated": (ev.Repeated, ("count", "event")),
    "composed": (ev.Composed, ("parts",)),
    "under": (ev.Under, ("neighbours", "event")),
}
_COUNTS = ("count", "batch", "records", "answers", "clip", "steps", "times")
_LARGEST = sys.float_info.max
_KIND_OF = {kind_class: kind for kind, (kind_class, _) in _KINDS.items()}

_EXAMPLE = '{"privet_event": 1, "event": {"kind": "gaussian", "noise_multiplier": 1.1}}'
_TOO_DEEP = "nested deeper than Python can follow: write repetition as one 'repeated' and a sum as one 'composed'."


def to_json(event: ev.Event) -> str:
    """Write `event` as one line of JSON that `from_json` reads back as an equal event.

    Promise: `from_json(to_json(event)) == event`; floats are written as the shortest decimal that reads back
    to the same float, whole numbers as whole numbers.

    Examples
    --------
    >>> to_json(ev.Gaussian(noise_multiplier=1.1).poisson(rate=0.01) * 1000)  # doctest: +NORMALIZE_WHITESPACE
    '{"privet_event": 1, "event": {"kind": "repeated", "count": 1000,
      "event": {"kind": "poisson_sampled", "rate": 0.01, "event": {"kind": "gaussian", "noise_multiplier": 1.1}}}}'
    """
    try:
        return json.dumps({"privet_event": VERSION, "event": _written(event)}, allow_nan=False)
    except RecursionError:
        raise EventFormat(f"Expected an event of ordinary depth, got one {_TOO_DEEP}") from None


def from_json(text: str) -> ev.Event:
    """Read the event that `to_json` wrote, or say what is wrong with the text and where.

    Promise: nothing is guessed. A field too many, too few or twice, an unknown kind, a number that the event
    itself would refuse and a later version all raise :class:`privet.errors.EventFormat`.

    Examples
    --------
    >>> from_json('{"privet_event": 1, "event": {"kind": "laplace", "scale": 4.0}}')
    Laplace(scale=4.0)
    """
    try:
        return _read(_document(text), "event")
    except RecursionError:
        raise EventFormat(f"Expected an event of ordinary depth, got JSON {_TOO_DEEP}") from None


def _written(event: ev.Event) -> dict[str, Any]:
    kind = _KIND_OF.get(type(event))
    if kind is None:
        raise EventFormat(
            f"Expected an event of privet, got {type(event).__name__}: it has no name in the format, so nobody could "
            "read it back. Describe it by Pure, Approximate or ZeroConcentrated with the bound that is proved for it."
        )
    written: dict[str, Any] = {"kind": kind}
    for field in _KINDS[kind][1]:
        value = getattr(event, field)
        if field == "event":
            written[field] = _written(value)
        elif field == "parts":
            written[field] = [_written(part) for part in value]
        else:
            written[field] = value
    return written


def _document(text: str) -> Any:
    if not isinstance(text, str):
        raise EventFormat(f"Expected JSON text, got {type(text).__name__}. Pass a str, such as {_EXAMPLE}.")
    try:
        document = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except EventFormat:
        raise
    except ValueError as error:
        raise EventFormat(
            f"Expected JSON, got text that is not ({error}). Write the file with to_json(event); "
            f"it looks like {_EXAMPLE}."
        ) from None
    if not isinstance(document, dict) or "privet_event" not in document:
        raise EventFormat(
            "Expected an object with 'privet_event' and 'event', got "
            f"{_fields(document)}: without its version the event could mean anything. It looks like {_EXAMPLE}."
        )
    version = document["privet_event"]
    if type(version) is not int or version < 1:
        raise EventFormat(f"Expected 'privet_event' to be the format's version, got {version!r}. Write {VERSION}.")
    if version > VERSION:
        raise EventFormat(
            f"Expected an event of version {VERSION}, got version {version}: it may say things that this privet does "
            "not know of, and their privacy cost would be missing. Install a later privet."
        )
    _exactly(document, ("privet_event", "event"), "the file")
    return document["event"]


def _read(value: Any, where: str) -> ev.Event:
    if not isinstance(value, dict) or "kind" not in value:
        raise EventFormat(
            f"Expected an object with a 'kind' at {where}, got {_fields(value)}. Write for example "
            '{"kind": "gaussian", "noise_multiplier": 1.1}.'
        )
    kind = value["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise EventFormat(
            f"Expected the kind at {where} to be one of {', '.join(_KINDS)}, got {kind!r}: an event nobody can name "
            "has no privacy cost. Correct the kind, or install the privet that wrote it."
        )
    kind_class, fields = _KINDS[kind]
    _exactly(value, ("kind", *fields), f"{where} ({kind})")
    arguments = {field: _argument(field, value[field], f"{where}.{field}") for field in fields}
    try:
        return kind_class(**arguments)
    except InvalidParameter as error:
        raise EventFormat(f"At {where} ({kind}): {error}") from None


def _argument(field: str, value: Any, where: str) -> Any:
    if field == "event":
        return _read(value, where)
    if field == "parts":
        if not isinstance(value, list):
            raise EventFormat(f"Expected a list of events at {where}, got {_fields(value)}. Put the parts in [ ].")
        return tuple(_read(part, f"{where}[{index}]") for index, part in enumerate(value))
    if isinstance(value, int) and abs(value) > _LARGEST and field not in _COUNTS:
        raise EventFormat(f"Expected numbers that fit a float at {where}, got a larger one. Write a smaller number.")
    return value


def _exactly(value: dict[str, Any], expected: tuple[str, ...], where: str) -> None:
    missing = [field for field in expected if field not in value]
    unknown = [field for field in value if field not in expected]
    if missing or unknown:
        faults = {"missing": missing, "unknown": unknown}
        got = "; ".join(f"{fault} {', '.join(map(repr, names))}" for fault, names in faults.items() if names)
        raise EventFormat(
            f"Expected exactly the fields {', '.join(map(repr, expected))} in {where}, got {got}: "
            "a field that is dropped or guessed would change the privacy cost. Correct the names."
        )


def _fields(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, value)) or 'no fields'}"
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise EventFormat(f"Expected each field once, got {twice!r} twice: either could be meant. Keep one of them.")
    return result


def _no_constant(name: str) -> NoReturn:
    raise EventFormat(f"Expected finite numbers, got {name}: no privacy cost follows from it. Write a plain number.")
