"""Task BDs with both outer sizes 1 are linear, whatever their strides; those of dma_memcpy_nd only without strides."""

import pytest

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import parse
from bdforge.array.txn.lower import lower, select_sequence
from bdforge.devices.bd_registers import SHIM_BD

TEXT = """module {{
  aie.device({device}) {{
    %s = aie.tile(0, 0)
    aie.shim_dma_allocation @in (%s, MM2S, 0)
    aie.runtime_sequence(%x: memref<65536x{type}>) {{
      {lines}
    }}
  }}
}}
"""
LINEAR = [0, 0xC0000000]
"""Words 3 and 4 of a linear BD: no dimensions, the longest bursts."""


def dims(*pairs: tuple[int, int]) -> str:
    return ", ".join(f"<size = {size}, stride = {stride}>" for size, stride in pairs)


def task(length: int, *pairs: tuple[int, int], type_: str = "i32", device: str = "npu2") -> str:
    bd = f"aie.dma_bd(%x : memref<65536x{type_}>, 0, {length}, [{dims(*pairs)}])"
    lines = f"%t = aiex.dma_configure_task(%s, MM2S, 0) {{\n        {bd}\n        aie.end\n      }}"
    return TEXT.format(device=device, type=type_, lines=lines)


def bd_of(text: str) -> tuple[tuple[int, ...], list[str]]:
    """Words of a text's only BD, and the warnings about it."""
    strictness = Strictness()
    block, *_ = lower(select_sequence(parse(text, "design.mlir")), policy=strictness)
    return block.words, strictness.warnings  # pyrefly: ignore[missing-attribute]


def test_runs_of_a_linear_task_still_iterate():
    values = SHIM_BD.decode(bd_of(task(64, (4, 4096), (1, 8), (1, 8), (64, 1)))[0])
    assert (values["d0_wrap"], values["iteration_wrap"], values["iteration_step"]) == (0, 3, 4095)


@pytest.mark.parametrize(
    ("length", "pairs", "type_", "way"),
    [
        (64, [(64, 2)], "i32", "write [<size = 64, stride = 2>, <size = 1, stride = 1>, <size = 1, stride = 1>]"),
        (64, [(1, 8), (64, 2)], "i32", "write [<size = 64, stride = 2>"),
        (64, [(16, 512), (1, 1), (1, 1), (64, 3)], "i32", "the stride 3"),
        (64, [(64, 4)], "i8", "move elements of 32 bits"),
    ],
    ids=str,
)
def test_a_dropped_inner_stride_is_named_with_its_place(length, pairs, type_, way):
    words, (warning,) = bd_of(task(length, *pairs, type_=type_))
    assert list(words[3:5]) == LINEAR
    assert warning.startswith("design.mlir:7:9: aie.dma_bd: the stride ")
    assert way in warning
    assert verify_design(task(length, *pairs, type_=type_), "design.mlir").warnings == (warning,)


def test_the_form_that_is_named_keeps_its_stride():
    words, warnings = bd_of(task(64, (64, 2), (1, 1), (1, 1)))
    values = SHIM_BD.decode(words)
    assert [values[f"{name}"] for name in ("d0_wrap", "d0_step", "d1_wrap", "d1_step", "d2_step")] == [1, 0, 1, 0, 1]
    assert not warnings
