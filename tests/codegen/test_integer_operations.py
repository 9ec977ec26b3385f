"""Integers of core programs: every operation on every type, memory of every width, loops, choices and copies.

The answers are Python's integers, wrapped to the type. Operands are loaded, so nothing is known before the core runs.
"""

import operator
from collections.abc import Callable

import numpy as np
import pytest
from test_programs_of_bodies import program

from bdforge.array.emulator import emulate
from bdforge.core.codegen.abi import AssemblyKernel, Callee
from bdforge.core.codegen.errors import CodegenError
from support.differences import same

Function = Callable[[int, int, int], int]
"""Of two signed numbers and the bits of their type."""


def wrapped(value: int, bits: int) -> int:
    """The signed number of the low bits; 1 bit is 0 or 1."""
    value %= 1 << bits
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def unsigned(function: Callable[[int, int], int]) -> Function:
    return lambda a, b, bits: function(a % (1 << bits), b % (1 << bits))


def signed(function: Callable[[int, int], int]) -> Function:
    """An i1 is 0 or -1 where it has a sign."""
    return lambda a, b, bits: function(-a, -b) if bits == 1 else function(a, b)


BITWISE: dict[str, Function] = {
    "addi": unsigned(operator.add), "subi": unsigned(operator.sub), "muli": unsigned(operator.mul),
    "andi": unsigned(operator.and_), "ori": unsigned(operator.or_), "xori": unsigned(operator.xor),
}  # fmt: skip
WIDE: dict[str, Function] = {
    "maxsi": signed(max), "minsi": signed(min), "maxui": unsigned(max), "minui": unsigned(min),
    "shli": lambda a, b, bits: a << b % bits, "shrsi": lambda a, b, bits: a >> b % bits,
    "shrui": lambda a, b, bits: a % (1 << bits) >> b % bits,
}  # fmt: skip
ORDERS = {
    "eq": unsigned(operator.eq), "ne": unsigned(operator.ne),
    **{f"{sign[0]}{order}": sign[1](getattr(operator, order))
       for sign in (("s", signed), ("u", unsigned)) for order in ("lt", "le", "gt", "ge")},
}  # fmt: skip
CASTS: dict[str, Function] = {
    "extsi": signed(lambda a, _: a), "extui": unsigned(lambda a, _: a),
    "trunci": lambda a, b, bits: wrapped(a * b, bits),
    "index_cast to index": signed(lambda a, _: a),
    "index_cast from index": lambda a, b, bits: wrapped(a * b, bits),
}  # fmt: skip


def ran(buffers: str, body: str, folder, device: str = "npu2", kernels=None, stack: int = 1024, permissive=()):
    """Buffers after a core with this body has run as machine code."""
    text = f"""module {{ aie.device({device}) {{
    %tile = aie.tile(0, 2)
{buffers}
    func.func private @twice(i32) -> i32
    func.func private @again(i32) -> i32
    func.func private @note(memref<2xi32>, i32, i32)
    %core = aie.core(%tile) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
{body}
      aie.end
    }} {{stack_size = {stack} : i32}}
  }} }}"""
    made = program(text, kernels or {})
    (folder / "core.elf").write_bytes(made.elf)
    (folder / "core.s").write_text(made.source)
    return emulate(text, elfs={(0, 2): folder / "core.elf"}, permissive=permissive).buffers


def buffer(name: str, at: int, shape: str, values=None) -> str:
    filled = "" if values is None else f" = dense<{list(values)}>"
    return f'%{name} = aie.buffer(%tile) {{sym_name = "{name}", address = {at} : i32}} : memref<{shape}>{filled}\n'


def operands(bits: int) -> list[tuple[int, int]]:
    if bits == 1:
        return [(a, b) for a in (0, 1) for b in (0, 1)]
    top = 1 << bits - 1
    numbers = [-top, -top + 1, -3, -1, 0, 1, bits - 1, 85, top - 1]
    return [(a, b) for a in numbers for b in numbers]


