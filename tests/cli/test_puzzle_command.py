"""`bdforge puzzle`: each starting point fails with the message that it is to teach, and a few edits solve it."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

from bdforge.cli.puzzle import Puzzle, puzzles
from support.built_designs import ROOT

START = ROOT / "examples" / "puzzles"
PUZZLES = {puzzle.number: puzzle for puzzle in puzzles()}
NO_TASK = r"memtile \(0, 1\) MM2S 1 has no task"
STEPS: dict[int, list[tuple[str, dict[str, str]]]] = {
    1: [(r"shim \(0, 0\) S2MM 0 waits for 32 words from memtile \(0, 1\) MM2S 0", {"[[64, 1]]": "[[96, 1]]"})],
    2: [(r"b\[1\] is 2, expected 51; 45 elements are wrong", {"[[48, 1]] }] },": "[[48, 2]] }] },"})],
    3: [(r"b\[0, 0, 1\] is 2, expected -50", {"[4, 8], [8, 1]": "[8, 1], [4, 8]"})],
    4: [(r"core \(0, 2\) MM2S 1 has no task$", {"core DMA 1": "core DMA 0"})],
    5: [(r"b\[16\] is 51, expected 30; 48 elements are wrong", {"init = 4": "init = 2"})],
    6: [(r"b\[0\] is 0, expected -35", {"rtp.offset": "rtp.factor"})],
    7: [(rf"core_w_full .* which is 0 .*\n.*\n  {NO_TASK}", {"runs = 4": "runs = 6"})],
    8: [
        (r"MM2S 0 waits for lock mem_block_full .* >= 1, which is 0", {"release = 1": "release = 2"}),
        (r"b\[1, 0, 0\] is -4, expected 64; 48 elements are wrong", {"offset = 0,": 'offset = "24 * r",'}),
    ],
    9: [(r"core \(3, 2\) S2MM 0 waits for 24 words, but no flow leads to it", {"0..3": "0..4"})],
    10: [
        (
            r"b\[0, 24\] is -10, expected 63; 96 elements are wrong",
            {'{ r = "0..2" }, send = "b{r}"': '{ slot = "0..2", r = "0..2" }, send = "b{r}", slot = "slot"'},
        )
    ],
    11: [(r"b\[0, 0\] is -5, expected 0", {"[[0, 2], [0, 6]]": "[[1, 1], [3, 3]]"})],
    12: [(r"C\[0, 0\] is -555, expected 29836", {'i * k + k)"\npatterns.b': 'i * k + k).tiled(8, 8)"\npatterns.b'})],
    13: [
        (r"core \(0, 5\) S2MM 1 waits for 64 words, but no flow leads to it", {"0..rows - 1": "0..rows"}),
        (r"C\[0, 8\] is .* elements are wrong", {"n / 8, 8, 8)": "n / 8, 8, 8).permuted(0, 2, 1, 3)"}),
    ],
    14: [
        (
            r"wait for each other in a circle:\n.*\n.* waits for lock sum_free .* which is 0 since the start",
            {'0 : i32, sym_name = "sum_free"': '1 : i32, sym_name = "sum_free"'},
        )
    ],
    15: [
        (
            r"a packet of id 2 from memtile \(0, 1\) MM2S 0, which has sent 2 of id 1 \(15_hang_order.mlir:\d+:7\)",
            {"bd ^w_1": "bd ^X_1", "bd ^w_0": "bd ^w_1", "bd ^x_1": "bd ^w_0", "bd ^X_1": "bd ^x_1"},
        )
    ],
}
"""What is told of a puzzle, and the edits after which the next is told, or nothing any more. 15 swaps its BDs."""
LONG = (9, 10, 13)  # of several cores, up to 32


def solve(file: str, steps: list[tuple[str, dict[str, str]]]) -> str:
    """The starting point with all edits, each of which finds its place."""
    text = (START / file).read_text()
    for _, edits in steps:
        for old, new in edits.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
    return text


@pytest.fixture
def begun(run) -> Path:
    """A folder of the user's with all puzzles, in which commands run."""
    shutil.copytree(START, ".", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return Path()


@pytest.mark.daily(every=4)
@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize("number", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in STEPS])
def test_a_puzzle_teaches_until_it_is_solved(number: int):
    puzzle, steps = PUZZLES[number], STEPS[number]
    for done, (told, _) in enumerate(steps):
        Path(puzzle.file).write_text(solve(puzzle.file, steps[:done]))
        assert re.search(told, puzzle.fault(Path(puzzle.file)) or "solved", re.MULTILINE)
    Path(puzzle.file).write_text(solve(puzzle.file, steps))
    assert puzzle.fault(Path(puzzle.file)) is None


def test_every_puzzle_is_whole():
    """A title, a task and a hint each, on lines of a terminal; the page lists them as they are."""
    page = (ROOT / "docs" / "puzzles.md").read_text(encoding="utf-8")
    assert list(PUZZLES) == list(STEPS) == list(range(1, 16))
    for number, puzzle in PUZZLES.items():
        title, *task = puzzle.said
        assert puzzle.start.read_text().splitlines()[0].endswith(f" {number}. {title}")
        assert task
        assert max(map(len, task)) <= 79
        assert puzzle.hint.endswith((".", "?"))
        assert f"| {number} | {title} | [{puzzle.file}](../examples/puzzles/{puzzle.file}) |" in page


