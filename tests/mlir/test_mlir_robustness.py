"""Whatever the text: an MlirError or a module, soon, and nothing else."""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir_texts import TOKEN, VECTORS, device
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir import MlirError, parse, print_generic, print_module

TEXTS = [TOKEN.findall(text) for text in VECTORS.values()]
WORDS = sorted({word for text in TEXTS for word in text})

HOSTILE = {
    "nothing": "",
    "only a comment": "// nothing",
    "one brace": "module {",
    "too many braces": "module { } }",
    "deep brackets": device(f"aie.lock(%c) {{x = {'[' * 5000}"),
    "deep regions": device("scf.execute_region {" * 5000),
    "deep dense": device(f"aie.buffer(%c) : memref<4xi32> = dense<{'[' * 5000}1{']' * 5000}>"),
    "string without end": device('aie.lock(%c) {x = "' + "a" * 5000),
    "long space": "module {" + " " * 5000 + "§",
    "long comment": "//" + "x" * 50000 + "\n%",
    "huge number": device("aie.lock(%c, " + "9" * 5000 + ")"),
    "number beyond its type": device("aie.lock(%c, 99999999999)"),
    "huge constant": device("aie.buffer(%c) : memref<99999999x99999999xi32> = dense<0>"),
    "huge vector": device("%v = arith.constant dense<0> : vector<99999x99999xi32>"),
    "no such character": "module { € }",
    "digits of another script": "module { ² }",
    "half a surrogate": "module { \ud800 }",
    "null": "module { \0 }",
    "alias of itself": "!t = !t",
    "unbalanced location": "module { } loc((((",
    "an attribute of no dialect": device("aie.lock(%c) {x = #nothing.at<all>}"),
    "resources": "{-# dialect_resources: { builtin: { x: \"0x00\" } } #-}",
    "operation without result type": device('"aie.lock"(%c) : (index) -> ()'),
    "operation without operand": device('"aie.lock"() : () -> index'),
    "operation of another arity": device('"aie.flow"(%c) : (index) -> ()'),
    "code of no word": device('"aie.use_lock"(%c) <{action = 9 : i32}> : (index) -> ()'),
    "code of no device": '"aie.device"() <{device = 1 : i32}> ({ "aie.end"() : () -> () }) : () -> ()',
    "device of two blocks": '"aie.device"() <{device = 8 : i32}> ({ ^a: "aie.end"() : () -> ()\n^b: }) : () -> ()',
    "loop without body": device('"scf.for"(%c, %c, %c) ({}) : (index, index, index) -> ()'),
    "while without blocks": device('"scf.while"() ({}, {}) : () -> ()'),
    "call of nothing": device('"func.call"() : () -> ()'),
    "sequence without block": device('"aie.runtime_sequence"() ({}) : () -> ()'),
    "memcpy without segments": device('"aiex.npu.dma_memcpy_nd"() : () -> ()'),
}  # fmt: skip

CALLS_MAX = 200_000  # of functions while one text is read: soon, on any machine


@contextmanager
def calls_counted() -> Iterator[Counter[str]]:
    """Calls of functions by kind, of Python or C; TimeoutError ends a text that takes too many."""
    calls: Counter[str] = Counter()

    def count(_frame, event: str, _argument) -> None:
        calls[event] += event in ("call", "c_call")
        if calls.total() > CALLS_MAX:
            raise TimeoutError(f"more than {CALLS_MAX} calls")

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_in_one_error(name: str):
    with pytest.raises(MlirError) as caught, calls_counted() as calls:
        parse(HOSTILE[name], "hostile.mlir")
    assert str(caught.value).startswith("hostile.mlir:")
    assert calls.total() < CALLS_MAX


def mutated(seed: int) -> str:
    """A vector with a few words deleted, repeated, swapped or replaced, or cut off."""
    rng = random.Random(seed)
    words = list(rng.choice(TEXTS))
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(5):
            case 0:
                del words[at]
            case 1:
                words[at] = rng.choice(WORDS)
            case 2:
                words[at], words[other] = words[other], words[at]
            case 3:
                words[at:at] = words[at : at + rng.randrange(30)]
            case _:
                words = words[: at + 1]
    return "".join(words)


def outcome(text: str) -> ModuleOp | MlirError:
    """The module, or why there is none."""
    try:
        return parse(text)
    except MlirError as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 100, 200])
def test_mutated_designs_load_or_are_refused(start: int):
    outcomes = {seed: outcome(mutated(seed)) for seed in range(start, start + 100)}
    refused = [result for result in outcomes.values() if isinstance(result, MlirError)]
    assert [str(error) for error in refused if "cannot read this" in error.message] == []
    assert 0 < len(refused) < len(outcomes)
    loaded = {seed: module for seed, module in outcomes.items() if isinstance(module, ModuleOp)}
    for seed, module in loaded.items():
        for write in (print_module, print_generic):
            assert module.is_structurally_equivalent(parse(write(module))), f"seed {seed}"


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.text(alphabet=st.sampled_from('aie.device(npu2){}%^@#!<>[]:,="0x1-/* \n\\loc'), max_size=60))
def test_random_text_never_escapes(text: str):
    result = outcome(text)
    assert isinstance(result, ModuleOp) or min(result.line, result.column) >= 1