def lines(bits: int, pairs: int) -> tuple[list[str], list[tuple[str, Function]]]:
    """Operations on %a and %b, with the words that stay of each."""
    kind, found, asked = f"i{bits}", [], []

    def result(name: str, function: Function, text: str, of: str) -> None:
        word = f"%w{len(asked)}"
        found.append(f"%r{len(asked)} = {text}")
        cast = "index_cast" if of == "index" else "extui" if of == "i1" else "extsi"
        widened = f"arith.{cast} %r{len(asked)} : {of} to i32"
        found.append(f"{word} = {widened}" if of != "i32" else f"{word} = arith.addi %r{len(asked)}, %none : i32")
        found.append(f"memref.store {word}, %out[%o{len(asked)}, %i] : memref<40x{pairs}xi32>")
        asked.append((name, function))

    for name, function in (BITWISE | (WIDE if bits > 1 else {})).items():
        second = "%count" if name.startswith("sh") else "%b"
        result(name, function, f"arith.{name} %a, {second} : {kind}", kind)
    for name, function in ORDERS.items():
        result(f"cmpi {name}", function, f"arith.cmpi {name}, %a, %b : {kind}", "i1")
    result("select", lambda a, b, _: a if b else b, f"arith.select %chosen, %a, %b : {kind}", kind)
    if bits < 32:
        for name in ("extsi", "extui"):
            result(name, CASTS[name], f"arith.{name} %a : {kind} to i32", "i32")
        result("trunci", CASTS["trunci"], f"arith.trunci %product : i32 to {kind}", kind)
        for way, text, of in (("to", f"%a : {kind} to index", "index"), ("from", f"%place : index to {kind}", kind)):
            name = f"index_cast {way} index"
            result(name, CASTS[name], f"arith.index_cast {text}", of)
    return found, asked


@pytest.mark.daily("1", "16")
@pytest.mark.parametrize("bits", [1, 8, 16, 32])
def test_operations_are_those_of_integers_of_a_type(bits, tmp_path):
    """Values of fewer than 32 bits wrap and keep their sign; an i1 is 0 or 1, but -1 where a sign counts."""
    pairs, held = operands(bits), max(bits, 8)
    found, asked = lines(bits, len(pairs))
    load = "memref.load %{0}_in[%i] : memref<{1}xi{2}>"
    body = [f"%o{i} = arith.constant {i} : index" for i in range(len(asked))]
    body += ["%none = arith.constant 0 : i32", f"%zero = arith.constant 0 : i{held}", "%n = arith.constant 0 : index"]
    body += [f"%end = arith.constant {len(pairs)} : index", "scf.for %i = %c0 to %end step %c1 {"]
    for name in "ab":
        loaded = f"{name}_loaded" if bits == 1 else name
        body.append(f"%{loaded} = {load.format(name, len(pairs), held)}")
        body += [f"%{name} = arith.cmpi ne, %{loaded}, %zero : i{held}"] * (bits == 1)
    if bits > 1:
        body += [f"%mask = arith.constant {bits - 1} : i{bits}", f"%count = arith.andi %b, %mask : i{bits}"]
        body.append(f"%chosen = arith.cmpi ne, %b, %zero : i{bits}")
    else:
        body.append("%chosen = arith.andi %b, %b : i1")
    if bits < 32:
        body += [f"%{n}_wide = arith.ext{'u' if bits == 1 else 's'}i %{n} : i{bits} to i32" for n in "ab"]
        body.append("%product = arith.muli %a_wide, %b_wide : i32")
        body.append("%place = arith.index_cast %product : i32 to index")
    body += [*found, "}"]
    texts = [buffer("out", 0x8000, f"40x{len(pairs)}xi32")]
    for index, (name, at) in enumerate((("a_in", 0x1000), ("b_in", 0x2000))):
        texts.append(buffer(name, at, f"{len(pairs)}xi{held}", [pair[index] for pair in pairs]))
    got = ran("".join(texts), "\n".join(body), tmp_path)["out"]
    for row, (name, function) in enumerate(asked):
        width = 32 if name.startswith(("ext", "cmpi", "index_cast to")) else bits
        expected = [wrapped(int(function(a, b, bits)), width) for a, b in pairs]
        wrong = [(pair, int(g), e) for pair, g, e in zip(pairs, got[row], expected, strict=True) if g != e]
        assert not wrong, f"{name} of i{bits}: (operands, got, wanted) {wrong[:3]}, {len(wrong)} of {len(pairs)} wrong"


