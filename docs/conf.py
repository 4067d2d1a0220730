"""How Sphinx builds these pages: `make docs`. Why Sphinx, and what each part does: docs/design.md, "These pages"."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "_ext"), str(HERE.parent / "src")]

from public_names import MISSING  # noqa: E402 - beside this file, in no package

import privet  # noqa: E402 - of this checkout, wherever Sphinx is installed

project = "privet"
author = "the authors of privet"
version = release = privet.__version__
html_title = f"privet {version}"
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",  # formulas, typeset when the pages are built
    "docstrings",  # the house's docstrings, as reStructuredText
    "reference",  # a page for every public name
    "crosslinks",  # a name in code leads to its page
    "executed",  # the examples of the tutorials
    "draw",  # the figures
    "claims",  # the lectures' claims
    "ahead",  # what takes long, before any page is read
]
exclude_patterns = ["_ext", "_figures", "_static", "notebooks"]
suppress_warnings: list[str] = []
highlight_language = "text"
pygments_style = "a11y-high-contrast-light"

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_dmath_allow_labels = False
myst_dmath_double_inline = True
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = MISSING
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
toc_object_entries = False
add_module_names = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_remove_prompts = True

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_favicon = "_static/icon.svg"  # else a browser asks a server for one that is not there
html_show_sourcelink = False
html_show_search_summary = False  # read by fetch, which a browser refuses from the disk
html_copy_source = False
html_baseurl = ""
html_theme_options = {
    "logo": {"text": "privet"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "collapse_navigation": True,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
