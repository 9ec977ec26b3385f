"""Where code goes: delay slots, where calls return to, and where programs and branches may end."""

import pytest

from bdforge.core.isa import GENERATIONS, Form, load
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.flow import DELAY_SLOTS, Branch, ControlFlow, branch_of
from bdforge.core.isa.hazard_layout import BundleNames, layout_hazards
from bdforge.core.isa.hazards import check_source
from bdforge.core.isa.meaning.form_meanings import _passes_on
from bdforge.core.isa.syntax import match
from bdforge.devices import AIE2P
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES


def program(source: str, moved: int = 0) -> ControlFlow:
    """Bundles of a source, at addresses that are higher by `moved`."""
    assembled, isa = assemble(source, "aie2p", "k.s"), load(AIE2P)
    bundles = {moved + start + at: b for start, code in assembled.code for at, b in isa.decode_program(code)}
    return ControlFlow("aie2p", bundles)


def told(found: ControlFlow) -> list[str]:
    return [
        f"{hazard.rule}: {hazard.message}" for hazard in layout_hazards(found, BundleNames(found, lambda _: "here"))
    ]


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


@pytest.mark.parametrize(
    ("way", "returns"), [("jl #g", True), ("jl p1", True), ("jz r0, #g", True), ("jnz r0, #g", True), ("j #g", False)]
)
def test_a_function_ends_behind_what_comes_back_or_may_not_be_taken(way: str, returns: bool):
    """The return of f behind a call or a choice is f's; behind a jump it is nobody's."""
    slots, align = "nop\n" * DELAY_SLOTS, ".p2align 4\n"
    source = f"jl #f\n{slots}done\n{align}g: nop\nj #g\n{slots}{align}f: {way}\n{slots}ret\n{slots}"
    found = program(source)
    (own,) = (address for address, branch in found.branches.items() if branch.returns)
    assert found.return_sites == ({own: frozenset({found.return_address(0)})} if returns else {})


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


# What a branch does: target or None, whether it may not be taken, calls, returns.
BRANCHES = {
    "j #32": Branch(32, False, False, False), "j p1": Branch(None, False, False, False),
    "jl #32": Branch(32, False, True, False), "jl p1": Branch(None, False, True, False),
    "jz r1, #32": Branch(32, True, False, False), "jnz r1, #32": Branch(32, True, False, False),
    "jnzd r1, r1, p0": Branch(None, True, False, False), "ret": Branch(None, False, False, True),
}  # fmt: skip


@pytest.mark.parametrize("text", BRANCHES)
@pytest.mark.parametrize("generation", GENERATIONS)
def test_branches_are_what_their_names_say(generation: str, text: str):
    found = match(load(generation), text, {})
    assert (branch_of(found), found.form.delay_slots) == (BRANCHES[text], DELAY_SLOTS)


@pytest.mark.parametrize("at", range(-1, DELAY_SLOTS + 1))
def test_what_lands_behind_a_return_to_somewhere_unknown_is_told_in_cycles(at: int):
    """A load that issues with the return, 7 cycles before it can be read, lands a cycle late; one before does not."""
    bundles = ["nop", "ret", *["nop"] * DELAY_SLOTS]
    bundles[1 + at] = "lda r1, [p0, #0]" if at else "lda r1, [p0, #0] ; ret"
    found = check_source(assemble("movxm p0, #0x70000\n" + "\n".join(bundles), "aie2p"))
    told = [hazard.message for hazard in found if hazard.rule == "across-jump"]
    assert [f"lands {at + 1} cycles after control has left" in message for message in told] == [True] * (at >= 0), told


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
