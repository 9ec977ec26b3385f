"""Modes: buffers of a tile that share bytes, where they lie, what MLIR has of them, what is refused."""

import random
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import bdforge
from bd_patterns import Pattern
from bdforge.array.core_bodies.core_program import core_program
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.design import (
    Acquire,
    Advance,
    Bd,
    Buffer,
    Call,
    Channel,
    Core,
    Design,
    DesignError,
    Flow,
    Load,
    Lock,
    Release,
    Rotation,
    Store,
    SwitchOn,
    Tile,
    check,
    placed,
    render,
    whole,
)
from bdforge.design.core_code import Statement
from bdforge.design.document import DocumentError, design_of, document
from bdforge.design.modes import in_bytes
from bdforge.design.placement import moved
from bdforge.design.sequences import Start, Stored, interpret
from bdforge.devices import DEVICES, TileKind
from bdforge.devices.limits import CORE
from support.differences import same

RTP = Buffer("core_rtp", 4, "i32", values=(2, 0, 0, 0), words=("opcode",))
BYTES = Buffer("core_bytes", 400, "i8", mode="one")
WORDS = Buffer("core_words", 16, "i32", mode="one")
ROWS = Buffer("core_rows", 24, "bf16", mode="two")
OVER = Buffer("core_over", 50, "i16", mode="two", over="core_bytes")
HELD = (RTP, BYTES, WORDS, ROWS, OVER)


def design(*buffers: Buffer, body: tuple[Statement, ...] = (), channels: tuple[Channel, ...] = (), more=()) -> Design:
    core = Tile("core", 0, 2, TileKind.CORE, buffers, (), channels, Core(body))
    return placed(Design("shared", "npu2_1col", (core, *more)))


def spans(made: Design) -> dict[str, range]:
    return {b.name: range(b.address or 0, (b.address or 0) + b.bytes) for b in made.tiles[0].buffers}


