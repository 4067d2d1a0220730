"""Blocks of rows read ahead: in order, one ahead and no more, errors where they belong."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from privet.engines.sources import ahead
from privet.sums.blocks import threads_at_most


def numbers(made: list[tuple[int, str]], count: int = 5) -> Iterator[int]:
    """Whole numbers; which were made, and in which thread, is noted."""
    for number in range(count):
        made.append((number, threading.current_thread().name))
        yield number
    raise KeyError("the end")


def test_blocks_are_made_one_ahead_in_a_thread_of_their_own() -> None:
    """All of them in order, then the error that ended them; while one is used the next is made, and no other."""
    made: list[tuple[int, str]] = []
    with threads_at_most(2):
        blocks = ahead(numbers(made))
        for number in range(5):
            assert next(blocks) == number
            assert len(made) <= number + 2
        with pytest.raises(KeyError, match="the end"):
            next(blocks)
    assert [number for number, _ in made] == list(range(5))
    assert threading.current_thread().name not in {name for _, name in made}


def test_who_stops_early_leaves_no_thread() -> None:
    """A reader that is closed waits for the block that is being made, and for no more."""
    made: list[tuple[int, str]] = []
    before = threading.active_count()
    with threads_at_most(2):
        blocks = ahead(numbers(made))
        next(blocks)
        blocks.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert len(made) <= 2


def test_where_there_is_one_thread_there_is_no_other() -> None:
    """As in a task of a cluster."""
    made: list[tuple[int, str]] = []
    with threads_at_most(1):
        assert next(ahead(numbers(made))) == 0
    assert made == [(0, threading.current_thread().name)]
