"""FIFOs against streams of bytes, and gathers against tables of elements."""

import random

import numpy as np
import pytest

from bdforge.core import isa
from bdforge.core.exact.core_memory import WINDOW_BYTES, DataMemory
from bdforge.core.isa.errors import AccessError, OpenError
from support.machine_code import EXECUTORS, bits, code_of, drive, memories

EACH = pytest.mark.parametrize("executor", EXECUTORS)
NOPS = "\nnop" * 9
BASE, FIRST = 0x71000, 0x1000
UNITS = {"a": ("vlda", "p0", "r24", "lf0"), "b": ("vldb", "p1", "r25", "lf1")}


def run(executor, text: str, given: dict[str, int], memory: DataMemory | None = None, generation: str = "aie2p"):
    """A core behind a text."""
    core = executor(isa.load(generation), code_of(text + NOPS, generation), memory or memories())
    for name, value in given.items():
        core.write(name, value)
    drive(core)
    return core


def streamed(seed: int) -> tuple[DataMemory, bytes]:
    """Memory with random bytes from BASE on, and they."""
    memory, data = memories(), random.Random(seed).randbytes(2048)
    memory.fill(BASE, data)
    return memory, data


def in_memory(register: int, size: int) -> bytes:
    """A register's bytes as memory has them: of blocks the exponent first."""
    data = register.to_bytes(72, "little")
    if size == 64:
        return data[:64]
    count = {68: 4, 72: 8}[size]
    each = 64 // count
    return b"".join(data[64 + i : 65 + i] + data[each * i : each * (i + 1)] for i in range(count))


def taken(executor, unit: str, start: int, fills: int, sizes: list[int]) -> tuple[list[bytes], int, int]:
    """(what pops take, pointer, position), each pop run in a core of its own behind those before it."""
    load, pointer, position, fifo = UNITS[unit]
    found, core = [], None
    for count in range(1, len(sizes) + 1):
        place = f"[{pointer}, {fifo}, {position}]\n"
        pops = "".join(f"{load}.pop.{8 * n} {'x0' if n == 64 else 'ex0'}, {place}" for n in sizes[:count])
        fill = f"{load}.fill.512 {place}" * fills
        core = run(executor, fill + pops, {pointer: BASE + start, position: 0}, streamed(5)[0])
        found.append(in_memory(core.read("ex0"), sizes[count - 1]))
    assert core is not None
    return found, core.read(pointer), core.read(position)