@pytest.mark.parametrize("moved", [False, True], ids=["of the core alone", "moved by channels"])
def test_buffers_of_one_mode_lie_apart_and_modes_at_the_same_place(moved: bool):
    chains = [(Bd(buffer, whole(buffer)),) for buffer in (BYTES, WORDS, ROWS)]
    channels = [Channel("MM2S", n // 2, bds, back=None) for n, bds in enumerate(chains)] if moved else []
    made = design(*HELD, channels=tuple(channels))
    assert check(made) == []
    at = spans(made)
    assert at["core_rtp"] == range(1024, 1040)
    for one, other in (("core_bytes", "core_words"), ("core_rows", "core_over")):
        assert not set(at[one]) & set(at[other])
    assert at["core_over"].start == at["core_bytes"].start
    assert min(at["core_bytes"].start, at["core_words"].start) == 1024 + 64 <= at["core_rows"].start < 1600


def test_what_lies_beside_what_lies_over_others_takes_the_first_gap():
    """The largest first: between the two, exactly; below them, exactly; above them."""
    below = [replace(BYTES, name=name, address=at) for name, at in (("low", 2048), ("high", 4096))]
    over = [replace(OVER, name=f"over_{b.name}", elements=200, over=b.name) for b in below]
    sizes = {"small": 64, "middle": 1024, "large": 4096 - 2496}
    made = design(*below, *over, *(Buffer(name, size, "i8", mode="two") for name, size in sizes.items()))
    assert check(made) == []
    at = {name: span.start for name, span in spans(made).items() if name in sizes}
    assert at == {"small": 4096 + 448, "middle": 1024, "large": 2496}


def test_a_tile_needs_the_bytes_of_its_largest_mode():
    room = CORE.memory_bytes - 1024
    fits = [Buffer(f"b{n}", room // 2 - 64 * (n == 2), "i8", mode="two" if n < 2 else "three") for n in range(3)]
    assert check(design(*fits, Buffer("c", 64, "i8", mode="three"))) == []
    reasons = [str(reason) for reason in check(design(*fits, Buffer("c", 64, "i8")))]
    assert reasons == [
        f"core (0, 2): {CORE.memory_bytes + 64} bytes of {CORE.memory_bytes} (c: 64, mode two: {room}, "
        f"mode three: {room // 2 - 64}, stack: 1024); choose smaller or fewer buffers"
    ]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_fits_is_placed_without_overlap(seed: int):
    """Random buffers of none to three modes, of which channels move some: good as long as the largest mode fits."""
    rng = random.Random(seed)
    modes = ["", "one", "two", "three"][: rng.randint(1, 4)]
    held, left = [], dict.fromkeys(modes, (CORE.memory_bytes - 1024) // 2)
    while len(held) < 12 and max(left.values()) >= 64:
        mode = rng.choice([mode for mode, room in left.items() if room >= 64])
        size = rng.choice([left[mode], 64, 1024, rng.randrange(4, left[mode] + 1, 4)])
        size = min(size, left[mode])
        held.append(Buffer(f"b{len(held)}", size, "i8", mode=mode))
        left[mode] -= -(-size // 64) * 64
    chains = [tuple(Bd(b, whole(b)) for b in held if rng.random() < 0.4) for _ in range(2)]
    channels = tuple(Channel("MM2S", n, bds, back=None) for n, bds in enumerate(chains) if bds)
    made = design(*held, channels=channels)
    assert [str(reason) for reason in check(made) if reason.rule in ("address", "memory")] == []
    taken = [(b.mode, span) for b, span in zip(made.tiles[0].buffers, spans(made).values(), strict=True)]
    for (mode, one), (other_mode, other) in combinations(taken, 2):
        apart = one.stop <= other.start or other.stop <= one.start
        assert apart or (mode != other_mode and mode and other_mode)
    again = design_of(document(made), "again")
    assert render(again) == render(made)


def test_mlir_has_one_buffer_of_bytes_and_views_of_it():
    text = render(design(*HELD, body=(Load("o", RTP), Store("o", WORDS, 3), Call("work", (ROWS, OVER)))))
    assert text.count("aie.buffer") == 2
    assert '%core_modes = aie.buffer(%core) {address = 1088 : i32, sym_name = "core_modes"} : memref<512xi8>' in text
    assert "// bytes of modes: one 464, two 148; bank 0" in text
    views = [line.split("=", 1)[1].split("//")[0].strip() for line in text.splitlines() if "memref.view" in line]
    assert views == [
        "memref.view %core_modes[%c0][] : memref<512xi8> to memref<512xi8>",
        "memref.view %core_mode_one[%c448][] : memref<512xi8> to memref<16xi32>",
        "memref.view %core_modes[%c0][] : memref<512xi8> to memref<176xi8>",
        "memref.view %core_mode_two[%c128][] : memref<176xi8> to memref<24xbf16>",
        "memref.view %core_mode_two[%c0][] : memref<176xi8> to memref<50xi16>",
    ]


REFUSED = {
    "of one mode": (
        [replace(BYTES, address=2048), replace(WORDS, address=2400)],
        "core_words starts at 0x960, core_bytes ends at 0x990; move one, or let them belong to two modes",
    ),
    "of none": (
        [replace(BYTES, address=2048), replace(RTP, address=2400)],
        "core_rtp starts at 0x960, core_bytes ends at 0x990; move one, or let them belong to two modes",
    ),
    "of none between modes": (
        [replace(BYTES, address=2048), replace(RTP, address=2560), replace(ROWS, address=3072)],
        "core_rtp of no mode starts at 0xa00, between the bytes of modes, 0x800 to 0xc30; move it below or above them",
    ),
    "the stack": ([replace(BYTES, address=512)], "core_bytes starts at 0x200, the stack ends at 0x400; move one, .*"),
    "the end": ([replace(BYTES, address=65408)], "core_bytes ends at 0x10110, the memory at 0x10000; move it down"),
    "values": (
        [replace(WORDS, values=(1,) * 16)],
        "core_words has values, but shares its bytes with other modes than one; store them when .*",
    ),
    "half a byte": ([Buffer("half", 8, "i4", mode="one")], "half of mode one has elements of 4 bits; give it .*"),
    "over none": ([replace(OVER, over="core_rows")], "core_over lies over core_rows, no buffer of another mode .*"),
    "over no mode": ([RTP, replace(OVER, over="core_rtp")], "core_over lies over core_rtp, no buffer of another .*"),
    "over, of no mode": ([BYTES, replace(OVER, mode="")], "core_over lies over core_bytes, no buffer of another .*"),
    "over one over another": (
        [BYTES, OVER, Buffer("third", 8, "i8", mode="three", over="core_over")],
        "third lies over core_over, no buffer of another mode of the tile with its own bytes; name one .*",
    ),
    "over its own mode": (
        [BYTES, replace(OVER, mode="one")],
        "core_over lies over core_bytes, no buffer of another mode of the tile with its own bytes; name .*",
    ),
    "over a smaller one": (
        [BYTES, replace(OVER, elements=202)],
        "core_over has 404 bytes, core_bytes below it 400; make it smaller",
    ),
}


@pytest.mark.parametrize(("buffers", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_modes_cannot_share_is_told(buffers: list[Buffer], reason: str):
    with pytest.raises(DesignError, match=rf"(?m)^shared: core \(0, 2\): {reason}$"):
        render(design(*buffers))


@pytest.mark.parametrize(("buffer", "reason"), [
    (Buffer("core_modes", 4, "i8"), "2 of tiles, .* are called core_modes"),
    (Buffer("core_mode_one", 4, "i8"), "2 of tiles, .* are called core_mode_one"),
    (Buffer("other", 4, "i8", mode="a b"), "'core_mode_a b' is no name in MLIR"),
])  # fmt: skip
def test_modes_take_names_of_their_own(buffer: Buffer, reason: str):
    (told,) = check(design(BYTES, buffer))
    assert re.fullmatch(reason, told.what)


TURN = Rotation("turn")


@pytest.mark.parametrize(("at", "shared"), [(1444, 0), (1440, 1), (1004 + 36, 1), (1036, 0)])
def test_a_kernel_may_get_bytes_of_two_modes_that_touch(at: int, shared: int):
    one, two = Buffer("one", 404, "i8", mode="a", address=1040), Buffer("two", 4, "i8", mode="b", address=at)
    for arguments in ((one, two), (two, one)):
        assert len(check(design(one, two, body=(Call("work", arguments),)))) == shared


def test_bytes_that_two_have_are_told_once():
    """Not that one of them lies between others, too."""
    held = [replace(BYTES, address=2048), replace(RTP, address=2400), replace(ROWS, address=3072)]
    assert [reason.what for reason in check(design(*held))] == ["core_rtp starts at 0x960, core_bytes ends at 0x990"]


@pytest.mark.parametrize(
    ("arguments", "shared"),
    [
        ((BYTES, OVER), "core_bytes and core_over"),
        ((3, TURN.of((WORDS, OVER)), BYTES), "core_over and core_bytes"),
        ((BYTES, WORDS), None),
        ((ROWS, OVER, OVER), None),
        ((WORDS, OVER), None),
        ((TURN.of((OVER, BYTES)),), None),
    ],
)
def test_a_kernel_gets_no_bytes_twice_as_two_modes(arguments: tuple, shared: str | None):
    told = [str(reason) for reason in check(design(*HELD, body=(Call("work", arguments), Advance(TURN))))]
    what = f"core (0, 2): work gets {shared}, which share bytes as two modes; give it buffers of one mode"
    assert [one for one in told if "share bytes" in one] == ([what] if shared else [])


def test_a_bd_in_bytes_takes_no_more_dimensions_than_the_tile_has():
    """Every second word of rows: words that are apart take a dimension of their own in bytes."""
    plain, words = Buffer("core_words", 64, "i32"), Buffer("core_words", 64, "i32", mode="one")
    pattern = Pattern((2, 3, 4), (32, 10, 2))
    once, alone = (Channel("MM2S", 0, (Bd(buffer, pattern),), back=None) for buffer in (words, plain))
    (reason,) = check(design(words, channels=(once,)))
    assert str(reason).startswith("core (0, 2), MM2S 0, BD 0: 4 dimensions exceed the 3 of a core BD;")
    assert check(design(plain, channels=(alone,))) == []
    beyond = Channel("MM2S", 0, (Bd(words, Pattern((4,), (1,), 61)),), back=None)
    assert "last index 259 is outside" in str(check(design(words, ROWS, channels=(beyond,)))[0])


def walked(bd: Bd, data: np.ndarray) -> np.ndarray:
    """What a BD sends of a buffer's elements, zeros around each dimension included."""
    found = data[bd.pattern.order()].reshape(bd.pattern.sizes)
    return np.pad(found, bd.padding or ((0, 0),) * bd.pattern.rank).ravel()


@pytest.mark.parametrize(("type_", "pattern", "padding"), [
    ("i32", Pattern((3, 2, 4), (8, 4, 1), 2), ((1, 0), (0, 2), (3, 1))), ("i16", Pattern((2, 6), (8, 1), 4), ()),
    ("i32", Pattern((4, 3), (1, 8)), ((0, 1), (2, 0))), ("i8", Pattern((2, 4), (4, 2)), ((1, 1), (0, 2))),
])  # fmt: skip
def test_a_bd_in_bytes_sends_what_it_sends_in_elements(type_: str, pattern: Pattern, padding: tuple):
    bd = Bd(Buffer("some", 32, type_, mode="one"), pattern, padding=padding)
    data = np.random.default_rng(5).integers(1, 100, 32).astype(f"int{type_[1:]}")
    same(walked(in_bytes(bd), data.view(np.int8)), walked(bd, data).view(np.int8))


def turns_and_pads() -> Design:
    """A memtile that turns a matrix, then puts zeros around rows in the same bytes; what it sends comes back to it."""
    rng = np.random.default_rng(3)
    numbers, more = (tuple(rng.integers(-9, 9, size).tolist()) for size in (24, 40))
    words, shorts = Buffer("words", 24, "i32", values=numbers), Buffer("shorts", 40, "i16", values=more)
    matrix, rows = Buffer("matrix", 24, "i32", mode="turn"), Buffer("rows", 40, "i16", mode="pad")
    turned, padded = Buffer("turned", 24, "i32"), Buffer("padded", 42, "i16")
    free, full, turn, pad, end = locks = tuple(Lock(f"lock_{n}", n, int(n == 0)) for n in range(5))
    filled = Bd(matrix, whole(matrix), Acquire(free), Release(full)), Bd(rows, whole(rows), Acquire(turn), Release(pad))
    sent = (
        Bd(matrix, Pattern((6, 4), (1, 6)), Acquire(full), Release(turn)),
        Bd(rows, Pattern((2, 8), (16, 1), 4), Acquire(pad), Release(end), ((1, 0), (2, 4))),
    )
    plain = [tuple(Bd(buffer, whole(buffer)) for buffer in pair) for pair in ((turned, padded), (words, shorts))]
    chains = {("S2MM", 1): filled, ("S2MM", 3): plain[0], ("MM2S", 1): plain[1], ("MM2S", 2): sent}
    channels = tuple(Channel(*port, bds, back=None) for port, bds in chains.items())
    held = (words, shorts, turned, padded, matrix, rows)
    mem = Tile("mem", 0, 1, TileKind.MEMTILE, held, locks, channels)
    flows = Flow(mem.dma(1), (mem.dma(1),)), Flow(mem.dma(2), (mem.dma(3),))
    return placed(Design("loop", "npu2_1col", (mem,), flows))


@pytest.mark.parametrize("seed", range(3))
def test_a_memtile_turns_and_pads_in_the_same_bytes(seed: int):
    made = turns_and_pads()
    words, shorts = (np.array(buffer.values) for buffer in made.tiles[0].buffers[:2])
    at = {buffer.name: buffer.address for buffer in made.tiles[0].buffers}
    assert at["matrix"] == at["rows"]
    found = bdforge.emulate(render(made), (), schedule="random", seed=seed, poison=True).buffers
    same(found["turned"], words.reshape(4, 6).T.ravel())
    kept = np.stack([shorts[4:12], shorts[20:28]])
    same(found["padded"], np.pad(kept, ((1, 0), (2, 4))).ravel())


def neighbours() -> Design:
    """A core writes words by its opcode in either of two modes; its neighbour reads those of the second."""
    done = Lock("done", 0)
    words, rows = replace(WORDS, name="core_words"), Buffer("core_rows", 12, "i32", mode="two", over="core_words")
    cases = ((1, (Store(7, words, 3),)), (2, (Store("opcode", words), Store(-5, rows, 3))))
    body = (Load("opcode", RTP), SwitchOn("opcode", cases, (Store(9, words),)), Release(done))
    seen = Buffer("north_seen", 2, "i32")
    read = (Acquire(done), Load("a", rows), Load("b", rows, 3), Store("a", seen), Store("b", seen, 1))
    north = Tile("north", 0, 3, TileKind.CORE, (seen,), core=Core(read))
    core = Tile("core", 0, 2, TileKind.CORE, (RTP, words, rows), (done,), core=Core(body))
    return placed(Design("beside", "npu2_1col", (core, north)))


@pytest.mark.parametrize("machine_code", [False, True])
def test_cores_see_modes_of_their_own_and_of_neighbours(machine_code: bool, tmp_path):
    text = render(neighbours())
    elfs = {}
    for core in (op for op in parse(text).walk() if isinstance(op, CoreOp)) if machine_code else ():
        elfs[core.tile.place] = tmp_path / f"{core.tile.row}.elf"
        elfs[core.tile.place].write_bytes(core_program(core, {}).elf)
    found = bdforge.emulate(text, (), elfs=elfs, poison=not machine_code).buffers
    assert found["north_seen"].tolist() == [2, -5]
    assert found["core_modes"].dtype == np.int8
    assert found["core_modes"].view(np.int32)[[0, 3]].tolist() == [2, -5]


def test_modes_are_said_in_documents():
    text = """kind = "design"
name = "said"
device = "npu2_1col"
tile = [{ name = "core", at = [0, 2], core = "p", holds = [
  { ring = "a", elements = 8, type = "i32", mode = "one" },
  { ring = "b", elements = 16, type = "bf16", mode = "two", over = "a" },
  { buffer = "s", elements = 4, type = "i8", mode = "two" },
  { buffer = "t", elements = 4, type = "i8", mode = "one", over = "s" },
  { lock = "go" },
], channels = [{ dma = "S2MM 0", bds = [{ fill = "a" }] }] }]
[program.p]
body = [
  { acquire = "a_full" }, { call = "work", with = ["b[turn]", "s"] }, { release = "a_free" }, { advance = "turn" },
]
"""
    made = design_of(text, "said.toml")
    ping, _, other, *_ = made.tiles[0].buffers
    assert (other.name, other.over, other.address) == ("core_b_ping", ping.name, ping.address)
    assert [lock.name for lock in made.tiles[0].locks] == ["core_a_free", "core_a_full", "core_go"]
    again = document(made)
    assert 'over = "a"' in again
    assert (document(design_of(again, "again")), render(design_of(again, "again"))) == (again, render(made))
    for wrong, reason in (('over = "c"', "core has no ring c"), ('over = "a", slots = 3', "3 slots over a ring of 2")):
        with pytest.raises(DocumentError, match=reason):
            design_of(text.replace('over = "a"', wrong), "said.toml")


WRITES = """kind = "design"
name = "written"
device = "npu2_1col"
tile = [{ name = "core", at = [0, 2], core = "p", holds = [
  { buffer = "more", elements = 7, type = "i16", mode = "one" },
  { buffer = "words", elements = 4, type = "i32", words = ["a", "b"], mode = "two" },
  { buffer = "seen", elements = 2, type = "i32" }, { lock = "go" },
] }]
program.p.body = [
  { acquire = "go" }, { load = "b", from = "words.b" }, { load = "c", from = "words", index = 2 },
  { store = "%b", to = "seen" }, { store = "%c", to = "seen", index = 1 },
]
"""
ONCE = """[[runtime_sequence]]
name = "once"
arguments = []
events = [{ writes = [
  { rtp = "core_words.b", value = 70000 }, { rtp = "core_words", slot = 2, value = 9 }, { lock = "core_go", value = 1 },
] }]
"""
ANY = """[sequence]
sizes = ["n"]
arguments = []
body = [
  { rtp = "core_words.b", value = "n" }, { rtp = "core_words", slot = 2, value = 9 }, { lock = "core_go", value = 1 },
]
"""


def test_sequences_write_words_of_a_mode_by_their_addresses():
    text = render(design_of(WRITES + ONCE, "written.toml"))
    assert "rtp_write" not in text
    assert bdforge.emulate(text, ()).buffers["core_seen"].tolist() == [70000, 9]
    again = design_of(document(design_of(WRITES + ONCE, "written.toml")), "again.toml")
    assert render(again) == text
    program = design_of(WRITES + ANY, "written.toml").program
    assert program is not None
    limits = DEVICES["strix_halo"].generation.limits(TileKind.SHIM)
    events = [event for event in interpret(program, {"n": 70000}, limits) if isinstance(event, Start)]
    stored = [item for event in events for item in event.items if isinstance(item, Stored)]
    assert len(stored) == 3
    assert all(f"address = {one.address} : ui32, value = {one.values[0]} " in text for one in stored[:2])


def test_a_moved_design_keeps_what_lies_over_what():
    further = placed(moved(design(*HELD), 0, 2))
    names = [(buffer.name, buffer.over) for buffer in further.tiles[0].buffers]
    assert names[4] == ("core_0_4_over", "core_0_4_bytes")
    assert check(further) == []
