"""Where the pages of docs/ are read by somebody who has only the installed package."""

SITE = "https://privetdp.github.io/privet"  # also in pyproject.toml: CONTRIBUTING.md, "Where it lives"


def page(path: str) -> str:
    """The address on the site of a page of the repository, to be printed.

    Promise: `path` is a file of docs/, checked for every call in src by tests/test_package.py.

    Examples
    --------
    >>> page("docs/proofs/contour.md").removeprefix(SITE)
    '/proofs/contour.html'
    """
    return f"{SITE}/{path.removeprefix('docs/').removesuffix('.md')}.html"
