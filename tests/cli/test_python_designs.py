"""A Python file with a `DESIGN` is taken where a document is, and what is wrong in it is said with its line."""

import re
from pathlib import Path

import pytest

from support.examples import EXAMPLES


@pytest.mark.parametrize("command", ["plan", "render"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("DESIGN = 1 / 0", r"design.py: ZeroDivisionError: division by zero \(design.py:1\)"),
        ("DESIGN = (", "design.py: SyntaxError"),
        ("import sys\nsys.exit(3)", r"design.py: it called exit\(3\) \(design.py:2\)"),
        ("DESIGN = 3", "design.py: has no DESIGN"),
    ],
)
def test_a_wrong_file_is_its_authors_fault(command: str, text: str, reason: str, run, tmp_path: Path):
    (tmp_path / "design.py").write_text(text)
    code, _, err = run(command, "design.py")
    assert code == 2
    assert re.search(reason, " ".join(err.split()))


@pytest.mark.parametrize("command", ["plan", "render"])
def test_a_file_prints_what_its_document_does(command: str, run, tmp_path: Path):
    path = EXAMPLES / "documents" / "transpose.toml"
    (tmp_path / "transpose.py").write_text(
        "from pathlib import Path\nfrom bdforge.design.document import design_of\n"
        f"DESIGN = design_of(Path({str(path)!r}).read_text(), 'transpose')\n"
    )
    first, second = run(command, str(path)), run(command, "transpose.py")
    assert first[0] == 0
    assert first == second


def test_a_document_is_planned_for_sizes_and_keeps_its_problems(run, tmp_path: Path):
    text = (EXAMPLES / "documents" / "transpose.toml").read_text() + "\n[[problems]]\nM = 16\nN = 32\n"
    (tmp_path / "own.toml").write_text(text)
    sized = run("plan", "own.toml", "--shape", "32x48")[1]
    (tmp_path / "sized.toml").write_text(sized)
    assert "[[runtime_sequence]]" in sized
    assert not {"[sequence]", "[[problems]]"} & set(sized.splitlines())
    tasks = [run("render", *words)[1] for words in (("own.toml", "--shape", "32x48"), ("sized.toml",))]
    assert tasks[0].partition("aie.runtime_sequence")[2] == tasks[1].partition("aie.runtime_sequence")[2] != ""
    code, _, err = run("plan", "own.toml", "--shape", "32")
    assert (code, "is not MxN" in err) == (2, True)
    assert run("plan", "own.toml")[1].count("[[problems]]\nM = 16\nN = 32\n") == 1
