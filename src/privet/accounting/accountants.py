"""The accountants by name: each bounds a run by one theorem, or says why that theorem does not apply.

| name | theorem | runs that it bounds |
|---|---|---|
| closed | Balle and Wang 2018; hockey stick of one step; Murtagh and Vadhan 2016 | Gaussian runs, one step, (epsilon, delta) steps, few unlike |
| contour | docs/proofs/contour.md, docs/proofs/rare.md | every run with dominating pairs whose loss is not made of many atoms |
| fourier | docs/proofs/fourier.md; the lectures' accountant | every run with dominating pairs |
| renyi | Mironov 2017, conversion of Canonne, Kamath and Steinke 2020 | everything |
| zcdp | Bun and Steinke 2016 | Gaussian, pure, bounded-range and zCDP parts without sampling |
| gdp | Dong, Roth and Su 2022 | Gaussian and pure parts without sampling |
| basic, advanced, optimal | Dwork et al. 2006; Kairouz, Oh and Viswanath 2017 | parts with an epsilon of their own; optimal: equal ones |
"""  # noqa: E501  # one row an accountant

from privet._pages import page
from privet.accounting.both_directions import contour, fourier
from privet.accounting.closed_forms import closed
from privet.accounting.interface import Bounds, Pricer, Uncertified
from privet.accounting.moment_bounds import gdp, renyi, zcdp
from privet.accounting.stepwise import advanced_epsilon, basic_epsilon, by_theorem, optimal_epsilon

__all__ = ["ACCOUNTANTS", "THEOREMS", "Bounds", "Uncertified"]

THEOREMS = {
    "closed": "exact closed form",
    "contour": f"certified contour integral of the moments, {page('docs/proofs/contour.md')}",
    "fourier": f"dominating and dominated lattice laws composed by FFT, {page('docs/proofs/fourier.md')}",
    "renyi": "Rényi moments, Mironov 2017 with the conversion of Canonne, Kamath and Steinke 2020",
    "zcdp": "concentrated DP, Bun and Steinke 2016",
    "gdp": "Gaussian DP, Dong, Roth and Su 2022",
    "basic": "basic composition, Dwork et al. 2006",
    "advanced": "advanced composition, Kairouz, Oh and Viswanath 2017, theorem 3.5",
    "optimal": "optimal composition, Kairouz, Oh and Viswanath 2017, theorem 3.3",
    "allocation": "laws above and below the sum of log-normal ratios, composed by FFT, "
    + page("docs/proofs/allocation.md"),
    "selection": "private selection, Papernot and Steinke 2022, by the trial's exact profile, "
    + page("docs/proofs/selection.md"),
}


ACCOUNTANTS: dict[str, Pricer] = {
    "closed": closed,
    "contour": contour,
    "fourier": fourier,
    "renyi": renyi,
    "zcdp": zcdp,
    "gdp": gdp,
    "basic": by_theorem(basic_epsilon),
    "advanced": by_theorem(advanced_epsilon),
    "optimal": by_theorem(optimal_epsilon),
}
