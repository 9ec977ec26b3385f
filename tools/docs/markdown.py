"""Parts of generated documents."""

from collections.abc import Iterable, Sequence
from textwrap import fill


def prose(*sentences: str) -> str:
    """One paragraph."""
    return fill(" ".join(sentences), 120, break_long_words=False, break_on_hyphens=False) + "\n"


def bullet(*sentences: str) -> str:
    """One item of a list."""
    return fill(f"- {' '.join(sentences)}", 120, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def section(title: str, *parts: str) -> str:
    """A section: a title, then paragraphs and tables."""
    return "\n".join([f"## {title}\n", *parts])
