"""The page of a design: its data against tables and hand, what it escapes, and pages of what is wrong or hangs."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator.errors import Deadlock
from bdforge.array.show.page import embedded, page
from bdforge.array.show.page.run_record import RunRecord
from support.built_designs import ROOT
from support.small_designs import loopback

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
CHAIN = (ROOT / "examples/chain/chain.mlir").read_text()
KERNELS = {
    "scale": lambda x, scaled, factor: np.multiply(x, factor, out=scaled),
    "clip": lambda y, clipped: np.maximum(y, 0, out=clipped),
}


def data_of(html: str) -> dict:
    """What a browser reads from the page."""
    (text,) = _DATA.findall(html)
    return json.loads(text)


def recorded(text: str, kernels=None, words: int = 96, most: int = 20_000) -> tuple[dict, list[np.ndarray]]:
    """The record of a run of two buffers of so many words, and the buffers."""
    record, arrays = RunRecord(most), [np.arange(words, dtype=np.int32), np.zeros(words, np.int32)]
    bdforge.emulate(text, arrays, kernels, file="x.mlir", observers=[record])
    return record.data(), arrays


def line(text: str, part: str) -> int:
    """The number of the only line that holds a part."""
    (found,) = [number for number, each in enumerate(text.splitlines(), 1) if part in each]
    return found


def test_the_page_holds_tiles_with_memory_locks_channels_and_calls():
    design = data_of(page(CHAIN, "chain.mlir").html)["design"]
    tiles = {tuple(tile["at"]): tile for tile in design["tiles"]}
    core = tiles[0, 2]
    assert list(tiles) == [(0, 0), (0, 2), (0, 3)]
    assert core["line"] == line(CHAIN, "%scaler = aie.tile")
    assert core["memory"]["limit"] == 65536
    assert core["memory"]["used"] == 1024 + 64 + 64
    assert core["memory"]["spans"] == [
        [0, 1024, "stack", "", None],
        [1024, 1088, "x", "memref<16xi32>", line(CHAIN, "%x = aie.buffer")],
        [1088, 1152, "scaled", "memref<16xi32>", line(CHAIN, "%scaled = aie.buffer")],
    ]
    assert core["locks"][0] == [0, "x_free", 1, line(CHAIN, "%x_free = aie.lock")]
    assert core["core"]["kernels"] == ["scale"]
    (call,) = core["core"]["calls"]
    assert call["buffers"] == [[0, 2, 1024, 64], [0, 2, 1088, 64]]
    assert tiles[0, 0]["channels"] == [["MM2S", 0, "from_host"], ["S2MM", 0, "to_host"]]


def test_the_page_holds_streams_on_their_routes():
    design = data_of(page(CHAIN, "chain.mlir").html)["design"]
    ends = [(stream["from"], stream["to"], stream["hops"]) for stream in design["streams"]]
    assert ends == [
        ([0, 0, "DMA : 0"], [[0, 2, "DMA : 0"]], 2),
        ([0, 2, "DMA : 0"], [[0, 3, "DMA : 0"]], 1),
        ([0, 3, "DMA : 0"], [[0, 0, "DMA : 0"]], 3),
    ]
    for stream in design["streams"]:
        ways = stream["ways"]
        assert len(ways) == stream["hops"] + 1  # a way in each switch
        assert all(before[-1] == after[0] for before, after in pairwise(ways))


def test_transfers_have_their_pattern_in_elements_and_their_line():
    text = loopback(
        words=96, runs=1, send="0, 96, [<size = 4, stride = 8>, <size = 3, stride = 32>, <size = 8, stride = 1>]"
    )
    transfers = data_of(page(text, "x.mlir").html)["design"]["transfers"]
    fill, send, *runtime = transfers
    assert (fill["buffer"], fill["channel"], fill["sizes"], fill["length"]) == ("buffer", "S2MM 0", [], 96)
    assert (send["sizes"], send["strides"], send["number"]) == ([4, 3, 8], [8, 32, 1], 1)
    assert send["line"] == line(text, "stride = 32")
    assert {(bd["host"], bd["length"], tuple(bd["tile"])) for bd in runtime} == {(True, 96, (0, 0))}


def test_names_cannot_leave_the_data():
    text = CHAIN.replace('sym_name = "x"}', 'sym_name = "</script><b>&\\22"}')
    name = "</script><script>alert(1)</script>&.mlir"
    html = page(text, name).html
    assert html.count("</script>") == 2  # those of the page
    assert "<script>alert" not in html
    assert data_of(html)["text"] == text
    assert data_of(html)["file"] == name
    odd = ["</script>", "<!--", "]]>", "\u2028", "é\U0001f600", "@@DATA@@", "\\1\\g<0>"]
    assert json.loads(embedded(odd)) == odd
    assert data_of(page("// @@DATA@@ @@STYLE@@ \\1\n" + CHAIN, "x").html)["text"].startswith(
        "// @@DATA@@ @@STYLE@@ \\1"
    )


def test_the_page_asks_for_nothing_from_elsewhere():
    html = page(CHAIN, "chain.mlir").html
    assert "default-src 'none'" in html
    urls = set(re.findall(r"""https?://[^"'\s)]+""", html.replace(CHAIN, "")))
    assert urls <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:link|img|iframe)\b|\bsrc=|\bimport\b", _DATA.sub("", html))


