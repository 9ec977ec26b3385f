"""Texts of designs: every part that the model knows, on the emulated array; templates of one's own."""

from dataclasses import replace

import jinja2
import numpy as np
import pytest

import bdforge
from bd_patterns import Pattern
from bdforge.design import Acquire, Bd, Buffer, Channel, Design, Flow, Lock, Packet, Release, Tile, placed, render
from bdforge.devices import TileKind

VALUES = tuple(range(1, 9))


def two_memtiles(channel: Channel, flow_changes=None, words: int = 8, more: tuple[Channel, ...] = ()) -> Design:
    """What a channel of one memtile sends fills a buffer of the next one, once."""
    kept = Buffer("kept", words, "i32")
    source = Tile("source", 0, 1, TileKind.MEMTILE, (channel.bds[0].buffer,), (FREE, FULL), (channel, *more))
    into = Channel("S2MM", 0, (Bd(kept, Pattern((words,), (1,))),), back=None)
    target = Tile("target", 1, 1, TileKind.MEMTILE, (kept,), channels=(into,))
    flow = Flow(source.dma(0), (target.dma(0),), **(flow_changes or {}))
    return placed(Design("pair", "npu2_2col", (source, target), (flow,)))


SENT = Buffer("sent", 8, "i32", values=VALUES)
FREE, FULL = Lock("free", 0, 2), Lock("full", 1)
ALL = Pattern((8,), (1,))
HALVES = (Bd(SENT, Pattern((4,), (1,))), Bd(SENT, Pattern((4,), (1,), 4)))


def kept(design: Design) -> list[int]:
    return bdforge.emulate(render(design), permissive=["bd-locks"]).buffers["kept"].tolist()


def test_a_chain_that_ends_runs_as_often_as_told():
    assert kept(two_memtiles(Channel("MM2S", 0, HALVES, back=None))) == list(VALUES)
    assert kept(two_memtiles(Channel("MM2S", 0, HALVES, back=None, runs=2), words=16)) == [*VALUES, *VALUES]


def test_a_chain_may_go_back_to_any_of_its_bds():
    """The second half again and again, for as long as there is something to take."""
    taken = Acquire(FREE)
    bds = tuple(replace(bd, acquire=taken) for bd in HALVES)
    assert kept(two_memtiles(Channel("MM2S", 0, bds, back=1))) == list(VALUES)
    more = replace(two_memtiles(Channel("MM2S", 0, bds, back=1), words=12))
    source = replace(more.tiles[0], locks=(replace(FREE, init=3), FULL))
    assert kept(replace(more, tiles=(source, more.tiles[1]))) == [*VALUES, *VALUES[4:]]


def test_tasks_of_a_channel_follow_each_other():
    first, second = (Channel("MM2S", 0, (bd,), back=None) for bd in HALVES)
    assert kept(two_memtiles(second, more=(first,))) == [*VALUES[4:], *VALUES[:4]]


def test_bds_release_without_acquiring_and_wait_for_an_exact_value():
    """Each half waits until the other one has released: free is 2, then full 1."""
    waits = Bd(SENT, Pattern((4,), (1,)), Acquire(FREE, 2, exactly=True), Release(FULL))
    then = Bd(SENT, Pattern((4,), (1,), 4), Acquire(FULL))
    first, second = (Channel("MM2S", 0, (bd,), back=None) for bd in (waits, then))
    design = two_memtiles(first, more=(second,))
    assert "use_lock(%free, Acquire, 2)" in render(design)
    assert kept(design) == list(VALUES)


@pytest.mark.parametrize(("count", "held", "takes"), [(1, 1, True), (1, 2, False), (2, 2, True), (2, 3, False)])
def test_an_exact_wait_takes_that_very_value(count: int, held: int, takes: bool):
    bd = Bd(SENT, ALL, Acquire(FREE, count, exactly=True))
    made = two_memtiles(Channel("MM2S", 0, (bd,), back=None))
    source = replace(made.tiles[0], locks=(replace(FREE, init=held), FULL))
    made = replace(made, tiles=(source, made.tiles[1]))
    assert kept(made) == (list(VALUES) if takes else [0] * 8), f"a lock of {held}, waited for as {count}"


def test_zeros_stand_before_and_behind():
    bd = Bd(SENT, Pattern((2, 4), (4, 1)), padding=((1, 0), (1, 2)))
    expected = np.pad(np.reshape(VALUES, (2, 4)), ((1, 0), (1, 2)))
    assert kept(two_memtiles(Channel("MM2S", 0, (bd,), back=None), words=21)) == expected.ravel().tolist()


def test_packets_find_their_flow_with_or_without_their_header():
    channel = Channel("MM2S", 0, (Bd(SENT, ALL, packet=Packet(5, 1)),), back=None)
    assert kept(two_memtiles(channel, {"packet": 5})) == list(VALUES)
    header, *data = kept(two_memtiles(channel, {"packet": 5, "keep_header": True}, words=9))
    assert (header & 31, header >> 12 & 7, data) == (5, 1, list(VALUES))


def test_a_template_of_ones_own_uses_the_macros(tmp_path):
    design = two_memtiles(Channel("MM2S", 0, HALVES))
    template = tmp_path / "list.j2"
    template.write_text(
        '{% import "ops.mlir.j2" as op %}{{ title }}'
        "{% for t in design.tiles %}\n{{ op.tile(t) }}{% endfor %}"
        '{% for dma in dmas %}\n{{ written(dma, "") }}{% endfor %}'
    )
    text = render(design, template, title="// tiles")
    assert text.startswith("// tiles\n%source = aie.tile(0, 1) {")
    told, whole = ([line.strip() for line in each.splitlines()] for each in (text, render(design)))
    start = whole.index(told[3])
    assert told[3].startswith("%dma_source")
    assert told[3:10] == whole[start : start + 7]


def test_a_name_that_a_template_lacks_is_an_error(tmp_path):
    template = tmp_path / "lacking.j2"
    template.write_text("{{ design.name }} {{ missing }}")
    with pytest.raises(jinja2.UndefinedError, match="missing"):
        render(two_memtiles(Channel("MM2S", 0, HALVES)), template)
