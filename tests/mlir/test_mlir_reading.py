"""What the reader remembers: names and places of values, several results of one operation, words behind a global."""

import ast
import dataclasses
from pathlib import Path

import pytest
from mlir_texts import core, device, every, only, sequence
from xdsl.dialects import affine, arith, scf
from xdsl.ir import Block, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRLexer

from bdforge.array import mlir
from bdforge.array.mlir import MlirError, parse, print_module
from bdforge.array.mlir.device_ops import TileOp
from bdforge.array.mlir.locations import value_name
from bdforge.array.mlir.register_ops import NpuBlockWriteOp


def test_results_are_named_in_groups():
    yielded = "{ scf.yield %i, %x, %y : i32, i8, i16 }"
    body = (
        f"%q, %r:2 = scf.if %p -> (i32, i8, i16) {yielded} else {yielded}\n%v16 = arith.addi %r#1, %y : i16\n"
        "%v8 = arith.addi %r#0, %x : i8\n%v32 = arith.addi %q, %i : i32"
    )
    text = core("%x = arith.constant 1 : i8\n%y = arith.constant 2 : i16\n" + body)
    module = parse(text)
    choice = next(op for op in module.walk() if isinstance(op, scf.IfOp))
    sums = [op for op in module.walk() if isinstance(op, arith.AddiOp)]
    assert [choice.results.index(op.lhs) for op in sums] == [2, 1, 0]  # type: ignore[arg-type]
    assert parse(print_module(module)).is_structurally_equivalent(module)
    with pytest.raises(MlirError, match=r"'scf\.if' has 3 results, not 2"):
        parse(text.replace("%q, %r:2", "%q, %r"))


NAMES = ("t", "tile_0_1", "t1", "0", "12", "a.b", "x_2_")


def test_names_of_values_stay_as_they_are_written():
    lines = [f"%{name} = aie.tile({column}, 3)" for column, name in enumerate(NAMES)]
    module = parse(f"aie.device(npu2) {{ {' '.join(lines)} }}")
    kept = {op.column: value_name(op.result) for op in every(module, TileOp)}
    for column, name in enumerate(NAMES):
        assert kept[column] == (None if name.isdecimal() else name), name


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("aie.lock(%gone)\naie.lock(%gone)", 1, 10),
        ("aie.lock(%c)\n  aie.lock(%c)\naie.lock(%gone)", 3, 10),
        ("aie.lock(%later)\naie.lock(%gone)\n%later = aie.tile(3, 3)", 2, 10),
    ],
)
def test_an_undefined_value_is_told_where_it_is_used_first(text: str, line: int, column: int):
    whole = device(text)
    first = whole.splitlines().index(text.splitlines()[0])
    with pytest.raises(MlirError, match="%gone is used but never defined") as caught:
        parse(whole)
    assert (caught.value.line - first, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("aie.lock(%c) {init = 1}", "{init"), ("aiex.npu.sync {column = 0 : i32}", "{column"),
        ('"aie.lock"(%c) <{init = 1 : i8}> : (index) -> index', "<{init"),
        ("aie.lock(%c) {mine = 1, init = 2 : i64}", "{mine"),
    ],
)  # fmt: skip
def test_a_wrong_attribute_is_told_where_its_braces_begin(text: str, at: str):
    whole = sequence(text).replace("aie.shim_dma_allocation @a", f"{text}\naie.shim_dma_allocation @a", 1)
    whole = whole if text.startswith("aiex") else device(text)
    with pytest.raises(MlirError) as caught:
        parse(whole)
    line = whole.splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1 :].startswith(at), f"{caught.value.message} at {line!r}"


@pytest.mark.parametrize("text", ["tuple<" * 2500, "tuple<() -> " * 2500], ids=["types", "arrows"])
def test_brackets_that_are_open_are_counted_without_arrows(text: str):
    whole = f"aie.device(npu2) {{ func.func private @f({text}"
    with pytest.raises(MlirError) as caught:
        parse(whole)
    before = whole[: caught.value.column - 1].replace("->", "")
    count = sum(before.count(opening) - before.count(closing) for opening, closing in ("()", "[]", "{}", "<>"))
    assert f"about {count} brackets are open here" in caught.value.message