@pytest.mark.parametrize(("text", "drawn", "at", "told"), [
    (loopback().replace("aie.flow(%shim", "aie.fl0w(%shim"), False, "aie.fl0w", "aie.fl0w"),
    (loopback(words=200_000), False, "%buffer = aie.buffer", "@buffer"),
    (loopback().replace("(%mem, 0) {init", "(%mem, 64) {init"), False, "%free = aie.lock", "64"),
    (loopback(send="0, 32, [<size = 32, stride = 99>]"), False, "stride = 99", "stride exceeds"),
    (loopback(send="0, 32, [<size = 32, stride = 1>]").replace("@out}", "@in}"), True, "aiex.npu.dma_wait", "token"),
])  # fmt: skip
def test_an_invalid_design_has_a_page_with_its_errors_at_their_lines(text: str, drawn: bool, at: str, told: str):
    made = page(text, "x.mlir")
    data = data_of(made.html)
    error, *more = [message for message in data["messages"] if message["kind"] == "error"]
    assert (error["text"], *(each["text"] for each in more)) == made.faults
    assert told in error["text"]
    assert error["line"] == line(text, at)
    assert (data["design"] is not None) == drawn


def test_a_text_without_a_device_has_a_page_that_says_so():
    made = page("module {\n}\n", "x.mlir")
    assert "no aie.device" in made.faults[0]
    assert data_of(made.html)["design"] is None


def replay(record: dict, count: int) -> list[int]:
    """Values of the locks after so many events, as the page steps."""
    values = [first for _, first in record["locks"]]
    for _, letter, *about in record["events"][:count]:
        if letter == "v":
            values[about[0]] = about[1]
    return values


def test_a_record_ends_with_the_locks_of_the_array():
    record, arrays = recorded(CHAIN, KERNELS)
    assert (arrays[1] == 3 * arrays[0]).all()
    assert replay(record, len(record["events"])) == record["end"]["locks"]
    used = {name.split(" ")[0]: value for (name, _), value in zip(record["locks"], record["end"]["locks"], strict=True)}
    assert [used[name] for name in ("scaled_free", "scaled_full", "y_full")] == [1, 0, 0]
    known = {"x_free", "x_full", "scaled_free", "scaled_full", "y_free", "y_full", "clipped_free", "clipped_full"}
    assert known <= used.keys()


def test_a_record_tells_calls_with_their_buffers_and_bds_with_their_lines():
    record, _ = recorded(CHAIN, KERNELS)
    texts, parties = record["texts"], [name for name, *_ in record["parties"]]
    begun = [
        (parties[p], texts[about[0]], about[1], about[2]) for p, letter, *about in record["events"] if letter == "b"
    ]
    assert [each for each in begun if each[1] == "scale"] == [
        ("core (0, 2)", "scale", None, [[0, 2, 1024], [0, 2, 1088]])
    ] * 6
    assert ("core (0, 2) S2MM 0", "BD 0", line(CHAIN, "aie.dma_bd(%x :"), []) in begun
    assert sum(letter == "e" for _, letter, *_ in record["events"]) == len(begun) - len(record["end"]["open"])
    assert sum(letter == "t" for _, letter, *_ in record["events"]) == 1  # the sequence awaits one token


def test_a_wait_says_for_whom_and_a_source_without_full_sinks_names_them():
    record, _ = recorded(loopback())
    told = {record["texts"][about[0]] for _, letter, *about in record["events"] if letter == "w"}
    assert any("waits for lock full" in text for text in told)
    assert not any("none leads away" in text for text in told)


def test_a_core_without_calls_waits_anew_after_it_has_moved_a_lock():
    record, _ = recorded((ROOT / "examples/add_one/add_one.mlir").read_text())
    core = next(i for i, (name, *_) in enumerate(record["parties"]) if name == "core (0, 2)")
    waits = [record["locks"][event[4]][0] for event in record["events"] if event[:2] == [core, "w"]]
    assert waits.count("in_full (1 of core (0, 2))") == 7  # each of six pieces of 16 words, and one that never comes


def test_a_record_is_bounded_and_keeps_how_all_ended():
    whole, _ = recorded(CHAIN, KERNELS)
    cut, _ = recorded(CHAIN, KERNELS, most=7)
    assert (len(cut["events"]), cut["count"]) == (7, whole["count"])
    assert cut["events"] == whole["events"][:7]
    first = dict(map(tuple, whole["locks"]))
    ends = [dict(zip([name for name, _ in each["locks"]], each["end"]["locks"], strict=True)) for each in (cut, whole)]
    assert ends[0] == ends[1]
    assert ends[0] != first


def test_a_deadlock_stands_in_the_record_with_its_parties():
    text, record = (ROOT / "examples/deadlock/deadlock.mlir").read_text(), RunRecord()
    with pytest.raises(Deadlock) as stuck:
        bdforge.emulate(text, [np.zeros(96, np.int32)] * 2, file="x.mlir", observers=[record])
    run = data_of(page(text, "x.mlir", record=record, fault=str(stuck.value)).html)["run"]
    waits = {
        run["parties"][party][0]: (run["texts"][sentence], lock) for party, sentence, _, lock in run["end"]["waits"]
    }
    sentence, lock = waits["memtile (0, 1) S2MM 0"]
    assert "waits for lock free (0 of memtile (0, 1)) >= 1, which is 0 and which nobody releases" in sentence
    assert (run["locks"][lock], run["end"]["locks"][lock]) == (["free (0 of memtile (0, 1))", 0], 0)
    assert all(
        name in run["fault"] for name in ("memtile (0, 1) S2MM 0", "memtile (0, 1) MM2S 0", "shim (0, 0) S2MM 0")
    )
