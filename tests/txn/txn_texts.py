"""Sequences for the tests of bdforge.array.txn, and how they are lowered."""

import pytest

from bdforge.array.mlir import parse
from bdforge.array.txn.lower import LoweringError, lower_module
from bdforge.array.txn.target import ControllerIds
from bdforge.devices.bd_registers import SHIM_BD
from bdforge.devices.txn_format.operations import BlockWrite

TEXT = """aie.device(npu2) {
  %s = aie.tile(0, 0)
  %m = aie.tile(0, 1)
  %c = aie.tile(0, 2)
  %mb = aie.buffer(%m) {sym_name = "mb", address = 0 : i32} : memref<1024xi32>
  %ml = aie.lock(%m, 3)
  aie.shim_dma_allocation @in (%s, MM2S, 0)
  aie.runtime_sequence(%x: memref<4096xi32>, %y: memref<8x1x16xi32>, %w: memref<64xi64>) {
    LINES
  }
}"""


def lowered(*lines: str) -> list:
    module = parse(TEXT.replace("LINES", "\n    ".join(lines)), "d.mlir")
    return lower_module(module, controller_ids=ControllerIds.TEXT)[1]


def refused(message: str, *lines: str) -> None:
    """What the verifier takes, as mlir-aie does, and no instruction stream can say."""
    with pytest.raises(LoweringError, match=message):
        lowered(*lines)


def task(bd: str, channel: str = "%s, MM2S, 0", after: str = "") -> str:
    return f"%t = aiex.dma_configure_task({channel}) {{ {bd} aie.end }} {after}"


def fields(operations: list, layout=SHIM_BD) -> dict[str, int]:
    (block,) = (op for op in operations if isinstance(op, BlockWrite))
    return {name: value for name, value in layout.decode(block.words).items() if value}


X = "aie.dma_bd(%x : memref<4096xi32>, 0, 64{})"
MB = "aie.dma_bd(%mb : memref<1024xi32>, 0, 64{})"
