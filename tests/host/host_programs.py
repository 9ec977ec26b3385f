"""The C++ test program that follows orders on its input, and sequence programs that Python and it are to agree on."""

import json
import subprocess
from pathlib import Path
from typing import Any

from library_builds import sanitized_build

from bdforge.design.sequences import Builder, Program, ProgramError, ceildiv, interpret, least
from bdforge.design.sequences.instruction_words import illegal, operations, target_facts
from bdforge.devices import TileKind, mlir_device_named
from bdforge.devices.txn_format.bd_encoding import BdError
from bdforge.devices.txn_format.codec import TxnError, decode, encode
from bdforge.devices.txn_format.describe import diff

DEVICE = mlir_device_named("npu2")
LIMITS = DEVICE.generation.limits(TileKind.SHIM)
TARGET = target_facts(DEVICE)
CORE = 0x200400
"""A register of a core."""

Content = dict[str, Any]


def probed(mode: str, *words: Path | str, lines: list[str]) -> list[str]:
    """A line for each, under sanitizers."""
    program = sanitized_build() / "tests" / "probe"
    text = "".join(f"{line}\n" for line in lines).encode()
    done = subprocess.run([program, mode, *words], input=text, capture_output=True, check=True, timeout=120)
    printed = done.stdout.decode().splitlines()
    assert len(printed) == len(lines)
    return printed


def content_of(program: Program) -> Content:
    return json.loads(json.dumps(program.model_dump(exclude_none=True)))


def line(program: Content, parameters: list[int], wide: bool = False, target: Any = TARGET) -> str:
    return json.dumps({"sequence": {"program": program, "target": target, "wide": wide}, "parameters": parameters})


def lines(program: Program, given: list[list[int]]) -> list[str]:
    """One program for many parameters, which is read once."""
    return [line(content_of(program), given[0]), *(json.dumps({"parameters": parameters}) for parameters in given[1:])]


def python_words(program: Program, parameters: list[int], wide: bool = False) -> list[int] | str:
    """The words, or why there are none."""
    given = dict(zip(program.parameters, parameters, strict=True))
    bits = [argument.bits for argument in program.arguments]
    try:
        events = list(interpret(program, given, LIMITS))
        words = encode(operations(events, bits, DEVICE.generation, wide), DEVICE).tolist()
    except (ProgramError, BdError, TxnError, ValueError) as error:
        return str(error)
    faults = illegal(program, events, DEVICE)
    if outside := [fault for fault in faults if fault.startswith(("a ", "columns ", "runs "))]:  # no argument's
        return outside[0]
    return f"illegal: {faults[0]}" if faults else words


def difference(expected: list[int] | str, answer: str) -> str:
    """What C++ answers that is neither Python's words nor an error where Python has one, in operations; else nothing.

    Where Python's words hold a BD that it then calls illegal C++ may have found so, or not: a stride that no run takes.
    """
    if isinstance(expected, str):
        found = expected.startswith("illegal: ") or answer.startswith("SequenceError: ")
        return "" if found else f"expected an error, {expected!r}, got {answer[:200]}"
    if answer[0] != "[":
        return f"expected {len(expected)} words, got {answer[:500]}"
    words = json.loads(answer)
    if words == expected:
        return ""
    return "\n".join(diff(decode(expected), decode(words), ("Python", "C++"))) or f"headers {expected[:4]}, {words[:4]}"


def moved(offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], bits: int = 32, columns: int = 1) -> Program:
    """One BD, in a task of which tokens of several columns are awaited."""
    build = Builder([], 1)
    x = build.argument("X", f"i{bits}", bits, 1 << 40)
    with build.step([("MM2S", 1, 1, columns), ("S2MM", 0, 2, columns)]):
        build.task("MM2S", 1, 1, build.bd(x, offset, sizes, strides), runs=2, token=True)
    return build.program


def copying() -> Program:
    """X to Y in pieces of 1024 words, the last one shorter, over two columns in turn."""
    build = Builder(["n"], 2)
    n = build.parameter("n")
    build.require(n > 0, "n = {} is below 1", n)
    x, y = build.argument("X", "i32", 32, n), build.argument("Y", "i8", 8, 4 * n, "bytes")
    with build.loop(ceildiv(n, 1024)) as i:
        column, length = i % 2, least(n - 1024 * i, 1024)
        with build.step([("S2MM", 0, column, 1)], "piece {}", [i]):
            build.task("MM2S", 1, column, build.bd(x, 1024 * i, (length,), (1,), (2, 0), when=n > 5))
            with build.when(i.equals(0)):
                build.write(CORE, n)
            build.task("S2MM", 0, column, build.bd(y, 4096 * i, (4 * length,), (1,)), token=True)
    return build.program
