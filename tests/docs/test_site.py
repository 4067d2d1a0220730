"""The built site, as a reader sees it: `make test-docs` builds it and runs these."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
CODE = {"code", "pre", "math", "script", "style", "svg", "title", "kbd"}  # whose text is no prose
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="the site is not built: make docs"),
]


class Page(HTMLParser):
    """What a page says outside code, what it links to and fetches, and the places that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.prose: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.ids: set[str] = set()
        self.formulas = 0
        self._open: list[tuple[str, bool]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.ids |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a":
            self.links.append(given.get("href", ""))
        if tag in ("script", "img", "link"):
            self.fetched.append(given.get("src", given.get("href", "")))
        self.formulas += tag == "math"
        if tag not in EMPTY:
            inside = bool(self._open) and self._open[-1][1]
            self._open.append((tag, inside or tag in CODE or "sig" in given.get("class", "").split()))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not (self._open and self._open[-1][1]):
            self.prose.append(data)


def pages() -> list[Path]:
    """All pages but the coloured sources, which are code from top to bottom."""
    return sorted(path for path in SITE.rglob("*.html") if "_modules" not in path.parts and "_static" not in path.parts)


@cache
def read(path: Path) -> Page:
    return Page(path)


def test_every_public_name_has_an_entry() -> None:
    """Each name of each room's `__all__` can be linked to on a page of its own."""
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    from public_names import names  # type: ignore[import-not-found]  # in no package

    assert len(names()) > 300
    missing = []
    for name in names():
        path = SITE / "reference" / f"{name.dotted}.html"
        if not path.is_file() or not {name.dotted, f"module-{name.dotted}"} & read(path).ids:
            missing.append(name.dotted)
    assert missing == []


def test_no_markup_is_left_in_the_text() -> None:
    """Outside code there is no `^{`, no `_{`, no dollar of a formula, no star: markup that was not understood."""
    marks = re.compile(r"\^\{|_\{|\*|\$[^$\n]*\\|\\(?:frac|sum|sqrt|le|ge|sigma)\b|\{\{")
    left = [
        f"{path.relative_to(SITE)}: {text.strip()[:100]!r}"
        for path in pages()
        for text in read(path).prose
        if marks.search(text)
    ]
    assert left == []


def test_links_lead_somewhere() -> None:
    """Every link inside the site has its page, and its place on that page."""
    broken = []
    for path in pages():
        for link in read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link in ("", "#"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target.suffix == ".html" and place not in read(target).ids):
                broken.append(f"{path.relative_to(SITE)}: {link}")
    assert broken == []


def test_nothing_is_fetched_from_a_network() -> None:
    """Scripts, styles, images and fonts are files beside the pages."""
    fetched = {source for path in pages() for source in read(path).fetched if urlsplit(source).netloc}
    styles = "\n".join(path.read_text(encoding="utf-8") for path in SITE.rglob("*.css"))
    assert fetched == set()
    assert re.findall(r"url\(\s*[\"']?(?:https?:)?//[^)]*\)|@import[^;]*//[^;]*", styles) == []


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found)
        yield browser
        browser.close()


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_without_errors_and_fit_their_width(chromium: Any, scheme: str, half: int) -> None:
    """From the disk, at 1280 and 400 pixels: the console says nothing, and nothing sticks out to the right."""
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("requestfailed", lambda request: said.append(f"not loaded: {request.url}"))
    guilty = []
    for path in pages()[half::2]:
        said.clear()
        tab.set_viewport_size({"width": 1280, "height": 900})
        tab.goto(path.as_uri())
        theme = tab.evaluate("document.documentElement.dataset.theme")
        wide = [tab.evaluate(WIDER)]
        tab.set_viewport_size({"width": 400, "height": 800})
        wide.append(tab.evaluate(WIDER))
        if said or any(wide) or theme != scheme:
            guilty.append((str(path.relative_to(SITE)), theme, list(said), wide))
    context.close()
    assert guilty == []


# By how many pixels the page is wider than the window.
WIDER = "Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)"


class Silent(SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, *said: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module", params=["disk", "server"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the site is: in a folder, or on a server of this machine."""
    if request.param == "disk":
        yield SITE.as_uri()
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("LogisticRegression", "reference/privet.estimators.LogisticRegression.html"),
        ("StandardScaler", "estimators.html"),
        ("row_norm", "glossary.html"),
    ],
)
def test_search_finds(chromium: Any, address: str, word: str, page: str) -> None:
    """Search works from the disk, and from a server, and finds what a newcomer types."""
    tab = chromium.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    tab.goto(f"{address}/search.html?q={word}")
    tab.wait_for_selector("#search-results li a", timeout=10_000)
    tab.wait_for_timeout(500)
    found = tab.eval_on_selector_all("#search-results li a", "links => links.map(link => link.getAttribute('href'))")
    assert any(link.split("?")[0].split("#")[0].endswith(page) for link in found), found
    assert said == []
