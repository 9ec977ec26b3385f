"""The generator of designs, which must not be idle, and the slow interpreter, whose end no schedule may change.

Its walks, locks and packets are held by its agreement with the emulated array on random designs: what that does with
each of them, tests/emulator compares with numpy.
"""

from oracle.array_design import Argument, Configure, Design, Memcpy, UseLock, WriteWords, statements
from oracle.comparison import disagreement, expected_of
from oracle.random_designs import random_design
from oracle.slow_array import Outcome, SlowArray
from support.differences import same


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