@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "01_copy.toml: "),
        ("", "01_copy.toml: "),
        ("kind = ", "is no TOML to use"),
        (solve("01_copy.toml", []).replace("[[64, 1]]", '[["?", 1]]'), r"01_copy.toml:\d+:\d+: .*\?"),
        (solve("01_copy.toml", []).replace("96", "48").replace("64", "48"), "its reference does not take: .* size 48"),
        (solve("01_copy.toml", []).split("[[runtime_sequence]]")[0], "its reference does not take: .* missing"),
    ],
    ids=["missing", "empty", "broken", "mark", "other sizes", "no sequence"],
)
def test_whatever_a_file_holds_is_told_in_a_sentence(text: str | None, told: str, run):
    Path("01_copy.toml").unlink()
    if text is not None:
        Path("01_copy.toml").write_text(text)
    code, out, err = run("puzzle", "1")
    assert (code, err) == (1, "")
    assert re.search(f"^open: .*({told})", out, re.MULTILINE)
    assert "please report" not in out


def test_a_core_that_never_waits_ends(monkeypatch, begun: Path):
    monkeypatch.setattr("bdforge.cli.puzzle._BUDGET", 1000)
    text = re.sub(r"\{ (acquire|release) = \S+ \}, ", "", (START / "04_flow.toml").read_text())
    (begun / "04_flow.toml").write_text(text)
    assert "no end after 1000 loop iterations" in (PUZZLES[4].fault(begun / "04_flow.toml") or "")


def few(monkeypatch) -> None:
    monkeypatch.setattr("bdforge.cli.puzzle.puzzles", lambda: [PUZZLES[1], PUZZLES[14]])


@pytest.mark.parametrize("number", [1, 14])
def test_a_puzzle_that_is_not_begun_names_no_file_of_the_installation(run, number: int):
    code, out, err = run("puzzle", str(number))
    assert (code, err) == (1, "")
    assert str(START) not in out
    assert out.splitlines()[-1] == "begin:   bdforge puzzle --start FOLDER"
    assert re.search(STEPS[number][0][0], out, re.MULTILINE)


def test_a_list_says_what_is_solved_and_what_is_next(run, monkeypatch):
    few(monkeypatch)
    code, out, _ = run("puzzle")
    assert (code, out.splitlines()[-1]) == (0, "to begin: bdforge puzzle --start FOLDER")
    shutil.copy(START / "01_copy.toml", ".")
    assert run("puzzle")[1].splitlines()[-1] == "0 of 2 solved; next: bdforge puzzle 1"
    Path("01_copy.toml").write_text(solve("01_copy.toml", STEPS[1]))
    lines = run("puzzle")[1].splitlines()
    assert [line.split()[1] for line in lines[:2]] == ["solved", "open"]
    assert lines[-1] == "1 of 2 solved; next: bdforge puzzle 2"
    shutil.copy(START / "14_hang_lock.mlir", ".")
    Path("14_hang_lock.mlir").write_text(solve("14_hang_lock.mlir", STEPS[14]))
    assert run("puzzle")[1].splitlines()[-1] == "2 of 2 solved"


def test_a_puzzle_is_shown_with_what_helps(run):
    code, out, err = run("puzzle", "2")  # from elsewhere: the starting point
    assert (code, err) == (1, "")
    assert out.startswith("2. A stride: 02_stride.toml\n\nb (48 words) shall be")
    shutil.copy(START / "02_stride.toml", ".")
    out = run("puzzle", "2", "--hint")[1]
    assert out.endswith(
        f"hint:    {PUZZLES[2].hint}\npicture: bdforge show 02_stride.toml --html 02_stride.html\n"
        "MLIR:    bdforge render 02_stride.toml\n"
    )
    assert run("show", "02_stride.toml", "--html", "02_stride.html")[0] == 0
    Path("02_stride.toml").write_text(solve("02_stride.toml", STEPS[2]))
    code, out, _ = run("puzzle", "2")
    assert (code, out.splitlines()[-1]) == (0, "solved")
    code, _, err = run("puzzle", "16")
    assert (code, "there are puzzles 1 to 15, not 16" in " ".join(err.split())) == (2, True)


def test_a_start_replaces_nothing_and_runs_by_pytest(run):
    code, out, _ = run("puzzle", "--start", "mine")
    assert (code, out.splitlines()[-1]) == (0, "now: cd mine; bdforge puzzle 1")
    Path("mine/01_copy.toml").write_text(solve("01_copy.toml", STEPS[1]))
    code, _, err = run("puzzle", "--start", "mine")
    assert (code, "already there; choose another folder\n" in err) == (2, True)
    assert Path("mine/01_copy.toml").read_text() == solve("01_copy.toml", STEPS[1])
    check = runpy.run_path("mine/puzzles_test.py")["test_it_is_solved"]
    check(PUZZLES[1])
    with pytest.raises(pytest.fail.Exception, match="45 elements are wrong"):
        check(PUZZLES[2])


def test_a_puzzle_is_called_as_its_reference():
    references = runpy.run_path(str(START / "references.py"))
    assert all(str(puzzle).partition("_")[2] in references for puzzle in PUZZLES.values())
    assert str(Puzzle(START / "01_copy.toml")) == "01_copy"
