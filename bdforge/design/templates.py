"""The templates of `templates/`, which only place values."""

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


def render_template(name: str, **values: Any) -> str:
    """The text of one template, ending with a newline."""
    text = _environment().get_template(name).render(**values)
    return text if text.endswith("\n") else text + "\n"


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
