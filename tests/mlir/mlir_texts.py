"""Texts that the tests of bdforge.array.mlir share."""

import re
from pathlib import Path
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from bdforge.array.mlir import MlirError, parse
from support.txn_vectors import STREAM_VECTORS

OperationT = TypeVar("OperationT", bound=Operation)

DATA = Path(__file__).parent / "data"
VECTORS = {path.stem: path.read_text() for path in sorted(DATA.glob("*.mlir"))} | {
    name: vector.mlir
    for name, vector in STREAM_VECTORS.items()
    if "npu1" not in name  # the same on another device
}
"""Texts of a real aie-opt."""
TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)

TILES = {"s": (0, 0), "m": (0, 1), "m1": (1, 1), "c": (0, 2), "north": (0, 3), "east": (1, 2)}


def read(name: str) -> str:
    """A data file's text."""
    return (DATA / name).read_text()


def device(body: str, name: str = "npu2") -> str:
    """`body` in a device with tiles %s (shim), %m, %m1 (memtiles), %c, %north and %east of it."""
    tiles = "\n".join(f"%{tile} = aie.tile({column}, {row})" for tile, (column, row) in TILES.items())
    return f"aie.device({name}) {{\n{tiles}\n{body}\n}}\n"


def core(body: str) -> str:
    """`body` in a core with a few values: %i i32, %p i1, %f f32, %h bf16, %c0 and %c1 index, vectors %v and %w."""
    return device(
        f"""%b = aie.buffer(%c) : memref<64xi32>
        %b2 = aie.buffer(%c) : memref<8x8xi32>
        %bytes = aie.buffer(%c) : memref<256xi8>
        %l = aie.lock(%c)
        func.func private @k(memref<64xi32>, i32)
        func.func private @g(i32) -> i32
        aie.core(%c) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %i = arith.constant 1 : i32
          %p = arith.constant true
          %f = arith.constant 1.0 : f32
          %h = arith.constant 1.0 : bf16
          %v = arith.constant dense<1> : vector<16xi32>
          %w = arith.constant dense<1.0> : vector<16xf32>
          {body}
          aie.end
        }}"""
    )


def bd(
    parameters: str, tile: str = "m", buffer: str = "memref<64xi32>", direction: str = "MM2S", channel: int = 0
) -> str:
    """A DMA program with one BD `aie.dma_bd(%b : type, parameters`, which may end with attributes in braces."""
    kind = {"s": "shim_dma", "m": "memtile_dma", "c": "mem"}[tile]
    memory = "%b = aie.external_buffer" if tile == "s" else f"%b = aie.buffer(%{tile})"
    return device(
        f"""{memory} : {buffer}
        aie.{kind}(%{tile}) {{
          aie.dma_start({direction}, {channel}, ^bd, ^end)
        ^bd:
          aie.dma_bd(%b : {buffer}{parameters}
          aie.next_bd ^end
        ^end:
          aie.end
        }}"""
    )


def sequence(body: str, arguments: str = "%x: memref<8192xi32>") -> str:
    """`body` in a runtime sequence beside two named channels of shim %s."""
    return device(
        f"""aie.shim_dma_allocation @a(%s, MM2S, 0)
        aie.shim_dma_allocation @c(%s, S2MM, 0)
        aie.runtime_sequence({arguments}) {{
          {body}
        }}"""
    )


def fault(text: str) -> str:
    """The sentence that refuses a text; "accepted" if none does."""
    try:
        parse(text)
    except MlirError as error:
        return error.message
    return "accepted"


def every(module: ModuleOp, kind: type[OperationT]) -> list[OperationT]:
    """All operations of a kind, in text order."""
    return [op for op in module.walk() if isinstance(op, kind)]


def only(module: ModuleOp, kind: type[OperationT]) -> OperationT:
    """The one operation of a kind."""
    (found,) = every(module, kind)
    return found
