"""Checks of public parameters, in one place: what counts as a whole number or a number is the same everywhere.

Plain and NumPy integers are whole numbers, Booleans of either kind are not; numbers are plain, NumPy's or exact
fractions, and come back as plain floats. Every refusal says what was expected, what came, what would break and what to
do. Parameters are public, so they may be quoted; cells of a table never come here.
"""

import math
import numbers
from typing import Any

from privet.errors import InvalidParameter

_BOOLEANS = ("bool", "bool_")


def is_whole(value: Any) -> bool:
    """Whether `value` is a whole number; True and False are not."""
    return isinstance(value, numbers.Integral) and type(value).__name__ not in _BOOLEANS


def is_number(value: Any) -> bool:
    """Whether `value` is a real number that is neither infinite nor NaN; True and False are not."""
    return math.isfinite(_real(value))


def whole(name: str, value: Any, *, least: int = 1, most: int | None = None, because: str, use: str) -> int:
    """Return `value` as an int from `least` to `most`, else refuse: `because` says what breaks, `use` what to do.

    Examples
    --------
    >>> whole("steps", 10, because="a run has a whole number of steps", use="Use e.g. 100.")
    10
    >>> whole("steps", True, because="a run has a whole number of steps", use="Use e.g. 100.")
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected steps to be a whole number of at least 1, got True: a run has a whole \
number of steps. Use e.g. 100.
    """
    if is_whole(value) and int(value) >= least and (most is None or int(value) <= most):
        return int(value)
    span = f"of at least {least}" if most is None else f"from {least} to {shown(most)}"
    raise InvalidParameter(f"Expected {name} to be a whole number {span}, got {shown(value)}: {because}. {use}")


def number(name: str, value: Any, *, because: str, use: str) -> float:
    """Return `value` as a finite float, else refuse."""
    if is_number(value):
        return float(value)
    raise InvalidParameter(f"Expected {name} to be a finite number, got {shown(value)}: {because}. {use}")


def positive(name: str, value: Any, *, because: str, use: str, zero: bool = False, infinite: bool = False) -> float:
    """Return `value` as a float above 0 (from 0, with `zero`; infinity too, with `infinite`), else refuse.

    Examples
    --------
    >>> positive("radius", 2, because="a ball has a size", use="Use e.g. 1.")
    2.0
    """
    found = _real(value)
    if (0 < found < math.inf) or (zero and found == 0) or (infinite and found == math.inf):
        return found
    size = "" if infinite else "finite "
    kind = f"a {size}number of at least 0" if zero else f"a positive {size}number"
    raise InvalidParameter(f"Expected {name} to be {kind}, got {shown(value)}: {because}. {use}")


def between(
    name: str,
    value: Any,
    low: float,
    high: float,
    *,
    because: str,
    use: str,
    closed: tuple[bool, bool] = (False, False),
) -> float:
    """Return `value` as a float between `low` and `high`, ends included where `closed` says so, else refuse.

    Examples
    --------
    >>> between("rate", 1, 0, 1, closed=(False, True), because="it is a probability", use="Use e.g. 0.01.")
    1.0
    """
    found = _real(value)
    if (low < found < high) or (closed[0] and found == low) or (closed[1] and found == high):
        return found
    span = f"{'[' if closed[0] else '('}{low:g}, {high:g}{']' if closed[1] else ')'}"
    raise InvalidParameter(f"Expected {name} in {span}, got {shown(value)}: {because}. {use}")


def one_of(name: str, value: Any, known: tuple[str, ...], *, because: str, use: str) -> str:
    """Return `value` if it is one of the names in `known`, else refuse and say which there are."""
    if isinstance(value, str) and value in known:
        return value
    listed = ", ".join(map(repr, known))
    raise InvalidParameter(f"Expected {name} to be one of {listed}, got {value!r}: {because}. {use}")


def shown(value: Any) -> str:
    """`value` as a message quotes it: a number of hundreds of digits by its first ones.

    Examples
    --------
    >>> shown(0.1), shown(10**400)
    ('0.1', '10000000000000000000... (401 characters)')
    """
    try:
        text = repr(value)
    except ValueError:  # Python prints no whole number of more than 4300 digits
        return f"one of thousands of digits ({type(value).__name__})"
    long = isinstance(value, numbers.Number) and len(text) > 60
    return f"{text[:20]}... ({len(text)} characters)" if long else text


def directed(value: Any, *, up: bool) -> float:
    """A finite number as the nearest float that is not below it (`up`), or not above it.

    Examples
    --------
    >>> from fractions import Fraction
    >>> [Fraction(directed(Fraction(1, 10), up=up)) >= Fraction(1, 10) for up in (True, False)]
    [True, False]
    """
    nearest = float(value)
    wrong = nearest < value if up else nearest > value
    return math.nextafter(nearest, math.inf if up else -math.inf) if wrong else nearest


def _real(value: Any) -> float:
    """`value` as a float; NaN for what is no real number, and for one that no float can hold."""
    if not isinstance(value, numbers.Real) or type(value).__name__ in _BOOLEANS:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
