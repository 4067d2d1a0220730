"""The look of every figure, and how one is written to a file.

A figure is a matplotlib `Figure` of its own (no global state, no window) on white with dark text, so that it reads the
same on a light and on a dark page. Curves are told apart by colour (Okabe and Ito's eight, safe for the colour-blind)
*and* by dashes. Needs the extra `privet[plot]`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.errors import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1)), "-", "--")
INK, FAINT, _PAPER = "#222222", "#8a8a8a", "#ffffff"
_STYLE: dict[Any, Any] = {
    "font.size": 11,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": _PAPER,
    "figure.facecolor": _PAPER,
    "savefig.facecolor": _PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.2,
    "legend.frameon": False,
    "mathtext.default": "regular",
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
}


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a figure to `path`, in the format its ending names, on white with dark text whatever the local style.

    Examples
    --------
    >>> import tempfile
    >>> from privet.accounting import Gaussian
    >>> from privet.report import tradeoff_figure
    >>> figure = tradeoff_figure(Gaussian(noise_multiplier=1.0), neighbours="add_remove")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(figure, Path(folder) / "tradeoff.png").name
    'tradeoff.png'
    """
    path = Path(path)
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        raise InvalidParameter(f"""Expected a file name ending in one of {", ".join(sorted(formats))}, got
            {path.name!r}: the ending says what to write. Use .png or .svg.""")
    figure.savefig(path, dpi=160, facecolor=_PAPER)
    return path


@contextmanager
def canvas(title: str, subtitle: str, size: tuple[float, float] = (7.4, 4.6)) -> "Iterator[tuple[Figure, Axes]]":
    """A figure in the house style, titled; a kind error where matplotlib is missing."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Expected matplotlib, which draws the figures, got none installed. Run: pip install 'privet[plot]'."
        ) from error
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(f"{title}\n", loc="left", fontsize=13, fontweight="bold")
        axes.annotate(subtitle, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points", color="#555555")
        yield figure, axes


def styles() -> Iterator[dict[str, Any]]:
    """Colours and dashes of curve after curve; from the eighth on the same colours with other dashes."""
    for turn in count():
        for place, colour in enumerate(COLOURS):
            yield {"color": colour, "linestyle": _DASHES[(place + turn) % len(_DASHES)]}