GLOBALS = {
    "memref.global @g : memref<1xi32>": "memref.global @g has no value to write",
    "memref.global @g : memref<1xi32> = uninitialized": "memref.global @g has no value to write",
    "memref.global @h : memref<1xi32> = dense<1>": "no memref.global is called @g",
}


@pytest.mark.parametrize("line", GLOBALS)
def test_a_blockwrite_needs_the_words_of_its_global(line: str):
    text = sequence("%d = memref.get_global @g : memref<1xi32>\naiex.npu.blockwrite(%d) {address = 0 : ui32} "
                    ": memref<1xi32>").replace("aie.runtime", f"{line}\naie.runtime", 1)  # fmt: skip
    with pytest.raises(ValueError, match=GLOBALS[line]):
        _ = only(parse(text), NpuBlockWriteOp).data
    other = sequence("aiex.npu.blockwrite(%x) {address = 0 : ui32} : memref<8192xi32>")
    with pytest.raises(ValueError, match=r"the data of aiex\.npu\.blockwrite must come from memref\.get_global"):
        _ = only(parse(other), NpuBlockWriteOp).data


def test_operands_of_affine_ifs_and_words_of_globals_are_all_kept():
    text = core("affine.if affine_set<(d0)[s0] : (d0 - 1 >= 0, s0 == 0)>(%c0)[%c1] { aie.event(0) }")
    for read in (parse(text), parse(print_module(parse(text)))):
        (found,) = (op for op in read.walk() if isinstance(op, affine.IfOp))
        assert [value_name(value) for value in found.args] == ["c0", "c1"]
    yields = "{ affine.yield %i : i32 } else { affine.yield %i : i32 }"
    for results in ("i32", "(i32)"):
        (found,) = (op for op in parse(core(f"%x = affine.if affine_set<(d0) : (d0 >= 0)>(%c0) -> {results} {yields}"))
                    .walk() if isinstance(op, affine.IfOp))  # fmt: skip
        assert [str(kind) for kind in found.result_types] == ["i32"]
    lines = [
        'memref.global "private" constant @a : memref<2xi32> = dense<[1, 2]>', "memref.global @b : memref<2xi32>",
        'memref.global "public" @c : memref<2xi32> = uninitialized',
        "memref.global constant @d : memref<i8> = dense<3>",
    ]  # fmt: skip
    printed = print_module(parse(device("\n".join(lines))))
    for line in lines:
        assert line in printed


def test_a_while_without_arguments_takes_none():
    with pytest.raises(MlirError, match=r"scf\.while without arguments cannot take any"):
        parse(core("scf.while : (i32) -> () { scf.condition(%p) } do { scf.yield }"))


KEPT = {
    "memref.copy": "memref.copy %b, %b {mine = 7 : i32} : memref<64xi32> to memref<64xi32>",
    "memref.cast": "%q = memref.cast %b {mine = 7 : i32} : memref<64xi32> to memref<?xi32>",
    "affine.if": "affine.if affine_set<(d0) : (d0 >= 0)>(%c0) { aie.event(0) } {mine = 7 : i32}",
    "scf.while": "scf.while : () -> () { scf.condition(%p) } do { scf.yield } attributes {mine = 7 : i32}",
    "arith.cmpi": "%q = arith.cmpi eq, %i, %i {mine = 7 : i32} : i32",
    "arith.select": "%q = arith.select %p, %i, %i {mine = 7 : i32} : i32",
}


@pytest.mark.parametrize("name", KEPT)
def test_attributes_that_mean_nothing_here_are_kept(name: str):
    module = parse(core(KEPT[name]))
    for read in (module, parse(print_module(module))):
        (found,) = (op for op in read.walk() if op.name == name)
        assert str(found.attributes.get("mine")) == "7 : i32", f"{name}: {found.attributes}"


def test_nothing_private_of_xdsl_is_used_or_overridden():
    """Its private members change from release to release; a text must read the same with the next."""
    kinds = (Parser, Printer, MLIRLexer, SSAValue, Block)
    members = {name for kind in kinds for name in (*dir(kind), *fields_of(kind))}
    private = {name for name in members if name.startswith("_") and not name.startswith("__")}
    for path in Path(mlir.__file__).parent.glob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        inside = [inner for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body]
        made = {inner.name for inner in inside if isinstance(inner, ast.FunctionDef)}
        assert not private & (used | made), path.name


def fields_of(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