@pytest.mark.parametrize("device", ["npu2", "npu1"])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_elements_lie_row_by_row_in_three_dimensions(bits, device, tmp_path):
    """Indices that are known and those that are not, in every place; what is beside an element stays."""
    kind, shape = f"i{bits}", (3, 4, 2)
    memory = f"memref<3x4x2xi{bits}>"
    filled = np.arange(-12, 12).reshape(shape)
    text = (
        f'%src = aie.buffer(%tile) {{sym_name = "src", address = 4096 : i32}} : {memory} = dense<{filled.tolist()}>\n'
    )
    text += buffer("dst", 0x2000, f"3x4x2x{kind}", None)
    body = f"""
      scf.for %i = %c0 to %c2 step %c1 {{
        %x = memref.load %src[%c2, %i, %c1] : {memory}
        memref.store %x, %dst[%i, %c2, %i] : {memory}
        %y = memref.load %src[%i, %c1, %c0] : {memory}
        memref.store %y, %dst[%c2, %c1, %i] : {memory}
        %z = memref.load %src[%c1, %c2, %i] : {memory}
        memref.store %z, %dst[%i, %i, %c1] : {memory}
      }}
      %k = memref.load %src[%c2, %c1, %c1] : {memory}
      memref.store %k, %dst[%c0, %c1, %c0] : {memory}"""
    wanted = np.zeros(shape, np.int64)
    for i in range(2):
        wanted[i, 2, i], wanted[2, 1, i], wanted[i, i, 1] = filled[2, i, 1], filled[i, 1, 0], filled[1, 2, i]
    wanted[0, 1, 0] = filled[2, 1, 1]
    same(ran(text, body, tmp_path, device)["dst"].astype(np.int64), wanted)


LOOPS = [(0, 7, 3), (0, 6, 3), (5, 6, 4), (2, 2, 1), (4, 1, 1), (0, 1, 1), (1, 8, 2)]


@pytest.mark.parametrize("known", [True, False], ids=["known", "loaded"])
def test_loops_make_as_many_passes_as_their_steps_fit(known, tmp_path):
    """One pass more where the step does not divide the way, none where the end is not above the start."""
    text = buffer("ends", 0x1000, f"{3 * len(LOOPS)}xi32", [n for loop in LOOPS for n in loop])
    text += buffer("out", 0x2000, f"{2 * len(LOOPS)}xi32")
    body = ["%none = arith.constant 0 : i32", "%one = arith.constant 1 : i32"]
    for row, loop in enumerate(LOOPS):
        for part, number in zip(("lb", "ub", "st"), loop, strict=True):
            at = 3 * row + ("lb", "ub", "st").index(part)
            body += [f"%{part}_at{row} = arith.constant {at} : index"]
            if known or part == "st":
                body.append(f"%{part}{row} = arith.constant {number} : index")
            else:
                body.append(f"%{part}_w{row} = memref.load %ends[%{part}_at{row}] : memref<{3 * len(LOOPS)}xi32>")
                body.append(f"%{part}{row} = arith.index_cast %{part}_w{row} : i32 to index")
        body += [
            f"%n{row}, %last{row} = scf.for %i = %lb{row} to %ub{row} step %st{row} "
            "iter_args(%x = %none, %y = %none) -> (i32, i32) {",
            "%x1 = arith.addi %x, %one : i32", "%i1 = arith.index_cast %i : index to i32",
            "scf.yield %x1, %i1 : i32, i32", "}",
        ]  # fmt: skip
        for part, name in enumerate(("n", "last")):
            body.append(f"%at{name}{row} = arith.constant {2 * row + part} : index")
            body.append(f"memref.store %{name}{row}, %out[%at{name}{row}] : memref<{2 * len(LOOPS)}xi32>")
    found = ran(text, "\n".join(body), tmp_path)["out"]
    for row, loop in enumerate(LOOPS):
        indices = [0, *range(*loop)]
        got = found[2 * row : 2 * row + 2].tolist()
        assert got == [len(indices) - 1, indices[-1]], f"(passes, last index) of range{loop}: {got}"


