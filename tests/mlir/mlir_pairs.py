"""Texts with a number in them: some that the verifier reads, the last one among them, and the first it refuses.

Limits that bdforge names have theirs in tests/devices/test_limits.py.
"""

from collections.abc import Callable
from typing import NamedTuple

from mlir_texts import bd, device, sequence


class Pair(NamedTuple):
    """A text with a value in it; values that are read, and such that are refused with these words."""

    text: Callable[[int], str]
    good: tuple[int, ...]
    bad: tuple[int, ...]
    words: str


def memcpy(sizes: str, strides: str, element: str = "i32", rest: str = "") -> Callable[[int], str]:
    """A transfer whose `N` is the value."""

    def text(value: int) -> str:
        entries = f"[0,0,0,0][{sizes}][{strides}]".replace("N", str(value))
        options = f"{{id = 0, metadata = @a{rest.replace('N', str(value))}}}"
        line = f"aiex.npu.dma_memcpy_nd(%x{entries}) {options} : memref<65536x{element}>"
        return sequence(line, f"%x: memref<65536x{element}>")

    return text


def dims(parameters: str, tile: str = "m", elements: int = 64, element: str = "i32") -> Callable[[int], str]:
    """A BD whose `N` is the value."""
    return lambda value: bd(parameters.replace("N", str(value)), tile, f"memref<{elements}x{element}>")


def lines(text: str) -> Callable[[int], str]:
    return lambda value: device(text.replace("N", str(value)))


def steps(text: str) -> Callable[[int], str]:
    return lambda value: sequence(text.replace("N", str(value)))


def clauses(parameters: str, tile: str = "m", elements: int = 64, element: str = "i32") -> Callable[[int], str]:
    """A BD in the form of 1.4 whose `N` is the value."""
    return dims(f" {parameters})", tile, elements, element)


def switch(line: str) -> Callable[[int], str]:
    """A setting in the switch of a core."""
    amsel = "%a = aie.amsel<1> (1)\naie.masterset(South : 0, %a)\n"
    return lambda n: device(f"aie.switchbox(%c) {{\n{amsel}{line.replace('N', str(n))}\n}}")


def flow(number: int) -> str:
    return device(f"aie.packet_flow({number}) {{ aie.packet_source<%m, DMA : 0> aie.packet_dest<%c, DMA : 0> }}")


def padded(element: str, before: str, after: str, length: str = "32") -> Callable[[int], str]:
    pad = f"[<const_pad_before = {before}, const_pad_after = {after}>]"
    return dims(f", 0, {length}, [<size = 8, stride = 1>], {pad})", element=element)


def starts(direction: str, tile: str, kind: str) -> Callable[[int], str]:
    """A program with so many channels."""

    def text(count: int) -> str:
        first = [f"aie.dma_start({direction}, {i}, ^bd, ^s{i})\n^s{i}:" for i in range(count)]
        body = "\n".join([*first, "aie.end", "^bd:", "aie.dma_bd(%b : memref<64xi32>)", "aie.end"])
        return device(f"%b = aie.buffer(%{tile}) : memref<64xi32>\naie.{kind}(%{tile}) {{\n{body}\n}}")

    return text


def locked(column: int, row: int) -> Callable[[int], str]:
    """A core that uses a lock by its number."""
    return lambda number: (
        f"aie.device(npu2) {{\n%c = aie.tile({column}, {row})\naie.core(%c) {{\n%n = arith.constant {number} : index\n"
        "aie.use_lock(%n, Release, 1)\naie.end\n}\n}"
    )


BYTES = "memref<64xi8>"


def regions(count: int, transfer: str, more: str = "", amount: str = "1") -> str:
    """The DMA of a core in its region form."""
    block = f"{{ aie.use_lock(%l, Acquire, {amount})\n{transfer}\naie.use_lock(%l, Release, {amount}) }}"
    starts = "\n".join(f"aie.dma(S2MM, {number}){more} [{block}]" for number in range(count))
    parts = f"%b = aie.buffer(%c) : {BYTES}\n%l = aie.lock(%c)\n%n = arith.constant 1 : i32\n"
    return device(f"{parts}aie.mem(%c) {{\n{starts}\naie.end\n}}")


