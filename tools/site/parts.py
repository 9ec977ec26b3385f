"""Parts of pages of the site."""

import re
from collections.abc import Iterable


def escaped(text: str) -> str:
    """Text whose characters mean themselves, but for code between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]|#])", r"\\\1", part) for part in parts)


def subpages(names: Iterable[str]) -> str:
    """Pages that stand below this one in the navigation."""
    return "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