def test_values_that_change_places_are_copied_at_once(tmp_path):
    """A swap and a circle of three in a loop's yield, and of a while loop's."""
    text = buffer("words", 0x1000, "8xi32", [1, 2, 3, 4, 5, 0, 0, 0])
    names = "abcde"
    body = [f"%p{i} = arith.constant {i} : index" for i in range(8)]
    body += [f"%{n} = memref.load %words[%p{i}] : memref<8xi32>" for i, n in enumerate(names)]
    body += [
        "%three = arith.constant 4 : index",
        "%r:5 = scf.for %i = %c0 to %three step %c1 iter_args(%v = %a, %w = %b, %x = %c, %y = %d, %z = %e) "
        "-> (i32, i32, i32, i32, i32) {", "scf.yield %w, %v, %y, %z, %x : i32, i32, i32, i32, i32", "}",
    ]  # fmt: skip
    body += [f"memref.store %r#{i}, %words[%p{i}] : memref<8xi32>" for i in range(5)]
    body += [
        "%six = arith.constant 6 : i32",
        "%s:2 = scf.while (%x = %a, %y = %e) : (i32, i32) -> (i32, i32) {",
        "%t = arith.addi %x, %y : i32", "%more = arith.cmpi slt, %x, %six : i32",
        "scf.condition(%more) %y, %t : i32, i32", "} do {", "^bb0(%m: i32, %n: i32):",
        "scf.yield %n, %m : i32, i32", "}",
        "memref.store %s#0, %words[%p5] : memref<8xi32>", "memref.store %s#1, %words[%p6] : memref<8xi32>",
    ]  # fmt: skip
    v, w, x, y, z = 1, 2, 3, 4, 5
    for _ in range(4):
        v, w, x, y, z = w, v, y, z, x
    m, n = 1, 5
    while m < 6:
        m, n = m + n, n
    assert ran(text, "\n".join(body), tmp_path)["words"].tolist() == [v, w, x, y, z, n, m + n, 0]


NOTE = AssemblyKernel(Callee("note"), "note: st r0, [p0, #0]\n st r1, [p0, #4]\n ret\n" + " nop\n" * 5, "note.s")
CHOSEN = {1: ("p", 10, 7), 2: ("q", 20, 8), 3: ("p", 30, 7)}


