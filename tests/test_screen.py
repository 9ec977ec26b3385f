"""Tables for people: at 80 and 120 columns and in a pipe no character of a cell is lost."""

import io
import re

import pytest
from rich.console import Console, Group
from rich.table import Table

from bdforge.common.screen import PIPED_WIDTH, as_text, new_table, put, say, screen

ROWS = [
    ("256x2560x13824", "feed-forward gate and up of every layer", "K 13824→14336, A and C staged", "9.06"),
    ("1048576x262143x1048576", "attention.q_projection.weight.of.layer.17", "none", "288225.28"),
]


def table() -> Table:
    made = new_table("problems of a design with a long name", "=shape", "layer", "padding", ">GMACs")
    for row in ROWS:
        made.add_row(*row)
    return made


@pytest.mark.parametrize("width", [30, 60, 80, 120, PIPED_WIDTH])
def test_no_character_of_a_cell_is_lost_and_no_line_is_too_long(width: int):
    text = as_text([table()], width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for row in ROWS:
        for cell in row:
            assert not (set(cell) - set(text))
    assert sorted(re.sub(r"[\s─]", "", text)) == sorted(
        re.sub(
            r"\s", "", "problems of a design with a long name" + "shapelayerpaddingGMACs" + "".join(map("".join, ROWS))
        )
    )


@pytest.mark.parametrize("width", [80, 120, PIPED_WIDTH])
def test_shapes_and_numbers_stay_whole_on_usual_screens(width: int):
    text = as_text([table()], width)
    for shape, _, _, number in ROWS:
        assert shape in text
        assert number in text


def test_a_pipe_gets_one_line_for_each_row(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = as_text([table()], screen().width).splitlines()
    assert [line for line in lines if all(cell in line for cell in ROWS[0])]


def test_columns_decides_without_a_terminal(monkeypatch):
    for columns, width in ("80", 80), ("0", PIPED_WIDTH), ("wide", PIPED_WIDTH):
        monkeypatch.setenv("COLUMNS", columns)
        assert screen().width == width


def test_nothing_is_folded_that_fits_a_group_or_plain_text():
    file = io.StringIO()
    put(Console(file=file, width=40), "one line of text", "another [not markup")
    assert file.getvalue() == "one line of text\nanother [not markup\n"


@pytest.mark.parametrize("width", [30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40])
def test_numbers_fold_only_where_there_is_no_room_for_them(width: int):
    """A column of 6 characters that folds, one of 20 digits that folds last, and 3 between columns: 32 and more."""
    made = new_table(None, "words", ">digits")
    made.add_row("many words of a cell", "12345678901234567890")
    assert ("12345678901234567890" in as_text([made], width)) == (width >= 32), width


def test_numbers_stand_at_the_right_and_titles_at_the_left():
    made = new_table("a title", "=shape", "text", ">number")
    made.add_row("2x3", "a", "1")
    made.add_row("22x33", "aaaa", "1000")
    assert as_text([Group(made, "end")]).splitlines() == [
        "a title", "", " shape   text   number", " ─────────────────────", " 2x3     a           1",
        " 22x33   aaaa     1000", "", "end",
    ]  # fmt: skip


def test_what_comes_from_files_is_shown_and_not_obeyed(capsys):
    say("a\x1b[2J", nl=False)
    say("b\x07", err=True)
    assert capsys.readouterr() == ("a\\x1b[2J", "b\\x07\n")
    assert as_text(["a\x9bb", "c"]) == "a\\x9bb\nc\n"


@pytest.mark.parametrize(
    ("columns", "width"), [("80", 80), ("", PIPED_WIDTH), ("wide", PIPED_WIDTH), ("-5", PIPED_WIDTH)]
)
def test_a_screen_is_as_wide_as_columns_says_in_digits(monkeypatch, columns: str, width: int):
    monkeypatch.setenv("COLUMNS", columns)
    assert (screen().width, screen(stderr=True).width) == (width, width)
    assert (screen().stderr, screen(stderr=True).stderr) == (False, True)
    assert PIPED_WIDTH == 4096