@EACH
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("start", "fills", "sizes"), [
    (0, 1, [72] * 8), (0, 2, [72, 64, 68, 72]), (8, 1, [64] * 4), (72, 1, [64, 64]), (24, 2, [72, 72, 64]),
    (63, 2, [64, 64]), (64, 1, [64]), (40, 1, []), (0, 1, [64, 72]), (0, 1, [68, 68, 68]),
])  # fmt: skip
def test_pops_take_the_next_bytes_of_the_stream(executor, unit, start, fills, sizes):
    if not sizes:
        core = run(executor, "vlda.fill.512 [p0, lf0, r24]", {"p0": BASE + start, "r24": 0}, streamed(5)[0])
        assert (core.read("p0"), core.read("r24")) == (BASE + start, 64 - start)
        return
    data, at = streamed(5)[1], start
    found, pointer, position = taken(executor, unit, start, fills, sizes)
    for size, have in zip(sizes, found, strict=True):
        assert have == data[at : at + size]
        at += size
    assert pointer == BASE + at
    assert position == (start // 64 + fills + len(sizes)) * 64 - at


WALKS = {  # how the pointer goes on from the next byte
    "vlda.pop.576 ex1, [p0, lf0, r24], m3": ({"m3": 24}, 72 + 24, {}),
    "vlda.pop.576.2d ex1, [p0, lf0, r24], d1": ({"dj1": 100, "dn1": 2, "dc1": 1, "m1": 5}, 72 + 100, {"dc1": 2}),
    "vlda.pop.576.3d ex1, [p0, lf0, r24], d1_3d":
        ({"m1": -72 & 0xFFFFF, "dn1": 1, "dc1": 1, "dn5": 3, "dc5": 3, "dj1": 9, "dj5": 11}, 0, {"dc1": 0, "dc5": 0}),
}  # fmt: skip


@EACH
@pytest.mark.parametrize("text", WALKS)
def test_a_pop_with_a_step_goes_on_behind_its_bytes_with_an_empty_fifo(executor, text):
    given, moved, counters = WALKS[text]
    memory, data = streamed(6)
    core = run(executor, f"vlda.fill.512 [p0, lf0, r24]\n{text}", {"p0": BASE, "r24": 0} | given, memory)
    assert in_memory(core.read("ex1"), 72) == data[:72]
    assert (core.read("p0"), core.read("r24")) == (BASE + moved, 0)
    assert {name: core.read(name) for name in counters} == counters


@EACH
def test_a_pop_of_four_exponents_has_none_behind_them(executor):
    """Behind sums that have used all of what a core keeps results in."""
    sums = "vadd.32 x4, x2, x3 ; vmac dm0, dm0, x2, x3, r2\n" * 40
    text = sums + "vlda.fill.512 [p0, lf0, r24]\nvlda.pop.544 ex0, [p0, lf0, r24]\n"
    core = run(executor, text, {"p0": BASE, "x2": (1 << 512) - 1, "x3": (1 << 512) - 1, "r2": 0x308}, streamed(5)[0])
    assert core.read("ex0") >> 8 * 68 == 0


@EACH
@pytest.mark.parametrize(("given", "error", "reason"), [
    ({"r24": 0}, AccessError, "takes 72 bytes of a FIFO at position 0"), ({"r24": 7}, AccessError, "at position 7"),
    ({"r24": 129}, AccessError, "at position 129: it has two lines"),
    ({"r24": 9}, OpenError, "a FIFO whose lines end at 0x71009"),
])  # fmt: skip
def test_a_fifo_that_does_not_have_what_is_taken_is_a_fault(executor, given, error, reason):
    with pytest.raises(error, match=reason):
        run(executor, "vlda.pop.576 ex1, [p0, lf0, r24]", {"p0": BASE} | given)


def pushed(executor, start: int, sizes: list[int], flushes: list[int]) -> tuple[bytes, bytes, int, int]:
    """(what memory has from the start on, what was pushed, pointer, count) with flushes behind some of the pushes."""
    rng, given, text, data = random.Random(7), {"p2": BASE + start, "r26": 0}, "", b""
    for i, size in enumerate(sizes):
        given[f"ex{i}"] = value = rng.getrandbits(8 * 72)
        data += in_memory(value, size)
        text += f"vst.push.{8 * size} {'x' if size == 64 else 'ex'}{i}, [p2, sf, r26]\n"
        text += "vst.flush.512 [p2, sf, r26]\n" * flushes[i]
    memory = memories()
    core = run(executor, text, given, memory)
    own = memory.windows[3]
    assert own is not None
    return own[FIRST + start :][: len(data)].tobytes(), data, core.read("p2") - BASE - start, core.read("r26")


@EACH
@pytest.mark.parametrize(("start", "sizes", "flushes", "waits"), [
    (0, [72] * 8, [1] * 8, 0), (0, [72] * 7, [0] * 6 + [1], 0), (0, [64, 68, 72, 64], [1] * 4, 0),
    (24, [72, 72], [1, 1], 0), (0, [72, 72], [0, 0], 16), (0, [64], [0], 0), (63, [72], [0], 71), (63, [72], [1], 7),
    (63, [72], [2], 0), (60, [64], [0], 60),
])  # fmt: skip
def test_pushes_and_flushes_put_bytes_one_behind_the_other(executor, start, sizes, flushes, waits):
    found, data, moved, count = pushed(executor, start, sizes, flushes)
    stored = len(data) - waits
    assert (moved, count) == (stored, waits)
    assert found == data[:stored] + bytes(waits)


@EACH
def test_a_flush_with_a_step_goes_on_behind_what_it_stores(executor):
    text = "vst.push.576 ex1, [p2, sf, r26]\nvst.flush.512 [p2, sf, r26], m1"
    core = run(executor, text, {"p2": BASE, "m1": 56, "r26": 0})
    assert (core.read("p2"), core.read("r26")) == (BASE + 128, 0)
    with pytest.raises(OpenError, match="a flush that leaves 7 bytes and steps the pointer is open"):
        run(executor, text, {"p2": BASE + 63, "m1": 56, "r26": 0})
    for waiting, form in (("puts 72 bytes behind 129", "vst.push.576 ex1"), ("flushes 129 bytes", "vst.flush.512")):
        with pytest.raises(AccessError, match=waiting):
            run(executor, f"{form}{',' * (form[4] == 'p')} [p2, sf, r26]", {"p2": BASE, "r26": 129})


@EACH
@pytest.mark.parametrize("rounding", [0, 12])
def test_a_push_that_converts_is_a_conversion_and_a_push(executor, rounding):
    rng = np.random.default_rng(3)
    values = (rng.standard_normal(64) * 2.0 ** rng.integers(-9, 9, 64)).astype(np.float32)
    values[8:16] = 0
    given = {"dm1": bits(values), "crRnd": rounding, "p2": BASE, "r26": 0}
    converted, memory = run(executor, "vconv.bfp16ebs8.fp32 ex3, dm1", given), memories()
    text = "vst.push.576.conv.bfp16ebs8.fp32 dm1, [p2, sf, r26]\nvst.flush.512.conv [p2, sf, r26]"
    core = run(executor, text, given, memory)
    assert memory.load(BASE, 64).to_bytes(64, "little") + memory.load(BASE + 64, 8).to_bytes(8, "little") == in_memory(
        converted.read("ex3"), 72
    )
    assert (core.read("p2"), core.read("r26")) == (BASE + 72, 0)


@EACH
def test_bytes_that_nobody_wrote_stop_a_pop_but_not_a_line_that_is_read_ahead(executor):
    written = np.zeros(WINDOW_BYTES, bool).view(np.uint8)
    for end, stops in ((144, False), (143, True)):
        written[:] = 0
        written[FIRST : FIRST + end] = 1
        memory = DataMemory(memories().windows, (None, None, None, written))
        text = "vlda.fill.512 [p0, lf0, r24]\n" + "vlda.pop.576 ex1, [p0, lf0, r24]\n" * 2
        if not stops:
            run(executor, text, {"p0": BASE, "r24": 0}, memory)
            continue
        with pytest.raises(AccessError, match="loads 72 bytes at 0x71048, which nobody has written"):
            run(executor, text, {"p0": BASE, "r24": 0}, memory)


@EACH
@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("half", ["lo", "hi"])
def test_gathers_take_elements_of_tables_that_hold_each_half_line_twice(executor, generation, bits, half):
    rng, size, bank = np.random.default_rng(bits), bits // 8, 32 if generation == "aie2p" else 16
    table = rng.integers(0, 256, (16, bank), np.uint8)
    memory = memories()
    memory.fill(BASE, np.repeat(table, 2, axis=0).tobytes())
    elements = table.reshape(-1, size)
    for _ in range(6):
        chosen = rng.integers(0, len(elements), 8)
        words = (BASE + 2 * size * chosen + rng.integers(0, bits // 4, 8)).astype(np.uint32)  # low bits are dropped
        words |= rng.integers(0, 1 << 12, 8).astype(np.uint32) << 20  # as are those above an address
        core = run(
            executor,
            f"vldb.4x{bits}.{half} wl4, wl1",
            {"wl1": int.from_bytes(words.tobytes(), "little")},
            memory,
            generation,
        )
        found = np.frombuffer(core.read("wl4").to_bytes(32, "little"), np.uint8).reshape(4, 8)[:, :size]
        assert (found == elements[chosen[4 * (half == "hi") :][:4]]).all()


@EACH
def test_a_gather_uses_a_bank_for_each_pair_of_its_elements(executor):
    for places, uses in (((0x71000,) * 4, 1), ((0x71000, 0x71000, 0x75000, 0x75000), 0)):
        words = sum(at << 32 * i for i, at in enumerate(places))
        core = run(executor, "vldb.4x16.lo wl4, wl1", {"wl1": words})
        assert (core.conflicts, sum(core.uses)) == (uses, 2)
    for address in (0x30000, 0):
        with pytest.raises(AccessError, match=f"loads 32 bytes at {address:#x}; data memory is from"):
            run(executor, "vldb.4x16.lo wl4, wl1", {"wl1": address})


GEMM = """
vlda bmll1, [p3], #64
vlda bmlh1, [p3], #64
vlda bmhl1, [p3], #64
vlda bmhh1, [p3], #64
nop
nop
nop
nop
nop
nop
vst.push.576.conv.bfp16ebs8.fp32 dm1, [p2, sf, r26]
nop
nop
vst.flush.512.conv [p2, sf, r26]
"""
TAKEN = """
vlda.pop.576 ex0, [p0, lf0, r24] ; vldb.pop.576 ex2, [p1, lf1, r25]
nop
nop
nop
nop
nop
nop
nop
vmac.f dm0, dm0, ex0, ex2, r1
nop
nop
"""
RESULT = "nop\n" * 8 + "".join(f"vst {part}0, [p4], #64\n" for part in ("bmll", "bmlh", "bmhl", "bmhh"))


@EACH
@pytest.mark.parametrize("depth", [1, 3])
def test_a_product_of_block_floats_goes_through_fifos(executor, depth):
    """Floats are pushed as blocks, popped beside others, multiplied and summed: 8 x 8 by 8 x 8, so many times."""
    rng = np.random.default_rng(depth)
    a = (rng.integers(-63, 64, (depth, 8, 8)) * 2.0 ** rng.integers(-3, 3, (depth, 8, 1))).astype(np.float32)
    b, exponents = rng.integers(-127, 128, (depth, 8, 8)).astype(np.int8), rng.integers(120, 130, (depth, 8))
    blocks = b"".join(
        bytes([int(exponents[k, j])]) + b[k, j].tobytes() for k in range(depth) for j in range(8)
    )  # fmt: skip
    memory = memories()
    memory.fill(0x71000, a.tobytes())
    memory.fill(0x74000, blocks + bytes(64))
    memory.fill(0x72000, bytes(72 * depth + 64))
    text = GEMM * depth + "nop\n" * 9 + "vlda.fill.512 [p0, lf0, r24] ; vldb.fill.512 [p1, lf1, r25]\n" + TAKEN * depth
    given = {"p0": 0x72000, "p1": 0x74000, "p2": 0x72000, "p3": 0x71000, "p4": 0x76000, "r1": 0x30C, "crRnd": 12}
    run(executor, text + RESULT, given, memory)
    right = b * 2.0 ** (exponents[:, :, None] - 127.0 - 6)
    exact = np.sum([a[k].astype(np.float64) @ right[k].T for k in range(depth)], axis=0)
    found = b"".join(memory.load(0x76000 + 64 * i, 64).to_bytes(64, "little") for i in range(4))
    assert (np.frombuffer(found, np.float32).reshape(8, 8) == exact.astype(np.float32)).all()