@pytest.mark.parametrize("which", CHOSEN)
def test_calls_in_arms_become_one_call_of_chosen_arguments(which, tmp_path):
    """Of the arms of choices in choices, each argument is that of the arm that is taken."""
    text = buffer("words", 0x1000, "4xi32", [which, 10, 20, 30])
    text += buffer("p", 0x2000, "2xi32", [0, 0]) + buffer("q", 0x3000, "2xi32", [0, 0])
    body = "\n".join(
        f"%n{i} = arith.constant {i} : index\n%w{i} = memref.load %words[%n{i}] : memref<4xi32>" for i in range(4)
    )
    call = "func.call @note(%{}, %{}, %{}) : (memref<2xi32>, i32, i32) -> ()"
    body += f"""
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %seven = arith.constant 7 : i32
      %eight = arith.addi %w0, %seven : i32
      %first = arith.cmpi eq, %w0, %one : i32
      %second = arith.cmpi eq, %w0, %two : i32
      %six = arith.subi %seven, %one : i32
      %more = arith.addi %two, %six : i32
      scf.if %first {{
        {call.format("p", "w1", "seven")}
      }} else {{
        scf.if %second {{
          {call.format("q", "w2", "more")}
        }} else {{
          {call.format("p", "w3", "seven")}
        }}
      }}"""
    found = ran(text, body, tmp_path, kernels={"note": NOTE})
    name, *wanted = CHOSEN[which]
    assert {n: found[n].tolist() for n in "pq"} == {n: wanted if n == name else [0, 0] for n in "pq"}
    assert (tmp_path / "core.s").read_text().count("jl #note") == 1


LOCKED = {  # what a core does with a lock of 3, and its value then
    "AcquireGreaterEqual, %k2": 1, "Acquire, %k3": 0, "Release, %k4": 7, "AcquireGreaterEqual, %k5) {acq_en = false": 3,
    "AcquireGreaterEqual, %amount": 1, "Release, %amount": 5,
}  # fmt: skip


@pytest.mark.parametrize("text", LOCKED)
def test_locks_take_and_give_what_the_text_or_the_core_says(text, tmp_path):
    """An amount may be known only when the core runs; an acquire that is switched off takes nothing."""
    lock = '%lock = aie.lock(%tile, 5) {init = 3 : i32, sym_name = "lock"}\n'
    filled = buffer("words", 0x1000, "4xi32", [2, 0, 0, 0])
    constants = "\n".join(f"%k{i} = arith.constant {i} : i32" for i in range(1, 6))
    body = f"""
      {constants}
      %amount = memref.load %words[%c0] : memref<4xi32>
      aie.use_lock(%lock, {text}{"}" if "{" in text else ")"}
      memref.store %amount, %words[%c1] : memref<4xi32>
      %forever = arith.constant 9223372036854775807 : index
      scf.for %i = %c1 to %forever step %c1 {{
        aie.use_lock(%lock, AcquireGreaterEqual, %k1)
        %n = arith.index_cast %i : index to i32
        memref.store %n, %words[%c2] : memref<4xi32>
      }}"""
    found = ran(lock + filled, body, tmp_path, permissive=["blocked-cores"])["words"].tolist()
    assert found == [2, 2, LOCKED[text], 0], f"the lock was {found[2]} behind it"


def doubled(name: str, stack_bytes: int) -> AssemblyKernel:
    return AssemblyKernel(
        Callee(name, stack_bytes=stack_bytes), f"{name}: ret\n add r0, r0, r0\n" + " nop\n" * 4, f"{name}.s"
    )


@pytest.mark.parametrize(("callee_bytes", "least"), [(0, 128), (64, 128), (128, 192)])
def test_the_stack_holds_what_the_body_keeps_and_the_deepest_call(callee_bytes, least, tmp_path):
    """Exactly enough is taken, a byte less is refused; of two functions the one that takes more counts."""
    text = buffer("words", 0x1000, "4xi32", [21, 0, 0, 0])
    body = """
      %x = memref.load %words[%c0] : memref<4xi32>
      %y = func.call @twice(%x) : (i32) -> i32
      %z = func.call @again(%y) : (i32) -> i32
      memref.store %z, %words[%c1] : memref<4xi32>
      memref.store %x, %words[%c2] : memref<4xi32>"""
    kernels = {"twice": doubled("twice", callee_bytes), "again": doubled("again", 64)}
    assert ran(text, body, tmp_path, kernels=kernels, stack=least)["words"].tolist() == [21, 84, 21, 0]
    with pytest.raises(CodegenError, match=f"stack_size is {least - 1}: make it {least} or more"):
        ran(text, body, tmp_path, kernels=kernels, stack=least - 1)
