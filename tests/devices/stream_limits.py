"""Limits of queues, packets, switches, streams and instruction words, with the places that enforce them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from limit_table import Case, Limit, Place, dma_program, read, reads, refuses

from bd_patterns import Pattern, problems
from bdforge.array.emulator import DmaError, emulate
from bdforge.array.emulator.errors import EmulationError
from bdforge.devices.limits import SHIM
from support.register_designs import column, patch, push, writebd


def stream_limits() -> Iterator[Limit]:
    """Limits of whole devices and of the packages that use them."""
    for name, number, *places in TABLE:
        yield from (Limit(name, number, place) for place in places)


def emulated(text: str, arguments: int = 2, **options: Any) -> None:
    """Run a design on arrays of 64 words; a caution ends the run too."""
    result = emulate(text, [np.zeros(64, np.int32) for _ in range(arguments)], **options)
    for warning in result.warnings:
        if warning.endswith(("[unread-tokens]", "[blocked-cores]")):
            raise EmulationError(warning)


def _pushes(n: int) -> None:
    emulated(column(writebd((0, 2), 0, 4, 2048), *[push((0, 2), "S2MM : 0", 0)] * n))


def _argument(n: int) -> None:
    """Argument `n`, counted from 1, of as many as there are."""
    more = ", ".join(f"%x{i}: memref<64xi32>" for i in range(2, n))
    text = column(writebd((0, 0), 4, 64), patch(0x1D000 + 4 * 0x20 + 4, n - 1))
    emulated(text.replace("%b: memref<64xi32>", "%b: memref<64xi32>" + (f", {more}" if more else "")), n)


def _tokens(n: int) -> None:
    """As many tokens that nobody reads, one push after the other has ended."""
    lines = [writebd((0, 1), 0, 4, 0x20400), writebd((0, 0), 4, 4 * n), patch(0x1D000 + 4 * 0x20 + 4, 0)]
    pushes = [push((0, 1), "S2MM : 0", 0, token=True)] * n
    emulated(column(*lines, push((0, 0), "MM2S : 0", 4), *pushes), permissive=["queue-overflow"])


def _cascade(n: int) -> None:
    """One value more than `n`: the other core takes one."""
    put = "aie.put_cascade(%v : vector<16xi32>)\n" * (n + 1)
    source = f"aie.core(%a) {{\n%v = arith.constant dense<7> : vector<16xi32>\n{put}aie.end\n}}"
    target = "aie.core(%b) {\n%g = aie.get_cascade() : vector<16xi32>\naie.end\n}"
    tiles = "%a = aie.tile(0, 3)\n%b = aie.tile(0, 2)\naie.cascade_flow(%a, %b)"
    emulated(f"aie.device(npu2) {{\n{tiles}\n{source}\n{target}\n}}", 0)


def _static_repeat(n: int) -> None:
    tiles = "%s = aie.tile(0, 0)\n%m = aie.tile(0, 1)\n"
    program = dma_program("%m", 1, ["^b0:", "aie.dma_bd(%b : memref<64xi32>)", "aie.next_bd ^s0"])
    emulate(f"aie.device(npu2) {{\n{tiles}{program.replace('^s0)', '^s0, repeat_count = ' + str(n) + ')')}\n}}")


def _far_lock(n: int) -> None:
    east = "%east = aie.tile(1, 1)\n%e = aie.buffer(%east) : memref<64xi32>\n"
    read(
        east
        + dma_program("%m", 1, ["^b0:", "aie.dma_bd(%e : memref<64xi32>)", "aie.end"]).replace("S2MM, 0", f"S2MM, {n}")
    )


def _packet(field: str) -> Case:
    values = {"pkt_type": "0", "pkt_id": "0"} | {field: "{n}"}
    shown = ", ".join(f"{name} = {value}" for name, value in values.items())
    bd = f"aie.dma_bd(%b : memref<64xi32>) {{packet = #aie.packet_info<{shown}>}}"
    return reads(dma_program("%c", 1, ["^b0:", bd, "aie.end"]))


def _flow_id(n: int) -> None:
    ends = "aie.packet_source<%c, DMA : 0> aie.packet_dest<%c, DMA : 0>"
    emulate(f"aie.device(npu2) {{ %c = aie.tile(0, 2)\n aie.packet_flow({n}) {{ {ends} }} }}")


def _rules(n: int) -> None:
    rules = "\n".join(f"aie.rule(31, {i}, %a)" for i in range(n))
    read(
        "%x = aie.switchbox(%c) {\n%a = aie.amsel<0> (0)\naie.masterset(South : 0, %a)\n"
        f"aie.packet_rules(DMA : 0) {{\n{rules}\n}}\n}}"
    )


def _switch(line: str) -> Case:
    return reads(f"%x = aie.switchbox(%c) {{\n{line}\n}}")


def _rule(mask: str, value: str) -> Case:
    rule = f"aie.packet_rules(DMA : 0) {{ aie.rule({mask}, {value}, %a) }}"
    return _switch(f"%a = aie.amsel<0> (0)\naie.masterset(South : 0, %a)\n{rule}")


def _words(pattern: Pattern, element_bits: int = 32, static: bool = True, **options: Any) -> list[str]:
    return problems(pattern, SHIM, element_bits=element_bits, static=static, **options)


QUEUE_BD = "aiex.npu.push_queue(0, 0, MM2S : 0) {issue_token = false, repeat_count = {n} : i32, bd_id = 0 : i32}"
CORE_PORT = "aie.device(npu2) { %c = aie.tile(0, 2)\n aie.flow(%c, Core : CHANNEL, %c, DMA : 0) }"

TABLE: list[tuple] = [
    ("devices.limits.TASK_QUEUE_ENTRIES", 4, Place(_pushes, "while 4 tasks are in flight", DmaError)),
    ("devices.limits.HOST_BUFFERS", 5, Place(_argument, "of the first 5 arguments only", EmulationError)),
    (
        "devices.limits.TASK_REPEAT_MAX", 256,
        Place(reads(f"aie.runtime_sequence() {{ {QUEUE_BD} }}"), "outside 0 to 255", below=True),
        Place(_static_repeat, "outside 0 to 255", EmulationError, below=True),
        Place(
            refuses(lambda n: _words(Pattern((4,), (1,)), static=False, repeat=n)), "runs exceed the 256", ValueError
        ),
        Place(
            refuses(lambda n: _words(Pattern((2, 4, 4, 4), (256, 64, 8, 1)), static=False, repeat=-(-n // 2))),
            "runs exceed the 256", ValueError,
        ),
    ),
    ("devices.limits.MEMTILE_NEIGHBOUR_CHANNELS", 4, Place(_far_lock, "reaches only its own memtile", below=True)),
    (
        "devices.limits.STATIC_STRIDE_END", 524288,
        Place(refuses(lambda n: _words(Pattern((2, 2), (n, 2)))), "is not below 524288", ValueError, below=True),
    ),
    (
        "devices.limits.RUNTIME_ELEMENT_BITS_MAX", 32,
        Place(
            refuses(lambda n: _words(Pattern((32,), (1,)), element_bits=n, static=False)), "exceed the 32", ValueError
        ),
    ),
    (
        "devices.limits.PACKET_IDS", 32,
        Place(_packet("pkt_id"), "pkt_id = 32", below=True),
        Place(_flow_id, "packet id 32 is outside 0 to 31", EmulationError, below=True),
        Place(_rule("31", "{n}"), "32 is outside 0 to 31", below=True),
        Place(_rule("{n}", "0"), "32 is outside 0 to 31", below=True),
    ),
    ("devices.limits.PACKET_TYPES", 8, Place(_packet("pkt_type"), "pkt_type = 8", below=True)),
    (
        "devices.limits.CORE_STREAM_PORTS", 1,
        Place(lambda n: emulate(CORE_PORT.replace("CHANNEL", str(n))), "Core", EmulationError, below=True),
    ),
    ("array.emulator.cores.ports.CAPACITY", 4, Place(_cascade, "to take a value from the cascade", EmulationError)),
    ("devices.switches.PACKET_RULES_PER_SLAVE", 4, Place(_rules, "5 rules; a slave port has 4")),
    ("devices.switches.ARBITERS", 6, Place(_switch("aie.amsel<{n}> (0)"), "arbiters 0 to 5", below=True)),
    ("devices.switches.MSELS_PER_ARBITER", 4, Place(_switch("aie.amsel<5> ({n})"), "msels 0 to 3", below=True)),
    ("array.emulator.silicon_rules.UNREAD_TOKENS", 4, Place(_tokens, "more than 4 tokens of column 0", EmulationError)),
    (
        "array.mlir.dense.DENSE_BYTES_MAX", 268435456,
        Place(reads("aie.buffer(%c) : memref<{n}xi8> = dense<0>"), "the limit is 268435456"),
    ),
]  # fmt: skip
