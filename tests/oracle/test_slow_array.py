"""The slow interpreter itself, against numpy and hand-counted values; and the generator, which must not be idle."""

import numpy as np
import pytest

from oracle.array_design import (
    Access,
    Argument,
    Bd,
    Buffer,
    Chain,
    Combine,
    Configure,
    Core,
    Design,
    Dim,
    Flow,
    Lock,
    Memcpy,
    Port,
    Program,
    Tile,
    Times,
    UseLock,
    WaitToken,
    WriteWords,
    statements,
)
from oracle.comparison import (
    disagreement,
    expected_of,
)
from oracle.random_designs import random_design
from oracle.slow_array import Outcome, SlowArray, packet_header, word_offsets
from support.differences import same

SHIM, MEM, CORE = Tile(0, 0), Tile(0, 1), Tile(0, 2)
SEND, FILL = Port(MEM, "MM2S", 0), Port(CORE, "S2MM", 0)
DATA = tuple(range(100, 124))


def one_way(*bds: Bd, words: int, runs: int = 1, **flow) -> Design:
    """A memtile buffer of 24 words sent into a core's buffer."""
    fill = Bd("sink", "i32", 0, words)
    return Design(
        "npu2",
        (Buffer("data", MEM, "i32", 24, DATA), Buffer("sink", CORE, "i32", words)),
        (),
        (Flow(SEND, (FILL,), **flow),),
        (Program(SEND, (Chain(bds, runs),)), Program(FILL, (Chain((fill,)),))),
        (),
    )


def sink_after(design: Design, seed: int = 0) -> list[int]:
    array = SlowArray(design, seed)
    assert array.run() is Outcome.DONE
    return list(np.frombuffer(array.memory["sink"], np.int32))


@pytest.mark.parametrize("seed", range(3))
def test_dimensions_are_nested_loops(seed):
    bd = Bd("data", "i32", 0, 24, (Dim(6, 1), Dim(4, 6)))
    assert sink_after(one_way(bd, words=24), seed) == list(np.array(DATA).reshape(4, 6).T.ravel())


def test_padding_is_zeros_around_the_data():
    bd = Bd("data", "i32", 2, 24, (Dim(2, 6, 1, 1), Dim(3, 1, 2, 1)))
    inner = np.array(DATA).reshape(4, 6)[:2, 2:5]
    assert sink_after(one_way(bd, words=24)) == list(np.pad(inner, ((1, 1), (2, 1))).ravel())


def test_a_chain_runs_whole_before_it_repeats_and_iterations_move_on():
    chain = Bd("data", "i32", 0, 1), Bd("data", "i32", 8, 2, iteration=(2, 4))
    assert sink_after(one_way(*chain, words=9, runs=3)) == [100, 108, 109, 100, 112, 113, 100, 108, 109]


def test_small_elements_travel_in_words():
    bd = Bd("bytes", "i8", 4, 16, (Dim(2, 8), Dim(2, 4), Dim(4, 1)))
    assert word_offsets(bd) == [4, 8, 12, 16]


def test_a_packet_keeps_its_header_where_the_flow_says_so():
    bd = Bd("data", "i32", 0, 2, packet=(1, 3))
    header = 0x80011003  # parity, row 1, type 1, id 3
    assert packet_header(SEND, 1, 3) == header
    assert sink_after(one_way(bd, words=2, packet_id=3)) == [100, 101]
    kept = sink_after(one_way(bd, words=3, packet_id=3, keep_header=True))
    assert [int(word) % 2**32 for word in kept] == [header, 100, 101]


def test_a_broadcast_waits_for_its_slowest_sink():
    other = Port(Tile(0, 3), "S2MM", 1)
    design = one_way(Bd("data", "i32", 0, 24), words=24)
    design = design.with_changes(flows=(Flow(SEND, (FILL, other)),))
    array = SlowArray(design, fifo_words=4)
    assert array.run() is Outcome.STUCK
    assert list(np.frombuffer(array.memory["sink"], np.int32)) == [*DATA[:4], *[0] * 20]


def guarded(release: int = 1, need: int = 1) -> Design:
    """The host sends eight words through a core that doubles them in place, twice four."""
    fill, send = Port(CORE, "S2MM", 0), Port(CORE, "MM2S", 0)
    to_core, to_host = Port(SHIM, "MM2S", 0), Port(SHIM, "S2MM", 0)
    bd = Bd("data", "i32", 0, 4)
    acquire = "AcquireGreaterEqual"
    filling = Bd("data", "i32", 0, 4, (), UseLock("free", acquire, need), UseLock("full", "Release", 1))
    sending = Bd("data", "i32", 0, 4, (), UseLock("done", acquire, 1), UseLock("free", "Release", release))
    double = Combine((4,), "addi", Access("data", 0, (1,)), Access("data", 0, (1,)), Access("data", 0, (1,)))
    core = Times(None, (UseLock("full", acquire, 1), double, UseLock("done", "Release", 1)))
    line = ((0, 0, 0, 0), (1, 1, 1, 8), (0, 0, 0, 1))
    return Design(
        "npu2",
        (Buffer(bd.memory, CORE, "i32", 4),),
        (Lock("free", CORE, 0, 1), Lock("full", CORE, 1), Lock("done", CORE, 2)),
        (Flow(to_core, (fill,)), Flow(send, (to_host,))),
        (Program(fill, (Chain((filling,), loops=True),)), Program(send, (Chain((sending,), loops=True),))),
        (Core(CORE, (core,)),),
        (Argument("a", "i32", 8, DATA[:8]), Argument("b", "i32", 8, (0,) * 8)),
        (
            Memcpy(to_host, "b", "i32", *line, id=0, token=True),
            Memcpy(to_core, "a", "i32", *line, id=1, token=False),
            WaitToken(to_host),
        ),
    )


