"""Reports for people: what an epsilon means, and figures.

    meaning(run, delta=..., neighbours=...)     what the best attack can gain, in words
    profile_figure, steps_figure, tradeoff_figure, comparison_figure     what a run costs; needs `privet[plot]`
    rehearse(model, X, y, records=...)          what each epsilon would score, on public rows
    accuracy_figure                             what privacy costs a model; needs `privet[plot]`
    batches_figure                              noise against batch size; needs `privet[plot]`
    save                                        any of them to a file

The figures import matplotlib only when one is drawn.
"""

from privet.accounting.tradeoff import best_attack, best_guess, implied_profile, posterior
from privet.report.accuracy import accuracy_figure
from privet.report.batch_figure import batches_figure
from privet.report.canvas import save
from privet.report.figures import comparison_figure, profile_figure, steps_figure, tradeoff_figure
from privet.report.meaning import Attack, Meaning, meaning, reach
from privet.report.rehearsal import Rehearsal, rehearse

__all__ = [
    "Attack",
    "Meaning",
    "Rehearsal",
    "accuracy_figure",
    "batches_figure",
    "best_attack",
    "best_guess",
    "comparison_figure",
    "implied_profile",
    "meaning",
    "posterior",
    "profile_figure",
    "reach",
    "rehearse",
    "save",
    "steps_figure",
    "tradeoff_figure",
]
