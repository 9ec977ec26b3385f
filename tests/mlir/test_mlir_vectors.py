"""Texts of a real aie-opt: both forms load to one module, and what is printed loads again."""

import pytest
from mlir_texts import VECTORS, read
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir import parse, print_generic, print_module


def equal(one: ModuleOp, other: ModuleOp) -> bool:
    return one.is_structurally_equivalent(other)


@pytest.mark.parametrize("name", ["chain", "packets_pad"])
def test_the_generic_form_loads_to_the_same_module(name: str):
    assert equal(parse(read(f"{name}.mlir")), parse(read(f"{name}.generic.mlir")))


def test_different_designs_are_not_equivalent():
    text = read("chain.mlir")
    assert not equal(parse(text), parse(text.replace("stride = 32>", "stride = 16>", 1)))


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("text", VECTORS.values(), ids=VECTORS)
def test_both_forms_read_back_and_print_the_same_again(text: str):
    module = parse(text)
    once = print_module(module)
    again = parse(once)
    assert equal(module, again)
    assert print_module(again) == once
    assert equal(module, parse(print_generic(module)))


def test_printing_keeps_names_and_words():
    text = print_module(parse(read("chain.mlir")))
    assert text.startswith("module {\n  aie.device(npu2_1col) {\n    %s = aie.tile(0, 0)\n")
    assert "%0 = aie.dma_start(S2MM, 0, ^a0, ^mm2s)\n" in text
    assert "aie.use_lock(%ma_free, AcquireGreaterEqual)\n" in text


def test_printed_names_never_clash():
    text = "aie.device(npu1) {\n%a = aie.tile(0, 2)\naie.mem(%a) {\n%x = aie.lock(%a, 0)\naie.end\n}\n"
    text += "aie.core(%a) {\n%x = aie.lock(%a, 1)\naie.end\n}\n%x_0 = aie.lock(%a, 2)\n%x_0_0 = aie.lock(%a, 3)\n}"
    module = parse(text)
    assert equal(module, parse(print_module(module)))
