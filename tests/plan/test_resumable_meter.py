"""A run with a journal: what is kept, what is refused, and what counts."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.accounting import ExponentialMechanism, Gaussian, epsilon
from privet.clipping import Adaptive, Clip
from privet.errors import InvalidParameter
from privet.noise import banded_inverse_square_root
from privet.plan import Bounded, Histograms, Plan, Release, ResumableMeter, gradient_plan
from privet.plan.run_journal import RunJournal
from privet.preprocessing.categories import NameFinder
from privet.sampling import Passes, Poisson, Strided

GRADIENTS = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=3, records=100, neighbours="zero_out")
MIXED = Plan(
    releases=(
        Release(name="counts", of="counts", bound=Histograms(), noise_multiplier=5.0, size=4),
        Release(name="pick", of="scores", bound=Bounded(clip=1.0, how="x"), mechanism=ExponentialMechanism(epsilon=1)),
        Release(
            name="batch", of="counts", bound=Histograms(), noise_multiplier=5.0, sampling=Poisson(sampling_rate=0.5)
        ),
    ),
    records=100,
    neighbours="zero_out",
)


def ran(path: Path, stop: str = "") -> tuple[Any, ...]:
    """A run of the mixed plan, up to the release that it stops in."""
    meter = ResumableMeter(MIXED, path)
    batch = meter.open("counts", count=100)
    counts = meter.noisy_counts("counts", np.arange(4))
    meter.open("pick", count=100)
    if stop == "pick":
        return ()
    pick = meter.chosen("pick", lambda random: int(random.words(1)[0] % np.uint64(1000)))
    drawn = meter.open("batch", count=100)
    last = meter.noisy_counts("batch", np.arange(2))
    meter.finish()
    return meter, batch, counts.tolist(), pick, drawn, last.tolist(), meter.public_words(4).tolist()


def test_all_kinds_of_releases_come_back_as_they_were(tmp_path: Path) -> None:
    """Sums, counts, choices and public words of a journal are the same again; nobody's record is asked for."""
    first, again = ran(tmp_path / "a"), ran(tmp_path / "a")
    assert first[2:4] == again[2:4]
    assert first[5:] == again[5:]
    assert again[1].size == again[4].size == 0
    assert first[1] is None
    assert again[0].counted == MIXED
    assert ran(tmp_path / "b")[2:] != first[2:]


def test_an_interrupted_choice_is_counted_twice(tmp_path: Path) -> None:
    """The plan that counts has one more of what was open, and the guarantee is of that plan."""
    ran(tmp_path / "a", stop="pick")
    meter = ran(tmp_path / "a")[0]
    more = dataclasses.replace(MIXED["pick"], name="pick again (release 2, 1)")
    assert meter.counted.releases == (*MIXED.releases, more)
    assert meter.guarantee(delta=1e-6).epsilon == meter.counted.guarantee(delta=1e-6).epsilon
    assert meter.guarantee(delta=1e-6).epsilon > MIXED.guarantee(delta=1e-6).epsilon + 0.5


def test_a_batch_by_place_that_is_drawn_again_costs_its_records_one_more(tmp_path: Path) -> None:
    """Batches in turn: two draws more may be of one record, and cost two steps, not a share of a pass."""
    release = dataclasses.replace(GRADIENTS["gradients"], sampling=Strided(batch=25), times=4)
    plan = dataclasses.replace(GRADIENTS, releases=(release,))
    for _ in range(3):
        meter = ResumableMeter(plan, tmp_path / "a")
        batch = meter.open("gradients", count=100)
        assert batch is not None
        assert batch.tolist() == list(range(0, 100, 4))
    alone = Gaussian(noise_multiplier=5.0)
    assert plan.event == alone * 1
    found = meter.guarantee(delta=1e-6).epsilon
    assert found == pytest.approx(epsilon(alone * 3, delta=1e-6, neighbours="zero_out"), rel=1e-9)


@pytest.mark.parametrize(
    "more",
    [
        {"sampling": Passes(batch=4, batches=25)},
        {"correlation": banded_inverse_square_root(3)},
        {"bound": Adaptive(clip=1.0, count_noise=10.0)},
    ],
    ids=["batches of somebody else", "correlated noise", "a clip that adapts"],
)
def test_what_cannot_be_drawn_again_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    """Batches, noise or clips that depend on those before: no journal is made."""
    given: dict[str, Any] = {"name": "g", "of": "g", "bound": Clip(clip=1.0), "noise_multiplier": 9.0, "times": 3}
    release = Release(**{**given, **more})
    plan = Plan(releases=(release,), records=100, neighbours="zero_out")
    with pytest.raises(InvalidParameter, match="made again"):
        ResumableMeter(plan, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_names_that_are_not_all_shown_are_not_kept(tmp_path: Path) -> None:
    """Noisy counts of names, of which those below a threshold are nobody's to see, are in no journal."""
    plan = Plan(
        releases=NameFinder(columns=("a",), threshold_delta=1e-7).releases(noise_multiplier=5.0), neighbours="zero_out"
    )
    with pytest.raises(InvalidParameter, match="never shown"):
        ResumableMeter(plan, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_draw_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    """Randomness for somebody else's mechanism is not handed out."""
    meter = ResumableMeter(MIXED, tmp_path / "a")
    with pytest.raises(InvalidParameter, match="a journal can keep"):
        meter.draw("counts")


def test_a_journal_of_another_plan_or_a_changed_one_is_refused(tmp_path: Path) -> None:
    """What was released elsewhere is no part of this run, and nobody knows what an edited line counted."""
    path = tmp_path / "a"
    RunJournal(path, GRADIENTS, of="rows").close()
    with pytest.raises(InvalidParameter, match="another's"):
        RunJournal(path, MIXED, of="rows")
    with pytest.raises(InvalidParameter, match="another's"):
        RunJournal(path, GRADIENTS, of="other rows")
    text = path.read_text()
    path.write_text(text.replace('"run": "', '"run": "0'))
    with pytest.raises(InvalidParameter, match="as it was written"):
        RunJournal(path, GRADIENTS, of="rows")


def test_half_a_line_is_cut_off(tmp_path: Path) -> None:
    """What `keep` did not return from is not released, and counts as interrupted; later lines are whole."""
    path = tmp_path / "a"
    journal = RunJournal(path, GRADIENTS)
    journal.open(0)
    journal.keep(0, np.arange(3.0))
    journal.open(1)
    journal.close()
    before = path.read_bytes()
    for length in (1, 17, 40):
        other = RunJournal(path, GRADIENTS)
        other.keep(1, np.arange(3.0))
        other.close()
        os.truncate(path, len(before) + length)
        again = RunJournal(path, GRADIENTS)
        assert path.read_bytes() == before
        assert list(again.values) == [0]
        assert dict(again.interrupted) == {1: 1}
        again.close()


def test_a_journal_is_for_its_owner_and_holds_no_name_of_data(tmp_path: Path) -> None:
    """Mode 0600; what must be the same is there as a digest."""
    journal = RunJournal(tmp_path / "a", GRADIENTS, of="Jane Doe")
    journal.open(0)
    assert "Jane" not in (tmp_path / "a").read_text()
    first = json.loads((tmp_path / "a").read_text().splitlines()[0].split(" ", 1)[1])
    assert set(first) == {"privet_run", "plan", "of", "run"}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
