"""Messages are bounded and hold nothing that a terminal obeys, whatever was read into them."""

import re
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bdforge.array.emulator import EmulationError
from bdforge.array.mlir import MlirError
from bdforge.array.mlir.errors import SourceText
from bdforge.common.messages import (
    LINE_CHARACTERS,
    LISTED,
    MESSAGE_BYTES,
    InputError,
    bounded,
    clip,
    clip_path,
    excerpt,
    listed,
    printable,
)
from bdforge.devices.txn_format.codec import TxnError
from bdforge.models.weights import WeightError
from bdforge.operators.gemm import SpecError
from bdforge.perf import PerfError


@pytest.mark.parametrize("kind", [EmulationError, InputError, PerfError, SpecError, TxnError, WeightError])
def test_every_kind_of_fault_is_bounded_and_printable(kind):
    message = str(kind("design.toml: \x1b[31m" + "é\0" * 1_000_000 + " choose another"))
    assert len(message.encode()) <= MESSAGE_BYTES
    assert message.startswith("design.toml: \\x1b[31m")
    assert message.endswith(" choose another")
    assert "\0" not in message


@given(st.text(max_size=300), st.integers(0, 60))
def test_what_is_told_fits_and_is_told_the_same_again(text, times):
    message = bounded(text * times)
    assert len(message.encode()) <= MESSAGE_BYTES
    assert bounded(message) == message
    assert not [c for c in message if category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t"]


def test_a_message_and_what_a_command_puts_around_it_fit_into_4_kib():
    assert (MESSAGE_BYTES, LISTED, LINE_CHARACTERS) == (4096 - 512, 10, 200)
    assert listed(range(11)).endswith(", 9, and 1 more")


def test_short_messages_stay_as_they_are():
    assert bounded("a\tb\nc: größer, → 𝔸") == "a\tb\nc: größer, → 𝔸"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [("\x1b[2J", "\\x1b[2J"), ("\r", "\\r"), ("\x07", "\\x07"), ("\x9b1m", "\\x9b1m"), ("\x7f", "\\x7f"),
     ("\u202egnp", "\\u202egnp"), ("\ud800", "\\ud800"), ("\u2028", "\\u2028")],
)  # fmt: skip
def test_controls_are_shown_as_escapes(raw, shown):
    assert printable(f"a{raw}b") == f"a{shown}b"


def test_a_word_stays_on_its_line_and_says_how_long_it_was():
    assert clip("a\nb\tc") == "a\\nb\\tc"
    assert clip("x" * 500) == "x" * 120 + "... (500 characters)"


@pytest.mark.parametrize(("shown", "most"), [(clip, 120), (clip_path, 1024)])
def test_a_word_of_the_limit_is_whole_and_a_longer_one_is_cut(shown, most):
    assert shown("x" * most) == "x" * most
    assert shown("x" * (most + 1)) == "x" * most + f"... ({most + 1} characters)"


@pytest.mark.parametrize(("count", "most", "last"), [(3, 3, "2"), (4, 3, "and 1 more"), (1, 1, "0"), (0, 3, "")])
def test_as_many_as_are_wanted_are_listed(count: int, most: int, last: str):
    assert listed(range(count), "; ", most).split("; ")[-1] == last
    assert listed(range(count), "; ", most).count(";") == max(0, min(count, most + 1) - 1)


@pytest.mark.parametrize("thing", ["x" * 3584, "é" * 1792, "x" * 1_000_000, "\x1b" * 3000])
def test_what_is_listed_is_no_longer_than_a_message(thing: str):
    """Of two too long things both are there in part, and how many there are besides."""
    found = listed([thing, "small", *"abcdefghijk"])
    assert len(found.encode()) <= MESSAGE_BYTES
    assert found.endswith(", small, a, b, c, d, e, f, g, h, and 3 more")
    assert found.startswith(printable(thing)[:20])


@pytest.mark.parametrize("letter", ["x", "é", "𝔸"])
def test_a_message_of_the_limit_is_whole_and_the_next_byte_costs_its_middle(letter: str):
    size = len(letter.encode())
    whole = letter * (MESSAGE_BYTES // size)
    assert bounded(whole) == whole
    cut = bounded(f"{whole}!")
    left = re.fullmatch(rf"({letter}+) \[\.\.\. (\d+) characters \.\.\.\] ({letter}+)!", cut)
    assert left is not None, cut
    assert len(left[1]) + int(left[2]) + len(left[3]) == len(whole)
    assert len(left[1]) > 2 * len(left[3]), "mostly its beginning"
    assert len(cut.encode()) > MESSAGE_BYTES // 2
    assert bounded("abcdef" * 100, 300).startswith("abcdef")
    assert len(bounded("abcdef" * 100, 300)) <= 300


LETTERS = "".join(chr(0x4E00 + i) for i in range(500))


@pytest.mark.parametrize(
    ("length", "column", "first", "before", "after"),
    [
        (200, 1, 0, "", ""), (200, 200, 0, "", ""), (201, 1, 0, "", "..."), (201, 101, 0, "", "..."),
        (201, 102, 1, "...", ""), (201, 201, 1, "...", ""), (500, 101, 0, "", "..."), (500, 102, 1, "...", "..."),
        (500, 400, 299, "...", "..."), (500, 401, 300, "...", ""), (500, 500, 300, "...", ""), (0, 1, 0, "", ""),
    ],
)  # fmt: skip
def test_an_excerpt_is_200_characters_around_its_column(length: int, column: int, first: int, before: str, after: str):
    line = LETTERS[:length]
    shown = f"{before}{line[first : first + 200]}{after}"
    assert excerpt(line, column) == (shown, column - first + len(before))


def test_the_caret_stands_below_the_place_in_a_long_line():
    text = " " * 5_000_000 + "\x1b!here"
    error = MlirError.at(SourceText(text, "long.mlir"), 5_000_001, "what is this")
    place, line, caret = str(error).split("\n")
    assert place == "long.mlir:1:5000002: what is this"
    assert line[caret.index("^") :] == "!here"
    assert error.column == 5_000_002
