"""The figure of constants shows what the rules say, names every rule once, and fits its paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.lectures import RULES, rule
from privet.lectures.figures import constants_figure
from privet.theory import exact_noise

ROOT = Path(__file__).parents[3]


def curves(figure: Any) -> dict[str, Any]:
    (axes,) = figure.axes
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def dots(figure: Any) -> list[float]:
    (axes,) = figure.axes
    return [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"]


def shown(name: str) -> str:
    return re.sub(r"(?<=\d)_(?=\d)", ".", name).replace("_", " ")


@pytest.mark.parametrize(("delta", "steps"), [(1e-5, 1), (1e-5, 1000), (0.1, 1), (1e-12, 30)])
def test_curves_are_printed_over_exact_noise(delta: float, steps: int) -> None:
    """Each rule's curve is its printed noise ÷ exact_noise, at the epsilons asked for; twins share one."""
    at = [0.05, 1.0, 20.0]
    lines = curves(constants_figure(delta=delta, steps=steps, epsilons=at))
    for known in RULES:
        found = [line for name, line in lines.items() if shown(known.name) in name.split(", ")]
        if steps > 1 and known.name in {"classical", "single_step_log"}:
            assert not found
            continue
        (line,) = found
        run = {"delta": delta, "steps": steps, "sensitivity": 1.0}
        truth = [known.printed_noise(epsilon=e, **run) / exact_noise(epsilon=e, **run) for e in at]  # type: ignore[arg-type]
        assert np.array_equal(line.get_xdata(), at)
        assert line.get_ydata() == pytest.approx(truth, rel=1e-12)


def test_twins_are_named_together() -> None:
    """Claim 3.2 and rho read as an equality are one curve with both names; ten rules, nine curves."""
    lines = curves(constants_figure())
    assert len(lines) == len(RULES) - 1 == 9
    assert "claim 3.2, rho as equality" in lines


def test_curves_differ_and_keep_their_looks() -> None:
    """No two curves have the same colour and dashes, and a rule looks the same for any number of steps."""

    def looks(figure: Any) -> dict[str, tuple[Any, Any]]:
        return {name: (line.get_color(), line._dash_pattern) for name, line in curves(figure).items()}

    one, many = looks(constants_figure()), looks(constants_figure(steps=1000))
    assert len({str(look) for look in one.values()}) == len(one)
    assert many.items() <= one.items()


def test_dots_are_the_frontiers() -> None:
    """A dot where a rule stops being true, if that is in sight; words say it for all."""
    figure = constants_figure()
    names = ("lemma_1_1", "claim_3_2", "basic_composition", "classical")
    assert dots(figure) == pytest.approx([rule(name).frontier(delta=1e-5) for name in names])
    words = "\n".join(text.get_text() for text in figure.axes[0].texts)
    for said in ("true to ε ≈ 7.97", "true to ε ≈ 0.324", "true to ε ≈ 168", "true to ε ≈ 4,520", "always true"):
        assert said in words


@pytest.mark.medium
@pytest.mark.parametrize(("delta", "steps"), [(1e-5, 1), (1e-5, 1000), (0.1, 1), (1e-12, 100_000)])
def test_words_fit_and_do_not_touch(delta: float, steps: int) -> None:
    """All words lie within the paper, and no two overlap."""
    figure = constants_figure(delta=delta, steps=steps)
    figure.canvas.draw()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    width, height = figure.bbox.width, figure.bbox.height
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)
    assert not [1 for i, box in enumerate(boxes) for other in boxes[:i] if box.overlaps(other)]


@pytest.mark.parametrize("epsilons", [[], [1.0], [0.0, 1.0], [1.0, np.inf], [1.0, np.nan]])
def test_epsilons_must_be_positive(epsilons: list[float]) -> None:
    """A rule divides by epsilon, and a curve has two points: anything else is refused."""
    with pytest.raises(InvalidParameter, match="epsilons"):
        constants_figure(epsilons=epsilons)


def test_figures_of_the_pages_are_drawn() -> None:
    """Every drawing that a page shows is a file or in the list of docs/draw.py, and every one of that list is shown."""
    docs = ROOT / "docs"
    places = set(re.findall(r'^    "(.*\.svg)":', (docs / "draw.py").read_text(encoding="utf-8"), re.M))
    shown_ = {
        (page.parent / name).relative_to(docs).as_posix()
        for page in docs.rglob("*.md")
        for name in re.findall(r"!\[[^]]*\]\(([^)]*\.svg)\)", page.read_text(encoding="utf-8"))
    }
    assert places == {place for place in shown_ if not (docs / place).exists()}


def test_the_gallery_shows_every_figure() -> None:
    """docs/gallery.md shows each drawing of docs/draw.py once for each function, and names each function that draws."""
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    functions = {
        name
        for path in (ROOT / "src" / "privet").rglob("*.py")
        for name in re.findall(r"^def ([a-z]\w*_figure)\(", path.read_text(encoding="utf-8"), re.M)
    }
    assert len(functions) >= 16
    assert {name for name in functions if name not in gallery} == set()
