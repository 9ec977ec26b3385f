"""Sphinx' settings for the site, see `tools.site.build`."""

import re
from typing import Any

import bdforge

project = "bdforge"
version = release = bdforge.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
include_patterns = ["*.md", "docs/**", "examples/README.md", "reference/**"]
myst_heading_anchors = 4
highlight_language = "none"
smartquotes = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
templates_path = ["templates"]
html_theme = "pydata_sphinx_theme"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "icon.svg"
html_title = f"bdforge {version}"
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": project},
    "navbar_end": ["playground.html", "versions.html", "theme-switcher"],
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
project_copyright = "the bdforge authors, Apache-2.0"


def _of_markdown(app: Any, what: str, name: str, subject: object, options: object, lines: list[str]) -> None:
    """Docstrings say code by one backtick, as Markdown does; reStructuredText does by two."""
    lines[:] = [re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line) for line in lines]


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", _of_markdown)
