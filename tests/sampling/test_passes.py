"""Batches that somebody else draws: no amplification, and as many releases as passes."""

from __future__ import annotations

import pytest

from privet.accounting import Gaussian
from privet.errors import InvalidParameter, NoProvenBound
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Passes

NOISE = Gaussian(noise_multiplier=2.0)


@pytest.mark.parametrize(("steps", "passes"), [(1, 1), (3, 1), (4, 2), (12, 4)])
def test_a_record_is_charged_once_a_pass_begun(steps: int, passes: int) -> None:
    """⌈steps ÷ batches⌉ releases; with the last rows of a pass dropped, not a pass fewer."""
    scheme = Passes(batch=300, batches=3)  # of 1,000 records, the last 100 dropped
    assert scheme.event(NOISE, steps=steps, records=1000, neighbours="zero_out") == NOISE * passes


def test_an_added_record_has_no_bound_and_nothing_is_drawn_here() -> None:
    """A joining record moves all later ones to other batches; and a request to draw is refused."""
    scheme = Passes(batch=300, batches=3)
    with pytest.raises(NoProvenBound, match="replace_one"):
        scheme.event(NOISE, steps=3, records=1000, neighbours="add_remove")
    with pytest.raises(InvalidParameter, match="somebody else draws"):
        scheme.indices(1000, 0, fixed_seed_invalidates_guarantee(1))
    with pytest.raises(InvalidParameter, match="whole number"):
        Passes(batch=0, batches=3)
    assert (scheme.batch_size(1000), scheme.batch_size(10), scheme.most(1000)) == (300.0, 10.0, 300)
