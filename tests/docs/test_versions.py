"""The version stands in one place, and all that name it agree: package, C++ library, changelog, citation, pages."""

import re
from pathlib import Path

import pytest

import bdforge

ROOT = Path(__file__).resolve().parents[2]
VERSION = bdforge.__version__
SERIES = VERSION.rpartition(".")[0]
NAMED = {
    "CHANGELOG.md": (rf"\A# Changes\n\n## {re.escape(VERSION)}(, unreleased|, \d{{4}}-\d\d-\d\d)\n", 1),
    "CITATION.cff": (rf"^version: {re.escape(VERSION)}$", 1),
    "host/include/bdforge.h": (rf'^#define BDFORGE_VERSION "{re.escape(VERSION)}"$', 1),
    "docs/host.md": (rf"`libbdforge\.so\.{re.escape(SERIES)}`", 1),
}
"""In each file what names the version, and how often."""


@pytest.mark.parametrize("name", NAMED)
def test_what_names_the_version_names_this_one(name: str):
    pattern, times = NAMED[name]
    found = re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == times, f"{name} should name {VERSION}: {pattern}"


def test_no_page_names_another_shared_library():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages if page.name != "CHANGELOG.md"]
    assert {series for text in texts for series in re.findall(r"libbdforge\.so\.(\d+\.\d+)", text)} == {SERIES}


def test_what_is_public_is_said_in_one_sentence_and_typed():
    assert (ROOT / "bdforge" / "py.typed").is_file()
    assert "Public are the names in `bdforge.__all__`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_publications_are_those_that_are_reproduced():
    cited = set(re.findall(r"^    title: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE))
    headings = re.findall(r"^## (.*)$", (ROOT / "docs" / "papers.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {re.split(r" \(|: |, ", heading)[0] for heading in headings if not heading.startswith("Not here")}
    assert cited == named
