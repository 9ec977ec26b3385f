"""Forms of older mlir-aie are refused by name, with what replaces them."""

import pytest
from mlir_texts import bd, device, fault, sequence

from bdforge.array.mlir import parse, print_module

LEGACY = {
    "positional dims": (bd(", 0, 16, [<4, 4>, <4, 1>])"), "write <size = 4, stride = 1> instead of <4, 1>"),
    "allocation by column": (device("aie.shim_dma_allocation @x(MM2S, 0, 0)"), "(%tile, MM2S, channel)"),
    "memcpy with column and row": (
        sequence("aiex.npu.dma_memcpy_nd(0, 0, %x[0,0,0,0][1,1,1,4][0,0,0,1]) {id = 0} : memref<8192xi32>"),
        "leading column and row was dropped",
    ),
    "three strides": (
        sequence("aiex.npu.dma_memcpy_nd(%x[0,0,0,0][1,1,1,4][0,0,0]) {id = 0, metadata = @a} : memref<8192xi32>"),
        "expected 4 strides, outermost first, got 3; the form with three strides was dropped",
    ),
    "object fifo, lowered by aiecc": (device("aie.objectfifo @f(%s, {%m}, 2 : i32)"), "give input_with_addresses.mlir"),
    "newer operation": (device("%x = aie.fancy_tile<CoreTile>(?, ?)"), "give what aiecc made of it: input_with_addr"),
    "LLVM global": ("llvm.mlir.global external @b() : !llvm.array<8 x i32>", "give input_with_addresses.mlir of aiecc"),
    "LLVM type": ("func.func private @f(!llvm.ptr)", "text for the cores' compiler (input_opt.mlir?); give input_with"),
    "attribute of a compiler's": ("module attributes {a = #llvm.tbaa<i64 = 32>} {}", "give input_with_addresses.mlir"),
}  # fmt: skip


LAYOUTS = [
    "i64 = 32",
    '#dlti.dl_entry<index, 32 : i32>, "dlti.endianness" = "little"',
    "f80 = dense<128> : vector<2xi64>",
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_data_layouts_of_the_compiler_are_kept(layout: str):
    text = f"module attributes {{dlti.dl_spec = #dlti.dl_spec<{layout}>}} {{\n}}\n"
    assert print_module(parse(text)) == text


@pytest.mark.parametrize("form", LEGACY)
def test_legacy_forms_name_what_replaces_them(form: str):
    text, words = LEGACY[form]
    assert words in fault(text)
