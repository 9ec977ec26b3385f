"""Where code goes: delay slots, where calls return to, and where programs and branches may end."""

import pytest

from bdforge.devices import AIE2P
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES
from bdforge.isa import Form, load
from bdforge.isa.assembler import assemble
from bdforge.isa.flow import DELAY_SLOTS, Program
from bdforge.isa.hazard_layout import Names, layout_hazards
from bdforge.isa.undefined import _passes_on


def program(source: str, moved: int = 0) -> Program:
    """Bundles of a source, at addresses that are higher by `moved`."""
    assembled, isa = assemble(source, "aie2p", "k.s"), load(AIE2P)
    bundles = {moved + start + at: b for start, code in assembled.code for at, b in isa.decode_program(code)}
    return Program("aie2p", bundles)


def told(found: Program) -> list[str]:
    return [f"{hazard.rule}: {hazard.message}" for hazard in layout_hazards(found, Names(found, lambda _: "here"))]


@pytest.mark.parametrize("slots", range(DELAY_SLOTS + 2))
def test_a_call_returns_behind_its_five_delay_slots(slots: int):
    found = program("k: jl #k\n" + "nop\n" * slots)
    behind = sorted(found.bundles)[1:]
    assert found.slots(0) == behind[:DELAY_SLOTS]
    last = found.slots(0)[-1] if slots else 0
    assert found.return_address(0) == (None if slots < DELAY_SLOTS else last + found.bundles[last].size)
    missing = [hazard for hazard in told(found) if hazard.startswith("delay-slot: the code ends in the delay slots")]
    assert len(missing) == (slots < DELAY_SLOTS)


def test_a_function_that_calls_returns_behind_its_own_call():
    """And what it calls returns into it; a function that nobody calls returns to nobody."""
    slots, align = "nop\n" * DELAY_SLOTS, ".p2align 4\n"
    source = (
        f"jl #f\n{slots}done\n{align}f: jz r0, #skip\n{slots}jl #g\n{slots}{align}skip: nop\nret\n{slots}"
        f"{align}g: ret\n{slots}{align}alone: ret\n{slots}"
    )
    found, symbols = program(source), assemble(source, "aie2p", "k.s").symbols
    returns = sorted(address for address, branch in found.branches.items() if branch.returns)
    (into,) = (address for address, branch in found.branches.items() if branch.call and branch.target == symbols["g"])
    assert found.return_sites == {
        returns[0]: frozenset({found.return_address(0)}), returns[1]: frozenset({found.return_address(into)}),
    }  # fmt: skip
    assert returns[2] == symbols["alone"]


def test_code_may_fill_program_memory_and_no_more():
    size = sum(bundle.size for bundle in program("nop\n" * 8).bundles.values())
    assert told(program("nop\n" * 8, PROGRAM_MEMORY_BYTES - size)) == []
    (beyond,) = told(program("nop\n" * 8, PROGRAM_MEMORY_BYTES - size + 2))
    assert beyond == "size: code ends at 0x4002, beyond program memory (0x4000)"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (0, None),
        (16, None),
        (8, "jumps to 0x8, which is not a multiple of 16"),
        (4096, "jumps to 0x1000, where no bundle"),
    ],
)
def test_branches_aim_at_bundles_at_multiples_of_16(target: int, message: str | None):
    found = [hazard for hazard in told(program(f"jl #{target}\n" + "nop\n" * 20)) if hazard.startswith("target")]
    assert [message in hazard for hazard in found if message] == [True] * (message is not None)
    assert len(found) == (message is not None)


@pytest.mark.parametrize(
    ("form", "operands"),
    [("VMAC_vmul_cm_core_X_X", {"acc1": True, "s1": False, "s2": False, "acc": False}),
     ("VMUL_vmul_cm_core_X_X", {"s1": False, "s2": False, "acc": False})],
)  # fmt: skip
def test_of_a_product_only_what_it_adds_to_may_be_unwritten(form: str, operands: dict[str, bool]):
    found = SimpleForm(load(AIE2P).form(form))
    assert {name: _passes_on("aie2p", found, name) for name in operands} == operands  # type: ignore[arg-type]


class SimpleForm:
    """An instruction of which only the form counts."""

    def __init__(self, form: Form):
        self.form = form
