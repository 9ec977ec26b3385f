"""The lines that docs/extending.md shows as changes stand in the files that it names."""

import re

from tools.testing.source_tree import ROOT

PAGE = ROOT / "docs" / "extending.md"


def shown() -> list[tuple[str, str]]:
    """(file, line) of every line that a diff adds."""
    found, file = [], ""
    for block in re.findall(r"^```diff\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("+++ "):
                file = line.removeprefix("+++ ")
            else:
                found.append((file, line.removeprefix("+")))
    return found


def test_every_line_shown_stands_in_its_file():
    lines = shown()
    gone = [f"{file}: {line}" for file, line in lines if line not in (ROOT / file).read_text("utf-8").splitlines()]
    assert len(lines) > 10
    assert not gone, "docs/extending.md shows lines that are gone:\n" + "\n".join(gone)


def test_files_that_pages_name_in_full_exist():
    names = re.findall(
        r"`((?:bdforge|kernels|host|templates|designs|tests|docs)/[\w/.]+\.\w+)`",
        PAGE.read_text(encoding="utf-8") + (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"),
    )
    missing = sorted(name for name in set(names) if not (ROOT / name).is_file())
    assert names
    assert not missing, f"pages name files that do not exist: {missing}"
