"""Figures show what the API says, labelled, and look the same everywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet import accounting
from privet.accounting import Gaussian, Pure
from privet.errors import InvalidParameter, PrivetError
from privet.privacy import Neighbours
from privet.report import best_attack, comparison_figure, profile_figure, save, steps_figure, tradeoff_figure
from privet.report.meaning import run_profile

STEP = Gaussian(noise_multiplier=1.5).poisson(rate=0.01)
RUN = STEP * 1000
RUNS = {"noise 1": Gaussian(noise_multiplier=1.0) * 2, "noise 3": Gaussian(noise_multiplier=3.0) * 2}
NEIGHBOURS: Neighbours = "add_remove"


def axes_of(figure: Any) -> Any:
    (axes,) = figure.axes
    return axes


def curves(figure: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axes_of(figure).lines}


def words(figure: Any) -> str:
    axes = axes_of(figure)
    return "\n".join([axes.get_title(loc="left"), *(text.get_text() for text in axes.texts)])


@pytest.mark.medium
def test_the_profile_is_the_accountants() -> None:
    """The curve is accounting.profile on a logarithmic scale, with units on both axes and the relation in words."""
    at = np.linspace(0.0, 3.0, 7)
    figure = profile_figure(RUN, neighbours=NEIGHBOURS, epsilons=at)
    axes = axes_of(figure)
    (line,) = axes.lines
    assert np.array_equal(line.get_xdata(), at)
    assert np.array_equal(line.get_ydata(), accounting.profile(RUN, at, neighbours=NEIGHBOURS))
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("ε (nats)", "δ (probability)", "log")
    assert "one record added or removed" in words(figure)
    assert axes.get_legend() is None


def test_the_profile_shows_several_runs_and_a_mark() -> None:
    """One curve a run, named in the legend, in different colours and dashes; the marked point is where it should be."""
    figure = profile_figure(RUNS, neighbours=NEIGHBOURS, mark=(2.0, 1e-3))
    lines = curves(figure)
    assert list(lines)[:2] == list(RUNS)
    assert len({(line.get_color(), line.get_linestyle()) for line in list(lines.values())[:2]}) == 2
    assert [text.get_text() for text in axes_of(figure).get_legend().get_texts()] == list(RUNS)
    *_, point = axes_of(figure).lines
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (2.0, 1e-3)
    assert "ε = 2, δ = 0.001" in words(figure)


def test_a_delta_of_zero_is_left_out() -> None:
    """Pure privacy has no delta beyond its epsilon: the curve ends there instead of falling off the scale."""
    at = np.array([0.0, 0.5, 1.5])
    (line,) = axes_of(profile_figure(Pure(epsilon=1.0), neighbours=NEIGHBOURS, epsilons=at)).lines
    assert np.isfinite(line.get_ydata()).tolist() == [True, True, False]


def test_no_noise_can_be_drawn() -> None:
    """A run without noise has the profile 1 and the trade-off 0, not an error."""
    bare = Gaussian(noise_multiplier=0.0)
    (line,) = axes_of(profile_figure(bare, neighbours=NEIGHBOURS)).lines
    assert np.all(line.get_ydata() == 1.0)
    assert np.all(curves(tradeoff_figure(bare, neighbours=NEIGHBOURS))["this run"].get_ydata() == 0.0)


def test_steps_are_priced_one_by_one() -> None:
    """Each point is accounting.epsilon of that many steps, for each accountant asked for."""
    counts = [1, 10, 500]
    figure = steps_figure(STEP, steps=counts, delta=1e-5, neighbours=NEIGHBOURS, accountants=["auto", "renyi"])
    lines = curves(figure)
    assert list(lines) == ["auto", "renyi"]
    for name, line in lines.items():
        truth = [accounting.epsilon(STEP * k, delta=1e-5, neighbours=NEIGHBOURS, accountant=name) for k in counts]
        assert np.array_equal(line.get_xdata(), counts)
        assert np.array_equal(line.get_ydata(), truth)
    axes = axes_of(figure)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("steps", "ε (nats)")
    assert "δ = 1e-05" in words(figure)


def test_steps_end_at_the_last() -> None:
    """A number of steps is drawn from 1 up to it; one step alone is a point, not an error."""
    (line,) = axes_of(steps_figure(Gaussian(noise_multiplier=9.0), steps=300, delta=1e-5, neighbours=NEIGHBOURS)).lines
    assert (line.get_xdata()[0], line.get_xdata()[-1]) == (1, 300)
    (line,) = axes_of(steps_figure(Gaussian(noise_multiplier=9.0), steps=1, delta=1e-5, neighbours=NEIGHBOURS)).lines
    assert list(line.get_xdata()) == [1]


def test_tradeoff_is_one_minus_the_best_attack() -> None:
    """The curve is 1 - best_attack, falls, and stays below the diagonal of perfect privacy."""
    figure = tradeoff_figure(RUNS, neighbours=NEIGHBOURS)
    lines = curves(figure)
    assert list(lines) == ["perfect privacy", *RUNS]
    assert np.array_equal(lines["perfect privacy"].get_ydata(), [1, 0])
    for name, run in RUNS.items():
        rates, misses = lines[name].get_xdata(), lines[name].get_ydata()
        bound = best_attack(run_profile(run, neighbours=NEIGHBOURS), rates[50:90:10])
        assert np.allclose(1 - misses[50:90:10], bound, rtol=5e-3)
        assert np.all(1 - misses[50:90:10] >= bound * (1 - 1e-6))
        assert np.all(misses <= 1 - rates + 1e-12)
        assert np.all(np.diff(misses) <= 1e-12)
    axes = axes_of(figure)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("false positive rate", "false negative rate, at least")


def test_comparison_has_a_bar_and_a_value_for_each_accountant() -> None:
    """All rows of accounting.compare are there, sorted, each with its number or the words that it has none."""
    rows = accounting.compare(RUN, delta=1e-5, neighbours=NEIGHBOURS).rows
    figure = comparison_figure(RUN, delta=1e-5, neighbours=NEIGHBOURS)
    axes = axes_of(figure)
    named = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(named) == sorted(row.accountant for row in rows)
    assert len(axes.patches) == len(rows)
    known = sorted(row.epsilon for row in rows if row.epsilon is not None and np.isfinite(row.epsilon))
    widths = [patch.get_width() for patch in axes.patches]
    assert widths[0] == known[0]
    assert widths[: len(known)] == sorted(widths[: len(known)])
    assert words(figure).count("no bound") == sum(row.epsilon is None for row in rows)
    assert axes.get_xlabel() == "ε (nats)"


@pytest.mark.medium
def test_saved_on_white_whatever_the_local_style(tmp_path: Path) -> None:
    """A dark local style changes neither the paper nor the ink of a saved figure."""
    import matplotlib as mpl
    from matplotlib.image import imread

    with mpl.rc_context({"figure.facecolor": "black", "text.color": "white", "savefig.facecolor": "black"}):
        path = save(tradeoff_figure(RUN, neighbours=NEIGHBOURS), tmp_path / "tradeoff.png")
    picture = imread(path)
    assert np.all(picture[0, 0] == 1.0)
    assert picture[..., :3].min() < 0.2
    assert path.stat().st_size > 10_000


@pytest.mark.medium
@pytest.mark.parametrize("name", ["figure.svg", "figure.pdf"])
def test_saved_as_its_ending_says(name: str, tmp_path: Path) -> None:
    """Vector formats are chosen by the ending."""
    head = save(steps_figure(STEP, steps=[100, 200], delta=1e-5, neighbours=NEIGHBOURS), tmp_path / name).read_bytes()[
        :300
    ]
    assert (b"svg" if name.endswith("svg") else b"%PDF") in head


@pytest.mark.medium
def test_unknown_endings_are_refused(tmp_path: Path) -> None:
    """A file name that names no picture format is refused with the ones there are."""
    with pytest.raises(InvalidParameter, match=r"ending in one of .*png.*got 'figure\.docx'"):
        save(tradeoff_figure(RUN, neighbours=NEIGHBOURS), tmp_path / "figure.docx")


def test_nothing_to_draw_is_refused() -> None:
    """An empty dictionary of runs is refused."""
    with pytest.raises(InvalidParameter, match="at least one run"):
        profile_figure({}, neighbours=NEIGHBOURS)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"privet\[plot\]"):
        tradeoff_figure(RUN, neighbours=NEIGHBOURS)


@pytest.mark.medium
def test_importing_reports_does_not_import_matplotlib() -> None:
    """Reports in words need no drawing library, and drawing opens no window toolkit."""
    code = "import sys, privet.report; sys.exit('matplotlib' in sys.modules)"
    paths = [str(Path(accounting.__file__).parents[2]), *sys.path]
    assert subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}; {code}"]).returncode == 0
    tradeoff_figure(RUN, neighbours=NEIGHBOURS)
    assert "matplotlib.pyplot" not in sys.modules


def test_the_relation_is_never_implied() -> None:
    """An unknown relation is refused as everywhere else."""
    wrong: Any = "neighbours"
    with pytest.raises(PrivetError, match="Expected neighbours"):
        profile_figure(RUN, neighbours=wrong)
