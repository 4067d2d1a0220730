"""The last vectors of a stream, weighed together: what correlated noise remembers. Private: it is never saved."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from privet._checks import whole
from privet.errors import InvalidParameter


class NeverSaved:
    """What refuses to be copied or pickled: private state of a run."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "Expected correlated noise to stay where it is, got a request to copy or pickle it: whoever reads it can "
            "subtract the noise of the steps that follow. Begin a new run for the steps that are left, and charge it."
        )


class Past(NeverSaved):
    """A ring of the last vectors, which `weighed` sums up: the newest times weights[0], the one before weights[1], …

    Vectors are of whatever `zeros` makes: NumPy arrays, or tensors, if it makes those.

    Examples
    --------
    >>> past = Past([10.0, 1.0], size=1)
    >>> for value in (1.0, 2.0, 3.0):
    ...     past.push(np.array([value]))
    >>> past.weighed().tolist()
    [32.0]
    """

    __slots__ = ("_next", "_rows", "_twice")

    def __init__(self, weights: Any, *, size: int, zeros: Callable[[tuple[int, ...]], Any] = np.zeros) -> None:
        count = len(weights)
        self._rows = zeros((count, size))
        self._twice = zeros((2 * count,))  # oldest first, two times over: a slice of it fits wherever the ring begins
        for place, weight in enumerate(weights):
            self._twice[count - 1 - place] = self._twice[2 * count - 1 - place] = weight
        self._next = 0

    def weighed(self) -> Any:
        """The weighted sum; zeros stand for what was never pushed."""
        return self.turned() @ self._rows

    def turned(self) -> Any:
        """The weights in the order of the rows."""
        count = len(self._rows)
        first = -self._next % count if count else 0
        return self._twice[first : first + count]

    @property
    def rows(self) -> Any:
        """The vectors, in the order of `turned`."""
        return self._rows

    def push(self, value: Any) -> None:
        """Remember one more vector, in place of the oldest."""
        if len(self._rows):
            self._rows[self._next] = value
            self._next = (self._next + 1) % len(self._rows)

    def __repr__(self) -> str:
        return f"<the last {len(self._rows)} vectors of a run: private>"


class StepCount:
    """Counts the steps of a run that must all happen: refuses one too many, and any after one that was interrupted.

    Examples
    --------
    >>> count = StepCount(1)
    >>> with count:
    ...     pass
    >>> with count:
    ...     pass
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected at most 1 steps, got one more: what one record moves was computed for \
those. Plan for more steps.
    """

    __slots__ = ("_open", "done", "steps")

    def __init__(self, steps: int) -> None:
        self.steps = whole("steps", steps, because="a run has a whole number of steps", use="Use e.g. 1000.")
        self.done = 0
        self._open = False

    def __enter__(self) -> None:
        if self._open:
            raise InvalidParameter("""Expected every step to be finished, got one that was interrupted: a record's next
                step would come sooner than was accounted for. Begin a new run for the steps that are left, and charge
                it.""")
        if self.done >= self.steps:
            raise InvalidParameter(f"""Expected at most {self.steps:,} steps, got one more: what one record moves was
                computed for those. Plan for more steps.""")
        self._open = True

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None:
            self.done += 1
            self._open = False
