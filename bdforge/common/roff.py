"""Text in man pages."""

import re


def roff(text: str) -> str:
    """Text in which nothing is a request or an escape."""
    lines = text.rstrip().replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def roff_prose(text: str) -> str:
    """`roff` of prose: its paragraphs are filled, and what stands between backticks is bold."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
    return "\n.PP\n".join(re.sub(r"`([^`]*)`", r"\\fB\1\\fR", roff(one)) for one in paragraphs)
