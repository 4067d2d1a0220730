"""The figures of the lectures' pages, each computed when it is drawn; needs `privet[plot]`."""

from privet.lectures.figures.calibration import constants_figure

__all__ = ["constants_figure"]
