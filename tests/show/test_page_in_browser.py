"""The page in Chromium: no script fails, steps show the locks that the emulated array had, walks go as numpy says."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator.errors import EmulationError
from bdforge.array.show.page import page
from bdforge.array.show.page.run_record import RunRecord
from show.test_page import CHAIN, KERNELS, replay
from support.browser import MISSING, Browser, browser
from support.built_designs import ROOT
from support.small_designs import loopback

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=f"no {' and no '.join(MISSING)}")]
RIGHT, END, ESCAPE = "\ue014", "\ue010", "\ue00c"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def opened(chromium: Browser, folder: Path, text: str, kernels=None, runs: bool = True) -> dict:
    """Open the page of a design and of its run; the run's record."""
    record, fault = RunRecord(), ""
    if runs:
        try:
            bdforge.emulate(text, [np.zeros(96, np.int32)] * 2, kernels, file="x.mlir", observers=[record])
        except EmulationError as error:
            fault = str(error)
    file = folder / "page.html"
    file.write_text(page(text, "x.mlir", record=record if runs else None, fault=fault).html, encoding="utf-8")
    chromium.open(file)
    assert chromium.complaints() == []
    return record.data(fault)


def test_steps_show_the_locks_of_the_emulated_array(chromium: Browser, tmp_path: Path):
    record = opened(chromium, tmp_path, CHAIN, KERNELS)
    index = next(i for i, (name, _) in enumerate(record["locks"]) if name.startswith("scaled_full"))
    chromium.run("select({kind: 'lock', place: '0,2', index: 3})")
    seen = []
    for count in range(1, 60):
        chromium.press(RIGHT)
        shown = chromium.run(
            "return [cursor, at('lock-value').textContent, shown.locks.get('0,2,3').value.textContent]"
        )
        assert shown[0] == count
        assert shown[1] == shown[2]
        seen.append(int(shown[1]))
    assert seen == [replay(record, count)[index] for count in range(1, 60)]
    assert {0, 1} == set(seen)
    chromium.press(END)
    assert chromium.run("return state.locks") == record["end"]["locks"]
    assert chromium.complaints() == []


def test_a_call_shows_its_buffers_as_held_and_its_line(chromium: Browser, tmp_path: Path):
    record = opened(chromium, tmp_path, CHAIN, KERNELS)
    scale = record["texts"].index("scale")
    number = next(i for i, event in enumerate(record["events"]) if event[1:3] == ["b", scale])
    chromium.run("go(arguments[0]); select({kind: 'tile', place: '0,2'})", number + 1)
    assert chromium.run("return document.querySelectorAll('.buffer.called').length") == 2
    assert chromium.run("return heldBy('0,2', 1)") == "core (0, 2)"
    called = int(chromium.run("return document.querySelector('.line.now').dataset.line"))
    assert "@scale" in CHAIN.splitlines()[called - 1]


def test_a_deadlock_is_shown_where_it_stands(chromium: Browser, tmp_path: Path):
    record = opened(chromium, tmp_path, (ROOT / "examples/deadlock/deadlock.mlir").read_text())
    assert chromium.run("return cursor") == len(record["events"])
    assert chromium.run("return document.querySelectorAll('.port.stuck').length") == 3
    assert "deadlock: nothing can move" in chromium.run("return at('details').innerText")
    assert chromium.run("return [...stuck].map((party) => run.parties[party][0]).sort()") == [
        "memtile (0, 1) MM2S 0", "memtile (0, 1) S2MM 0", "shim (0, 0) S2MM 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "strides", "offset"), [((4, 3, 8), (8, 32, 1), 0), ((8, 12), (1, 8), 0), ((3, 5), (17, 2), 7)]
)
def test_a_walk_goes_as_numpy_says(chromium: Browser, tmp_path: Path, sizes, strides, offset):
    dims = ", ".join(f"<size = {size}, stride = {stride}>" for size, stride in zip(sizes, strides, strict=True))
    length = int(np.prod(sizes))
    opened(chromium, tmp_path, loopback(words=96, runs=1, send=f"{offset}, {length}, [{dims}]"), runs=False)
    expected = offset + np.tensordot(np.array(strides), np.indices(sizes), 1).ravel()
    assert chromium.run("return walkOrder(design.transfers[1])") == expected.tolist()
    chromium.run("select({kind: 'transfer', index: 1}); at('walk-at').value = 2; drawWalk()")
    assert f"element {expected[1]} " in chromium.run("return at('walk-told').textContent")


def test_padding_is_walked_and_long_walks_are_bounded(chromium: Browser, tmp_path: Path):
    opened(chromium, tmp_path, loopback(), runs=False)
    padded = {"offset": 5, "length": 15, "sizes": [3, 3], "strides": [10, 1], "pads": [[0, 0], [1, 1]]}
    found = chromium.run("return walkOrder(arguments[0])", padded)
    assert found == [-1, 5, 6, 7, -1, -1, 15, 16, 17, -1, -1, 25, 26, 27, -1]
    long = {"offset": 0, "length": 1 << 20, "sizes": [], "strides": [], "pads": []}
    assert chromium.run("return walkOrder(arguments[0]).length", long) == 4096


def test_a_text_with_an_error_is_shown_at_its_line(chromium: Browser, tmp_path: Path):
    name = '</script><img src=x onerror="document.title=1">'
    opened(chromium, tmp_path, f"// {name}\n" + loopback().replace("aie.flow(%mem", "aie.fl0w(%mem"), runs=False)
    assert chromium.run("return document.querySelectorAll('.line.error').length") == 1
    assert chromium.run("return document.querySelector('.line').textContent") == f"1// {name}"
    assert chromium.run("return document.images.length") == 0


def test_lines_and_array_lead_to_each_other(chromium: Browser, tmp_path: Path):
    opened(chromium, tmp_path, CHAIN, runs=False)
    chromium.run("lines[6].click()")
    assert chromium.run("return selected") == {"kind": "tile", "place": "0,2"}
    chromium.run("shown.tiles.get('0,3').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert chromium.run("return [...document.querySelectorAll('.line.on')].map((line) => +line.dataset.line)") == [7]
    chromium.press(ESCAPE)
    assert chromium.run("return selected") is None
    assert chromium.complaints() == []
