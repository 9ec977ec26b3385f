"""Messages of failing tests: they say what differs, where and how, in which case, and what nobody refused."""

from dataclasses import dataclass
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from support.differences import difference, same
from support.processes import ends
from support.wrong_places import numbers

RIGHT = np.arange(1, 8 * 12 + 1).reshape(8, 12)
TILE = (4, 6)
LIMIT = 1023

SPOILED = {
    "a lane": (
        (slice(None), slice(2, None, 3)),
        lambda c: c + 1,
        "32 of 96 elements are wrong, the first is [0, 2] = 4, expected 3; in each of 2 x 2 tiles of 4 x 6; rows of a "
        "tile: all 4, columns of a tile: 2, 5; each is 1 too large",
    ),
    "a tile": (
        (slice(4, 8), slice(0, 6)),
        lambda c: 0 * c,
        "24 of 96 elements are wrong, the first is [4, 0] = 0, expected 49; in tiles of 4 x 6: tile rows 1 (the last), "
        "tile columns 0; rows of a tile: all 4, columns of a tile: all 6; all are 0",
    ),
    "a row of tiles": (
        slice(1, 3),
        lambda c: -c,
        "24 of 96 elements are wrong, the first is [1, 0] = -13, expected 13; in tiles of 4 x 6: tile rows 0, tile "
        "columns all 2; rows of a tile: 1, 2, columns of a tile: all 6; each is -1 times what is right",
    ),
    "two corners": (
        ([0, 7], [0, 11]),
        lambda c: c // 5,
        "2 of 96 elements are wrong, the first is [0, 0] = 0, expected 1; in tiles of 4 x 6: (0, 0), (1, 1); rows of "
        "a tile: 0, 3, columns of a tile: 0, 5; off by 1 to 77",
    ),
}


@pytest.mark.parametrize("case", SPOILED)
def test_a_wrong_result_is_told_by_tiles_rows_columns_and_difference(case):
    where, change, message = SPOILED[case]
    got = RIGHT.copy()
    got[where] = change(got[where])
    with pytest.raises(AssertionError) as told:
        same(got, RIGHT, "C", tile=TILE)
    assert str(told.value) == f"C: {message}"


def test_sets_of_numbers_are_told_by_their_pattern():
    assert numbers(range(9), 9) == "all 9"
    assert numbers([3, 4, 5], 9) == "3 to 5"
    assert numbers([8], 9) == "8 (the last)"
    assert numbers([1, 5, 9], 12) == "every 4th from 1 to 9"
    assert numbers([0, 1, 8, 9, 16, 17], 24) == "every 8th from 0 to 16, 2 each"
    assert numbers([0, 1, 3, 5, 7, 8, 9, 11, 14, 16], 17) == "0, 1, 3, 5, 7 to 9, 11, 14 and 1 more"


LINE = np.arange(40, dtype=np.uint32)
MOVED = {
    "what is right lies 2 later": (np.roll(LINE, 2), LINE),
    "what is right lies 1 earlier": (np.roll(LINE, -1), LINE),
    "it is transposed": (LINE.reshape(5, 8), LINE.reshape(8, 5).T),
    "the same values in another order": (LINE.reshape(-1, 2)[:, ::-1].ravel(), LINE),
    "[1] = 0x1000000, expected 1; elements 1 to 39 (the last); their bytes are swapped": (LINE.byteswap(), LINE),
    "elements every 4th from 1 to 37, 2 each; off by 2 both ways": (LINE ^ (LINE + 1 & 2), LINE),
    ": lanes 1, 3 of 8; all are 0": (np.where(LINE % 8 % 5 % 2 & (LINE % 8 < 4), 0, LINE + 1), LINE + 1),
    "has shape (5, 8), expected (8, 5)": (LINE.reshape(5, 8), LINE.reshape(8, 5)),
    "has dtype uint32, expected int64": (LINE, LINE.astype(np.int64)),
    "bit 31 is wrong in each": (LINE.astype(np.int32) ^ np.int32(-1 << 31), LINE.astype(np.int32)),
    "all are NaN": (np.full(3, np.nan), np.arange(3)),
    "rows all 2, columns 2 (the last); each is 1 too small": (np.ones((2, 3)), np.array([[1, 1, 2.0]] * 2)),
    "is 3.0, expected 3.5 (-0.5)": (np.float64(3), 3.5),
}


@pytest.mark.parametrize("message", MOVED)
def test_how_values_are_wrong_is_told(message):
    got, right = MOVED[message]
    with pytest.raises(AssertionError) as told:
        same(got, right, strict=True)
    assert message in str(told.value)
    assert str(told.value).startswith("got: ")
    assert len(str(told.value)) < 600