HEADER = "<pkt_type = 1, pkt_id = N>", "<pkt_type = N, pkt_id = 1>"
IDS = ((0, 31), (-1, 32), "is outside 0 to 31, what the header's field holds")
TYPES = ((0, 7), (-1, 8), "is outside 0 to 7, what the header's field holds")
TASK = "%t = aiex.dma_configure_task(%s, MM2S, 0, {}) {{ aie.dma_bd(%x : memref<8192xi32>) aie.end }}"
PAIRS = {
    "static size 0": Pair(dims(", 0, 64, [<size = N, stride = 1>])"), (1,), (0, -1), "a size must be positive"),
    "stride 0": Pair(
        dims(", 0, 8, [<size = 1, stride = N>, <size = 8, stride = 1>])"), (1,), (0, -1), "a stride must be positive"),
    "stride": Pair(dims(", 0, 64, [<size = 1, stride = N>])"), (1, 64), (65,), "exceeds the 64 elements of the buffer"),
    "last element": Pair(
        dims(", 0, 8, [<size = 2, stride = N>, <size = 4, stride = 1>])"), (4, 60), (61,), "reach element 64, but"),
    "inner stride of i8": Pair(
        dims(", 0, 8, [<size = 8, stride = N>])", element="i8"), (1,), (2, 4), "for elements of 8 bits it must be 1"),
    "inner stride of i32": Pair(dims(", 0, 8, [<size = 8, stride = N>])"), (1, 2, 9), (10,), "reach element 70"),
    "next BD of a core": Pair(
        dims(", 0, 64) {next_bd_id = N : i32}", "c"), (0, 15), (-1, 16), "is outside 0 to 15, the BDs of a core"),
    "length of i8": Pair(dims(", 0, N)", element="i8"), (4, 64), (1, 2, 3, 62),
        "a transfer must be a multiple of 4 by"),
    "length of i16": Pair(dims(", 0, N)", element="i16"), (2, 64), (1, 63), "a transfer must be a multiple of 4 bytes"),
    "burst on npu2": Pair(
        dims(", 0, 64) {burst_length = N : i32}", "s"), (0, 64, 128, 256, 512), (32, 1024),
        "has 64, 128, 256, 512 bytes"),
    "burst on npu1": Pair(
        lambda n: bd(f", 0, 64) {{burst_length = {n} : i32}}", "s").replace("npu2", "npu1"), (0, 64, 128, 256), (512,),
        "the device has 64, 128, 256 bytes"),
    "burst of a core": Pair(
        dims(", 0, 64) {burst_length = N : i32}", "c"), (0,), (64,), "is for shims; a core's DMA has no bursts"),
    "padding": Pair(padded("i32", "N", "12"), (0, 12), (13,), "hold at least 33 elements, more than its length 32"),
    "padding after": Pair(padded("i32", "12", "N"), (0, 12), (13,), "hold at least 33 elements, more than its length"),
    "negative padding": Pair(padded("i32", "N", "0"), (0,), (-1,), "padding cannot be negative"),
    "negative padding after": Pair(padded("i32", "0", "N"), (0,), (-1,), "padding cannot be negative"),
    "padding of i16 before": Pair(padded("i16", "N", "0"), (0, 2, 4), (1, 3), "before a row, which is no whole number"),
    "padding of i16 after": Pair(padded("i16", "0", "N"), (0, 2, 4), (1, 3), "after a row, which is no whole number"),
    "address": Pair(
        lambda n: bd(f", {n}, 4)", buffer="memref<64xi8>").replace("(%m) :", "(%m) {address = 2 : i32} :"), (2, 6),
        (0, 1, 4), "which is no multiple of 4"),
    "channels out": Pair(starts("MM2S", "m", "memtile_dma"), (6,), (7,),
        "uses 7 MM2S channels, but memtile (0, 1) has 6"),
    "negative channel": Pair(
        lambda n: bd(", 0, 64)", channel=n), (0, 5), (-1,), "channel -1 is negative"),
    "packet id of a shim": Pair(lines(f"aie.shim_dma_allocation @x(%s, MM2S, 0, {HEADER[0]})"), *IDS),
    "packet type of a shim": Pair(lines(f"aie.shim_dma_allocation @x(%s, MM2S, 0, {HEADER[1]})"), *TYPES),
    "packet id of a task": Pair(steps(TASK.format(HEADER[0])), *IDS),
    "packet type of a task": Pair(steps(TASK.format(HEADER[1])), *TYPES),
    "packet id of a transfer": Pair(memcpy("1,1,1,4", "0,0,0,1", rest=f", packet = #aie.packet_info{HEADER[0]}"), *IDS),
    "packet id beside a BD": Pair(
        lambda n: bd(", 0, 4)").replace("aie.dma_bd(", f"aie.dma_bd_packet(1, {n})\naie.dma_bd("), *IDS),
    "packet flow": Pair(flow, (0, 31, -128, 255), (-129, 256), "does not fit 8 bits"),
    "lock by number": Pair(locked(3, 4), (0, 16, 32, 63), (-1, 64), "outside 0 to 63, a core's numbers"),
    "lock by number in the west": Pair(locked(0, 4), (15, 32, 48), (16, 31), "column -1 is outside npu2"),
    "lock by number in the south": Pair(locked(3, 2), (16, 32, 63), (0, 15), "does not reach"),
    "lock by number in the north": Pair(locked(3, 5), (0, 31, 48), (32, 47), "row 6 is outside npu2"),
    "repeats of a task": Pair(
        steps(TASK.format("<pkt_type = 0, pkt_id = 0>") + " {repeat_count = N : i32}"), (0, 300), (-1,), "is negative"),
    "inner size of i8": Pair(memcpy("1,1,2,N", "0,0,4,1", "i8"), (4, 4092), (4096,), "dimension 0 is 1024 words"),
    "third size": Pair(memcpy("1,N,2,4", "0,4,4,1"), (1, 1024, 9999), (0, -1), "size of dimension 2 is"),
    "outer stride below 0": Pair(
        memcpy("2,1,2,4", "N,0,4,1"), (0,), (-1,), "stride of dimension 3 is -1; it must be 0 or more"),
    "third stride below 1": Pair(
        memcpy("1,2,2,4", "0,N,4,1"), (1,), (0, -1), "it must be positive"),
    "stride of i16": Pair(
        memcpy("1,1,2,4", "0,0,N,1", "i16"), (2, 4), (1, 3), "elements of 16 bits, "),
    "burst of a transfer": Pair(
        memcpy("1,1,1,4", "0,0,0,1", rest=", burst_length = N : i64"), (0, 64, 512), (32, 1024),
        "64, 128, 256, 512 bytes"),
    "burst of a transfer on npu1": Pair(
        lambda n: memcpy("1,1,1,4", "0,0,0,1", rest=", burst_length = N : i64")(n).replace("npu2", "npu1"),
        (0, 64, 256), (512,), "the device has 64, 128, 256 bytes (0: longest)"),
    "column of npu1": Pair(
        lambda n: f"aie.device(npu1) {{ aie.tile({n}, 0) }}", (0, 3), (-1, 4), "which has columns 0 to 3"),
    "modern inner size of i8": Pair(
        clauses("offset = 0 len = 4 sizes = [N] strides = [1]", elements=9999, element="i8"), (4, 4092, 4095), (4096,),
        "a memtile's BD holds sizes up to 1023 words"),
    "modern middle size of i8": Pair(
        clauses("offset = 0 len = 4 sizes = [1, N, 4] strides = [4, 4, 1]", "c", 9999, "i8"), (1, 255), (256,),
        "a core's BD holds sizes up to 255 words"),
    "modern outer size of a core": Pair(
        clauses("offset = 0 len = 4 sizes = [N, 1, 1] strides = [1, 1, 1]", "c", 999), (1, 255), (256,),
        "a core's BD holds sizes up to 255 words"),
    "modern outer size of a memtile": Pair(
        clauses("offset = 0 len = 4 sizes = [N, 1, 1, 1] strides = [1, 1, 1, 1]", elements=9999), (1, 1023), (1024,),
        "a memtile's BD holds sizes up to 1023 words"),
    "modern stride of i8": Pair(
        clauses("offset = 0 len = 4 sizes = [2, 4] strides = [N, 1]", "c", 65536, "i8"), (4, 32768), (32772,),
        "a core's BD holds strides up to 8192 words"),
    "modern stride of i16": Pair(
        clauses("offset = 0 len = 4 sizes = [2, 4] strides = [N, 1]", "c", 65536, "i16"), (2, 6), (1, 3),
        "are no whole number of words"),
    "modern offset": Pair(clauses("offset = N len = 4"), (0, 60), (61,), "reaches element 64, but the buffer has 64"),
    "offset of i16": Pair(
        lambda n: bd(f", {n}, 4)", buffer="memref<64xi16>").replace("(%m) :", "(%m) {address = 2 : i32} :"), (1, 3),
        (0, 2), "which is no multiple of 4"),
    "paddings of a BD": Pair(
        lambda n: bd(f", 0, 64, [<size = 2, stride = 8>, <size = 8, stride = 1>], "
                     f"[{', '.join(['<const_pad_before = 0, const_pad_after = 0>'] * n)}])"), (0, 1, 2), (3, 4),
        "dimensions but walks 2; give at most one padding per dimension"),
    "outer padding of i16": Pair(
        lambda n: bd(f", 0, 64, [<size = 2, stride = 8>, <size = 8, stride = 1>], [<const_pad_before = {n}, "
                     "const_pad_after = 0>, <const_pad_before = 0, const_pad_after = 2>])", buffer="memref<64xi16>"),
        (0, 1, 3), (5,), "hold at least 70 elements, more than its length 64"),
    "pad value of a core": Pair(
        lambda n: bd(" offset = 0 len = 4)", "c").replace("^end)\n", f"^end) {{pad_value = {n} : i32}}\n"), (0,),
        (1, -1), "only a memtile's MM2S channels pad"),
    "length in a region": Pair(
        lambda n: regions(1, f"aie.dma_bd(%b : memref<64xi8>, 0, {n})"), (4, 64), (3, 5), "must be a multiple of 4"),
    "BDs in a region": Pair(
        lambda n: regions(1, "\n".join([f"aie.dma_bd(%b : {BYTES})"] * n)), (1,), (0, 2), "exactly one aie.dma_b"),
    "channels of regions": Pair(
        lambda n: regions(n, f"aie.dma_bd(%b : {BYTES})"), (1, 2), (3,), "uses 3 S2MM channels, but core (0, 2) has 2"),
    "region's pad value": Pair(
        lambda n: regions(1, f"aie.dma_bd(%b : {BYTES})", f" {{pad_value = {n} : i32}}", "%n"), (0,), (3,),
        "only a memtile's MM2S channels pad"),
    "arbiter": Pair(switch("%d = aie.amsel<N> (3)"), (0, 5), (-1, 6), "a switch has arbiters 0 to 5 with msels 0 to 3"),
    "msel": Pair(switch("%d = aie.amsel<5> (N)"), (0, 3), (-1, 4), "a switch has arbiters 0 to 5 with msels 0 to 3"),
    "slave": Pair(switch("aie.connect<DMA : N, South : 1>"), (0, 1), (-1, 2), "has slave ports DMA : 0 to 1, not"),
    "master": Pair(switch("aie.connect<DMA : 0, East : N>"), (0, 3), (-1, 4), "has master ports East : 0 to 3, not"),
    "linear transfer": Pair(memcpy("N,1,1,2048", "2048,0,0,1"), (1, 64), (65,), "size of dimension 3 is 65"),
    "stride of a long row": Pair(memcpy("1,1,1,2048", "0,0,0,N"), (1,), (2,), "dimension 0 is 2048 words"),
    "third stride of a long row": Pair(memcpy("1,1,1,2048", "0,N,0,1"), (0,), (1,), "dimension 0 is 2048 words"),
}  # fmt: skip
