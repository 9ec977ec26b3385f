"""Constants of core programs: the instruction that loads one, and the number that a value always is."""

import pytest
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType

from bdforge.array.core_bodies.value_locations import Constants, constant_of
from bdforge.array.mlir.elementwise_ops import OPERATIONS
from bdforge.core import isa
from bdforge.core.codegen.abi import quiet_cycles
from bdforge.core.codegen.basic_block import load_constant
from bdforge.core.isa.assembler import assemble
from bdforge.devices import AIE2, AIE2P, Generation


@pytest.mark.parametrize(
    ("register", "text", "instruction"),
    [("r1", "-1024", "mova"), ("r1", "1023", "mova"), ("r1", "-1025", "movxm"), ("r1", "1024", "movxm"),
     ("r1", "0", "mova"), ("p1", "0", "movxm"), ("r1", "words", "movxm")],
)  # fmt: skip
def test_short_numbers_of_scalar_registers_take_one_slot(register: str, text: str, instruction: str):
    line = load_constant(register, text)
    assert line == f"{instruction} {register}, #{text}"
    for generation in ("aie2", "aie2p"):
        assemble(f"words: {line}\n", generation, "k.s")


@pytest.mark.parametrize(
    ("number", "kind", "constant"),
    [(1, IntegerType(1), 1), (-1, IntegerType(1), 1), (0, IntegerType(1), 0), (-7, IntegerType(32), -7),
     (9, IndexType(), 9)],
)  # fmt: skip
def test_a_constant_is_its_number_and_true_is_one(number: int, kind: IntegerType | IndexType, constant: int):
    assert constant_of(ConstantOp(IntegerAttr(number, kind)).result) == constant


@pytest.mark.parametrize(
    ("cast", "number", "source", "target", "constant"),
    [("extsi", 1, 1, 32, -1), ("extsi", 0, 1, 32, 0), ("extsi", -7, 8, 32, -7), ("index_cast", 9, 32, None, 9),
     ("index_cast", 1, 1, None, -1), ("index_cast", -7, 8, None, -7),
     ("extui", -1, 8, 32, None), ("trunci", 5, 32, 8, None)],
)  # fmt: skip
def test_a_cast_of_a_constant_is_known_where_it_keeps_the_number(cast, number, source, target, constant):
    """A true value that gets a sign is -1."""
    kind = IndexType() if target is None else IntegerType(target)
    made = ConstantOp(IntegerAttr(number, IntegerType(source))).result
    (op,) = (op for op in OPERATIONS if op.name == f"arith.{cast}")
    assert constant_of(op.create(operands=[made], result_types=[kind]).results[0]) == constant


def test_registers_go_to_what_loops_read_most():
    constants = Constants({"7": "r16"})
    assert (constants.read("7"), constants.read("once")) == ("r16", None)
    with constants.loop():
        constants.read("often")
        for _ in range(2):
            constants.read("most")
        with constants.loop():
            constants.read("inner")
    constants.read("once")
    assert constants.best(("r16", "r17")) == {"inner": "r16", "most": "r17"}
    assert constants.best(("r16", "r17", "r18", "r19")) == {"inner": "r16", "most": "r17", "often": "r18"}


@pytest.mark.parametrize("generation", [AIE2, AIE2P], ids=lambda generation: generation.name)
def test_all_that_a_function_began_is_done_after_its_quiet_cycles(generation: Generation):
    """Registers are written by then, and memory, which comes last."""
    timings = [form.timing for form in isa.load(generation).forms.values()]
    registers = max(stage for timing in timings for stage in timing.defs.values())
    memory = max(stage for timing in timings for stage in timing.memory_stages)
    assert quiet_cycles(generation) >= max(registers, memory)
    assert memory > registers
