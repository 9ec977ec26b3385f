"""The site: whole, no link leads nowhere, nothing is loaded from elsewhere, and it looks as it should in Chromium."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import bdforge
from bdforge.cli.commands import HOMES
from bdforge.cli.system_files import system_files
from bdforge.operators import OPERATORS
from support.browser import MISSING, Browser, browser, serving
from support.built_designs import ROOT
from tools.site.build import build, read_as_site

pytestmark = pytest.mark.slow
NO_COMMANDS = {"check-run"}
"""Hidden: what SCons calls."""
LOADED = {"link": "href"} | dict.fromkeys(("img", "script", "source", "iframe", "audio", "video"), "src")
"""What a browser loads for a page, by tag."""


class Page(HTMLParser):
    """What a page names: ids, links, what it loads."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        if LOADED.get(tag) in found and found.get("rel") not in ("index", "search", "next", "prev", "canonical"):
            self.loaded.add(found[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("site")
    (out / "playground").mkdir()
    (out / "playground" / "index.html").touch()  # pages lead there where it is
    assert build(out) == 0
    return out


@pytest.fixture(scope="module")
def version(site: Path) -> Path:
    return site / bdforge.__version__


@pytest.fixture(scope="module")
def pages(version: Path) -> dict[Path, Page]:
    made = [path for path in version.rglob("*.html") if "_static" not in path.parts]  # the theme has a template there
    return {path: Page(path.read_text(encoding="utf-8")) for path in made}


def test_every_link_leads_to_a_page_and_a_place_on_it(pages: dict[Path, Page], site: Path):
    faults, followed = [], 0
    for path, page in pages.items():
        for link in page.links | page.loaded:
            if re.match(r"\w+:", link):
                continue
            name, place = urldefrag(link.partition("?")[0] if "#" not in link else link)
            target = (path.parent / unquote(name.partition("?")[0])).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            there = target.is_relative_to(site) and target.is_file()
            if not there or (place and target in pages and unquote(place) not in pages[target].ids):
                faults.append(f"{path.name}: {link}")
            followed += 1
    assert faults == []
    assert followed > 5000


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page], version: Path):
    assert {link for page in pages.values() for link in page.loaded if re.match(r"\w+:|//", link)} == set()
    styles = [path.read_text(encoding="utf-8") for path in version.rglob("*.css")]
    named = {link for text in styles for link in re.findall(r"(?:url\(|@import\s+)[\"']?([^\"')]+)", text)}
    assert len(named) > 3
    assert {link for link in named if re.match(r"https?:|//", link)} == set()


def test_commands_operators_and_pages_are_there(pages: dict[Path, Page], version: Path):
    there = {str(path.relative_to(version)) for path in pages}
    commands = {name for name in HOMES if name not in NO_COMMANDS}
    assert {f"reference/commands/{name}.html" for name in commands} <= there
    assert {f"reference/operators/{kind}.html" for kind in OPERATORS} <= there
    assert {str(path.relative_to(ROOT).with_suffix(".html")) for path in ROOT.glob("docs/**/*.md")} <= there
    assert all((version / name).read_text() == text for name, text in system_files().items())
    ids = {name: pages[version / "reference" / name].ids for name in ("api.html", "commands/insts.html")}
    assert {"bdforge.emulate", "bdforge.load", "bdforge.runtime.Loaded.pack"} <= ids["api.html"]
    assert "cmdoption-bdforge-insts-decode-section" in ids["commands/insts.html"]


def test_the_readme_is_the_first_page(pages: dict[Path, Page], version: Path):
    assert "./../playground/index.html" in pages[version / "index.html"].links
    links = {"docs/tour.html", "docs/tutorials/write_a_design.html", "AGENTS.html"}
    assert links <= pages[version / "index.html"].links
    assert "−1, 0, 1 as" in (version / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("text", "told"), [
    ("[a page](other.md)", "other"),
    ("[a place](#nowhere)", "nowhere"),
    ("![a picture](none.png)", "none.png"),
])  # fmt: skip
def test_what_leads_nowhere_ends_the_build(tmp_path: Path, capfd, text: str, told: str):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "index.md").write_text(f"# A page\n\n{text}\n")
    assert read_as_site(tmp_path / "source", tmp_path / "doctrees", tmp_path / "made") == 1
    assert told in capfd.readouterr().err


@pytest.fixture(scope="module")
def served(version: Path) -> Iterator[str]:
    with serving(version.parent) as url:
        yield url


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.mark.skipif(bool(MISSING), reason=f"no {' and no '.join(MISSING)}")
class TestInABrowser:
    @pytest.mark.parametrize("width", [1280, 400])
    @pytest.mark.parametrize("name", ["index", "docs/performance", "docs/operators/rows", "reference/operators/gemm"])
    def test_a_page_fits_and_is_whole(self, chromium: Browser, served: str, name: str, width: int):
        chromium.resize(width, 800)
        chromium.open(f"{served}{bdforge.__version__}/{name}.html")
        assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
        assert chromium.run("return innerWidth") == width
        assert chromium.run("return [...document.images].every((image) => image.decode && image.naturalWidth > 0)")
        assert chromium.run("return document.querySelector('select.versions').value").endswith("/index.html")
        loaded = chromium.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert f"{served}versions.js" in loaded
        assert [url for url in loaded if not url.startswith(served)] == []
        assert [line for line in chromium.complaints() if "[PST]" not in line and "theme mode" not in line] == []

    def test_the_search_finds(self, chromium: Browser, served: str):
        chromium.open(f"{served}{bdforge.__version__}/search.html?q=deadlock")
        found = chromium.run(
            "return new Promise((done) => { const look = () => {"
            " const links = [...document.querySelectorAll('ul.search a')].map((link) => link.innerText);"
            " if (document.querySelector('.search-summary')?.innerText.includes('finished')) done(links); };"
            " new MutationObserver(look).observe(document.body, {subtree: true, childList: true}); look(); })"
        )
        assert "Debugging a design that hangs" in found
