"""Tables for people: at 80 and 120 columns and in a pipe no character of a cell is lost."""

import io
import re

import pytest
from rich.console import Console
from rich.table import Table

from bdforge.screen import PIPED_WIDTH, as_text, new_table, put, screen

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
    monkeypatch.setenv("COLUMNS", "80")
    assert screen().width == 80


def test_nothing_is_folded_that_fits_a_group_or_plain_text():
    file = io.StringIO()
    put(Console(file=file, width=40), "one line of text", "another [not markup")
    assert file.getvalue() == "one line of text\nanother [not markup\n"