@pytest.mark.parametrize("seed", range(5))
def test_locks_keep_writer_core_and_reader_apart(seed):
    array = SlowArray(guarded(), seed)
    assert array.run() is Outcome.DONE
    assert list(np.frombuffer(array.memory["b"], np.int32)) == [2 * v for v in DATA[:8]]


def test_a_value_that_never_comes_is_a_deadlock_and_one_too_large_a_range_error():
    assert SlowArray(guarded(need=2)).run() is Outcome.DEADLOCK
    assert SlowArray(guarded(release=64)).run() is Outcome.LOCK_RANGE


def features(design: Design) -> set[str]:
    """What a design exercises."""
    ports = [p for f in design.flows for p in (f.source, *f.sinks)]
    chains = [c for p in design.programs for c in p.tasks]
    chains += [op.chain for op in design.sequence if isinstance(op, Configure)]
    bds = [bd for c in chains for bd in c.bds]
    places = {m.name: m.tile for m in (*design.buffers, *design.locks)}
    uses = [bd.acquire for bd in bds if bd.acquire]
    static = [(p.port.tile, bd) for p in design.programs for c in p.tasks for bd in c.bds]
    body = [(c.tile, s) for c in design.cores for s in statements(c.body)]
    found = {f"{len(bd.dims)} dimensions" for bd in bds} | {bd.element for bd in bds}
    found |= {f"chain of {min(len(c.bds), 4)}" for c in chains} | {type(op).__name__ for op in design.sequence}
    found |= {type(s).__name__ for _, s in body} | {op.form for op in design.sequence if isinstance(op, WriteWords)}
    found |= {use.action for use in uses} | {f"{p.tile.kind} {p.direction}" for p in ports}
    checks = {
        "padding": any(d.before or d.after for bd in bds for d in bd.dims),
        "repeat": any(c.runs > 1 for c in chains),
        "iteration": any(bd.iteration for bd in bds),
        "broadcast": any(len(f.sinks) > 1 for f in design.flows),
        "packets": any(f.packet_id is not None for f in design.flows),
        "kept headers": any(f.keep_header for f in design.flows),
        "packet fan-out": len({f.source for f in design.flows}) < len(design.flows),
        "two tasks": any(len(p.tasks) > 1 for p in design.programs),
        "neighbour memory": any(places[bd.memory] != tile for tile, bd in static),
        "neighbour locks": any(bd.acquire and places[bd.acquire.lock] != tile for tile, bd in static),
        "core to neighbour": any(isinstance(s, UseLock) and places[s.lock] != tile for tile, s in body),
        "raw transfers": any(isinstance(op, Memcpy) and op.raw for op in design.sequence),
        "array only": not design.sequence,
        "outer stride 0": any(
            isinstance(op, Memcpy) and op.sizes[0] > 1 and not op.strides[0] for op in design.sequence
        ),
        "runtime tasks of memtiles and cores": any(
            isinstance(op, Configure) and op.port.tile.kind != "shim" for op in design.sequence
        ),
    }
    return found | {name for name, holds in checks.items() if holds}


WANTED = {
    "0 dimensions", "1 dimensions", "2 dimensions", "3 dimensions", "4 dimensions", "i8", "i16", "i32",
    "chain of 1", "chain of 2", "chain of 3", "chain of 4", "Memcpy", "Configure", "Await", "Free", "WaitToken",
    "SetLock", "rtp", "buffer", "tile", "full", "mask", "block", "block_tile", "Combine", "Sum", "Copy", "Call",
    "Fetch", "Times", "Alternate", "Acquire", "AcquireGreaterEqual", "shim MM2S", "shim S2MM", "memtile MM2S",
    "memtile S2MM", "core MM2S", "core S2MM", "padding", "repeat", "iteration", "broadcast", "packets",
    "kept headers", "packet fan-out", "two tasks", "neighbour memory", "neighbour locks", "core to neighbour",
    "array only", "outer stride 0", "raw transfers", "runtime tasks of memtiles and cores",
}  # fmt: skip


def test_a_hundred_designs_exercise_every_feature():
    missing = set(WANTED)
    for seed in range(100):
        if missing:
            missing -= features(random_design(seed))
    assert not missing


def test_nearly_every_design_ends():
    ended = sum(SlowArray(random_design(seed), seed, fifo_words=1).run() is Outcome.DONE for seed in range(10))
    assert ended >= 9


def test_the_result_does_not_depend_on_schedule_or_depth():
    for seed in range(5):
        expected = expected_of(seed)
        for other, words in ((seed + 100, 2), (seed + 200, 64)):
            array = SlowArray(expected.design, other, words)
            assert array.run() is Outcome.DONE
            same({n: bytes(m) for n, m in array.memory.items()}, expected.memory)


def sabotaged(design: Design) -> Design:
    """The same design with one argument's first value changed: another result."""
    first = next(a for a in design.arguments if a.name.startswith("arg_mm2s"))
    changed = Argument(first.name, first.element, first.elements, (first.values[0] ^ 1, *first.values[1:]))
    return design.with_changes(arguments=tuple(changed if a is first else a for a in design.arguments))


def test_a_wrong_result_is_noticed():
    expected = next(e for e in map(expected_of, range(10)) if e.design.arguments)
    assert "byte" in disagreement(sabotaged(expected.design), expected.memory)
