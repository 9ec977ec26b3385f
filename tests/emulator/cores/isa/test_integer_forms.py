"""Every integer form of the recorded bundles by itself, against a second description that knows only its name."""

import json
import random
import re
from pathlib import Path

import pytest

from bdforge import isa
from bdforge.isa import Instruction
from bdforge.isa.errors import OpenError
from bdforge.isa.meaning import Kind, meaning_of
from bdforge.isa.registers import width
from support.machine_code import EXECUTORS, World, drive
from support.plain_forms import Situation
from support.plain_lanes import carry, expected
from support.random_programs import filled, instruction, registers

RECORDED = Path(__file__).parents[3] / "isa" / "data" / "bundles.jsonl"
ELSEWHERE = re.compile(
    r"NOP|.*(CONV|_f_|bf16|BF16)|VSHUFFLE|V(ADD|SUB|NEG)(_vmac.*)?$|.*128(_|$)"
)  # floats; shuffles and sums of accumulators have recorded cases; loads of 128 bits are open
DRAWS = 2
AIE2_CONFS = (0x308, 0x208, 0x108, 0x310, 0x318, 0x312, 0x31A, 0x309, 0x708, 0xB08, 0x1308)


def recorded(generation: str) -> list[str]:
    """Integer forms of the recorded bundles that compute, load or store, and whose meaning is known."""
    rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    names = sorted({name for row in rows if row[0] == generation for name in row[3]})
    return [name for name in names if not ELSEWHERE.match(name) and _computes(generation, name)]


def _computes(generation: str, name: str) -> bool:
    try:
        return meaning_of(generation, isa.load(generation).form(name)).kind is Kind.COMPUTE
    except OpenError:
        return False


def prepared(generation: str, drawn: Instruction, rng: random.Random) -> dict[str, int]:
    """Registers in which the instruction does something known."""
    values = registers(isa.load(generation), rng)
    if generation == "aie2":
        values |= {f"r{i}": rng.choice(AIE2_CONFS) for i in range(4)}
    if "UPS" in drawn.form.name:
        values["crSat"] = 0
    lanes = re.search(r"_[SD]?(8|16|32|64|128)(_|$)", drawn.form.name)
    if drawn.form.name.startswith(("VEXT", "VINSERT", "VSHIFT")):
        limit = 512 // int(lanes[1]) if lanes else 65
        for name, value in drawn.operands.items():
            if name in ("idx", "shift", "op2", "op3") and isinstance(value, str) and value[0] == "r":
                values[value] = rng.randrange(limit)
        values["r29"] = rng.randrange(limit)
    return values


def index_fits(drawn: Instruction) -> bool:
    """Whether an immediate index is that of a lane."""
    lanes = re.search(r"_[SD]?(8|16|32|64|128)(_|$)", drawn.form.name)
    index = drawn.operands.get("idx", drawn.operands.get("imm", 0)) if drawn.form.name.startswith("VEXT") else 0
    return not isinstance(index, int) or not lanes or index < 512 // int(lanes[1])


def differences(executor, generation: str, drawn: Instruction, rng: random.Random) -> list[str]:
    """What an executor makes of one instruction otherwise than its description."""
    isa_ = isa.load(generation)
    values, seed = prepared(generation, drawn, rng), rng.randrange(1 << 30)
    memory = filled(seed, west=True)
    core = executor(isa_, isa_.encode([drawn]) + isa_.encode([isa_.instruction("DONE")]), memory)
    for name, value in values.items():
        core.write(name, value)
    kept = dict(values)

    def load(address: int, size: int) -> bytes:
        return memory.load(address, size).to_bytes(size, "little")

    situation = expected(Situation(generation, drawn.form.name, drawn.operands, core.read, load))
    for name, value in situation.registers.items():
        cut = value & ((1 << width(generation, name)) - 1)
        for leaf in isa.leaves(generation, name):
            kept[leaf.name] = cut >> leaf.lsb & ((1 << leaf.bits) - 1)
    made = carry(situation)
    kept |= {} if made is None else {"srCarry": made}
    drive(core, World())
    found = [f"{n}: {core.read(n):#x}, not {v:#x}" for n, v in kept.items() if core.read(n) != v]
    for address, data in situation.stored.items():
        if (have := load(address, len(data))) != data:
            found.append(f"memory at {address:#x}: {have.hex()}, not {data.hex()}")
    return found


def drawn_well(generation: str, name: str, rng: random.Random) -> Instruction:
    """A draw whose operands do not collide and whose accesses are aligned."""
    while True:
        drawn = instruction(isa.load(generation).form(name), rng)
        operands = drawn.operands
        if "ptr" in operands and operands.get("dst") == operands["ptr"]:
            continue
        if name.startswith(("LDA", "ST", "VL", "VS")) and isinstance(operands.get("imm"), int):
            accessed = meaning_of(generation, drawn.form).access
            if accessed and operands["imm"] % accessed.size_bytes:
                continue
        if generation == "aie2p" and re.match(r"V(MAX|MIN)", name) and "r16" in map(str, operands.values()):
            continue
        status = any(re.match("sr(?!Carry)|CORE_ID|srs", str(value)) for value in operands.values())
        if index_fits(drawn) and not status:
            return drawn


@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_recorded_integer_form_does_what_its_name_says(executor, generation):
    rng, wrong = random.Random(3), {}
    names = recorded(generation)
    assert len(names) > {"aie2p": 400, "aie2": 150}[generation]
    for name in names:
        for _ in range(DRAWS):
            drawn = drawn_well(generation, name, rng)
            if found := differences(executor, generation, drawn, rng):
                wrong[name] = (drawn.operands, found[:2])
    assert wrong == {}
