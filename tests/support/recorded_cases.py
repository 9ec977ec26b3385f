"""Recorded cases of what instructions do: a program, what registers, memory and locks hold before, and after."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from bdforge.core import isa
from bdforge.core.exact.core_memory import DataMemory
from bdforge.core.isa.errors import ExecutionError
from support.machine_code import World, drive, memories

_FILE = Path(__file__).parents[1] / "isa" / "data" / "semantics.jsonl"


@cache
def cases() -> tuple[dict[str, Any], ...]:
    """257 cases: from llvm-aie's tests and its simulator's rules, silicon routings, public programs, a reference model.

    They are of AIE2P, or of `arch`.
    """
    return tuple(json.loads(line) for line in _FILE.read_text().splitlines())


def faults(executor: Any, case: dict[str, Any]) -> list[str]:
    """What differs from the recorded end of a case, or why it comes to none, in words."""
    memory = memories()
    for address, data in case.get("mem", {}).items():
        _fill(memory, int(address, 16), bytes.fromhex(data))
    core = executor(isa.load(case.get("arch", "aie2p")), bytes.fromhex(case["program"]), memory)
    for register, value in case["regs"].items():
        core.write(register, int(value, 16))
    world = World({int(number): value for number, value in case.get("locks", {}).items()})
    try:
        drive(core, world)
    except ExecutionError as error:
        return [f"stopped {error}"]
    return list(_differences(case, core, memory, world))


def _fill(memory: DataMemory, address: int, data: bytes) -> None:
    for i, byte in enumerate(data):
        memory.store(address + i, 1, byte)


def _differences(case: dict[str, Any], core: Any, memory: DataMemory, world: World):
    for register, value in case.get("expect_regs", {}).items():
        if core.read(register) != int(value, 16):
            yield f"{register} is {core.read(register):#x}, not {value}"
    for address, data in case.get("expect_mem", {}).items():
        found = bytes(memory.load(int(address, 16) + i, 1) for i in range(len(data) // 2)).hex()
        if found != data:
            yield f"memory at {address} is {found}, not {data}"
    for name, found in (("bundles", core.bundles), ("events", core.events), ("locks", world.log)):
        if f"expect_{name}" in case and case[f"expect_{name}"] != found:
            yield f"{name}: {found}, not {case[f'expect_{name}']}"