def test_values_that_are_the_same_are_told_so():
    same(np.array([1, np.nan]), np.array([1, np.nan], np.float32))
    same(LINE * 0, 0)
    same(np.ones(3, ml_dtypes.bfloat16), np.ones(3, np.float64))
    same([1.0, 2.5], [1, 2.4], atol=0.11)
    same(np.array([1.0, 2.0]), [1.1, 2.0], atol=np.array([0.11, 0]))
    same({"a": [(1, b"x")]}, {"a": [(1, b"x")]})
    with pytest.raises(AssertionError, match=r"^the sum: 1 of 2 elements are wrong, the first is \[1\]"):
        same(np.array([1.0, 2.0]), [1.1, 2.1], "the sum", atol=np.array([0.11, 0]))


@dataclass(frozen=True)
class Step:
    """A dimension."""

    size: int
    stride: int


PARTS = {
    "[1].stride is 3, expected 2 (+1)": ([Step(1, 2), Step(4, 3)], [Step(1, 2), Step(4, 2)]),
    "has 3 entries, expected 2: too many from [1] on: 9": ([1, 9, 2], [1, 2]),
    "has 2 entries, expected 1: too many from [1] on: int64[2] [1, 2]": ([np.zeros(2), np.arange(1, 3)], [np.zeros(2)]),
    "has 3 entries, expected 4; the first 1 and the last 0 are right\n[1] is 2, expected 9 (-7)": (
        [1, 2, 6], [1, 9, 6, 3],
    ),
    "has 1 entries, expected 3: missing from [0] on: 1, 2": ((3,), (1, 2, 3)),
    "['b'] is missing, expected 2\n['c'] is 3, expected none": ({"a": 1, "c": 3}, {"a": 1, "b": 2}),
    "lacks 1 of 2: 2\nhas unexpected 1 of 2: 3": ({1, 3}, {1, 2}),
    "line 2 is 'c', expected 'b'": ("a\nc\n", "a\nb\n"),
    "['x'] 1 of 3 elements are wrong, the first is [1] = 1, expected 2; bytes 1; each is 1 too small": (
        {"x": bytes([1, 1, 3])}, {"x": bytes([1, 2, 3])},
    ),
    "is 300.1, expected 300.0 (+0.1)": (300.1, 300.0),
}  # fmt: skip


@pytest.mark.parametrize("message", PARTS)
def test_parts_that_differ_are_told_by_their_place(message):
    assert difference(*PARTS[message]) == message


def unrefused(sizes):
    for axis, size in enumerate(sizes):
        with pytest.raises(ValueError, match="at most"):
            max(size, axis)


def unrefused_text(sizes):
    text = "sizes\n" * 40
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        max(text)
    assert str(caught.value) == sizes


def wrong_part(sizes):
    assert [Step(1, size) for size in sizes] == [Step(1, 5), Step(1, LIMIT)]


def wrong_number(sizes):
    small = LIMIT in sizes
    assert small


def wrong_turn(sizes):
    assert all(size % 4 == 0 and size < LIMIT for size in (8, *sizes))


def wrong_pair(sizes):
    assert not any(one > other for one in sizes for other in sizes)


def failed_command(sizes):
    ends(SimpleNamespace(args=["tool"], returncode=2, stderr="no such file\n", stdout=""), sizes[0])


REPORTS = {
    unrefused: [
        "Failed: DID NOT RAISE ValueError that says 'at most': nothing refused `max(size, axis)`",
        "in the loop axis = 0, size = 5",
    ],
    unrefused_text: [
        "Failed: DID NOT RAISE ValueError: nothing refused `max(text)`, then `assert str(caught.value) == sizes`",
    ],
    wrong_part: ["[1].stride is 1024, expected 1023 (+1)"],
    wrong_number: ["where small = False"],
    wrong_turn: ["not so for 2: 5, 1024"],
    wrong_pair: ["not so for 1: (1024, 5)"],
    failed_command: ["exit code 2 of ['tool']", "stderr: no such file"],
}


@pytest.mark.parametrize("sizes", [(5, 1024)])
@pytest.mark.parametrize("fails", REPORTS, ids=lambda fails: fails.__name__)
def test_a_failing_tests_report_tells_the_case_and_its_values(request, fails, sizes):
    """A failure in a call of a function that is no test."""
    call = pytest.CallInfo.from_call(lambda: fails(sizes), "call")
    report = request.node.ihook.pytest_runtest_makereport(item=request.node, call=call)
    common = ["the test: A failure in a call of a function that is no test.", "with sizes = (5, 1024)"]
    lines = [line.removeprefix("E").strip() for line in report.longreprtext.splitlines()]
    assert not [line for line in (*REPORTS[fails], *common) if line not in lines], report.longreprtext
