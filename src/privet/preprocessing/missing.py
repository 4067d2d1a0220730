"""What stands for a value that is missing, unlisted or unreadable."""

from typing import Literal, get_args

from privet._checks import one_of

Missing = Literal["neutral", "indicator"]
"""What stands for a value that is missing, unlisted or unreadable: zeros alone, or a 1 in a column of its own as well.
Either way the column's share of a row has norm at most 1."""


def check_missing(missing: str) -> None:
    """Refuse another word."""
    because, use = "nothing says what a missing value becomes", 'Write missing = "neutral".'
    one_of("missing", missing, get_args(Missing), because=because, use=use)
