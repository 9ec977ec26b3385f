"""Every integer form by itself, against a second description that knows only its name."""

import random
import re
from contextlib import suppress

import pytest

from bdforge.core import isa
from bdforge.core.exact.instruction_plan import plan_of
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.isa import Instruction
from bdforge.core.isa.core_registers import width
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.isa_tables import rows
from bdforge.core.isa.meaning import MeaningKind, bare_name, meaning_of, what_is_open
from support import plain_forms
from support.machine_code import World, drive
from support.plain_forms import Situation
from support.plain_lanes import LANE, MARKED, ONE_REGISTER, carry, expected
from support.random_programs import filled, forms, instruction, registers

ELSEWHERE = re.compile(
    r"NOP|VFLOOR|.*(CONV|_[fF](_|$)|bf16|BF16|flt)|V(EXP2|TANH)|(INV)?SQRT|INV|.*(_FILL|_POP|_PUSH_(512|544|576)|_FLUSH|_4x|_sparse_|core_[XY]_Q)|VSHUFFLE|V(ADD|SUB|NEG)(_vmac.*)?$|.*128(_|$)|.*q_to_w"
)  # floats; shuffles and sums of accumulators have recorded cases; what is known in part is among requests
AIE2_CONFS = (0x308, 0x208, 0x108, 0x310, 0x318, 0x312, 0x31A, 0x309, 0x708, 0xB08, 0x1308, 0x300, 0x2308, 0x33A,
              0x132, 0x202)  # fmt: skip


def integer_forms(generation: str) -> list[str]:
    """Integer forms that compute, load or store, and whose meaning is known."""
    return sorted(form.name for form in forms(generation, MeaningKind.COMPUTE) if not ELSEWHERE.match(form.name))


def prepared(generation: str, drawn: Instruction, rng: random.Random) -> dict[str, int]:
    """Registers in which the instruction does something known."""
    values = registers(isa.load(generation), rng)
    values["r3"] = 0x308
    if generation == "aie2":
        values |= {f"r{i}": rng.choice(AIE2_CONFS) for i in range(4)}
    if "UPS" in drawn.form.name:
        values["crSat"] = 0
    lanes = LANE.search(drawn.form.name)
    if drawn.form.name.startswith(("VEXT", "VINSERT", "VSHIFT")):
        limit = 512 // int(lanes[1]) if lanes else 65
        for name, value in drawn.operands.items():
            if name in ("idx", "shift", "op2", "op3", "op4") and isinstance(value, str) and value[0] == "r":
                values[value] = rng.randrange(limit)
        values |= {"r29": rng.randrange(limit), "r30": rng.randrange(limit), "r26": 1}
    if drawn.form.name == "VSHIFT_ALIGN":
        values[str(drawn.operands["pre" if generation == "aie2p" else "op2"])] = rng.randrange(5)
    if "SHFL" in drawn.form.name:
        values["r29"] = rng.choice(sorted(ONE_REGISTER))
    if MARKED.match(drawn.form.name) and "MAXDIFF" not in drawn.form.name:
        read = re.search("vaddSign[01]|_D(?=[0-9])", drawn.form.name)
        unsigned = read is not None and not values["crVaddSign" if read[0] == "_D" else read[0]]
        assert lanes
        values |= {n: halved(v, int(lanes[1]), unsigned) for n, v in values.items() if n[:2] in ("wl", "wh")}
    return values


def halved(value: int, bits: int, unsigned: bool) -> int:
    """A register whose lanes are far from the greatest numbers: differences and magnitudes are in range."""
    found = [lane >> 1 for lane in plain_forms.lanes(value, bits, 256 // bits, not unsigned)]
    return plain_forms.packed(found, bits)


def index_fits(drawn: Instruction) -> bool:
    """Whether an immediate index is that of a lane."""
    lanes = LANE.search(drawn.form.name)
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
    """A draw whose operands do not collide, of which sources tell what it does, and whose accesses are aligned."""
    for _ in range(1000):
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
        status = any(re.match("sr(?!Carry|sSign)|CORE_ID", str(value)) for value in operands.values())
        if index_fits(drawn) and not status:
            with suppress(OpenError):
                plan_of(generation, drawn)
                return drawn
    raise AssertionError(f"{name}: what it does with any operands is open")


@pytest.mark.daily("aie2p")
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_every_integer_form_does_what_its_name_says(generation):
    """The plain executor; that the fast one does the same, test_executors_agree.py has of every form."""
    rng, wrong = random.Random(generation), {}
    names = integer_forms(generation)
    assert len(names) > {"aie2p": 460, "aie2": 390}[generation]
    for name in names:
        drawn = drawn_well(generation, name, rng)
        if found := differences(Interpreter, generation, drawn, rng):
            wrong[name] = (drawn.operands, found[:2])
    assert wrong == {}


def test_every_form_has_a_meaning_or_a_reason_why_not():
    for generation in isa.GENERATIONS:
        known = {form.name for form in forms(generation)}
        for form in isa.load(generation).forms.values():
            reason = "" if form.name.startswith("NOP") else what_is_open(generation, form)
            assert bool(reason) != (form.name in known or form.name.startswith("NOP")), form.name
            if reason:
                with pytest.raises(OpenError, match=re.escape(f"what {form.name} does is open: {reason}")):
                    meaning_of(generation, form)


def test_every_row_of_a_table_is_of_some_form():
    for generation in isa.GENERATIONS:
        every = isa.load(generation).forms.values()
        names = {form.name for form in every} | {bare_name(form) for form in every}
        assert not {row["form"] for row in rows(f"{generation}_meanings")} - names
