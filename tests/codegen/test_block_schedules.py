"""Schedules of straight code, by hand: cycles between two instructions, where a branch issues, when a block ends."""

import pytest

from bdforge.core import isa
from bdforge.core.codegen.basic_block import AssemblyOp, BasicBlock
from bdforge.core.codegen.schedule import placed, scheduled

LOAD, STORE, BYTE = "lda r1, [p0, #0]", "st r2, [p1, #0]", "st.s8 r2, [p1, #0]"
VECTOR = "vldb wl0, [p2, #0]"
PAIRS = [  # memory of each, None for any; cycles between
    (STORE, LOAD, (None, None), 1, "memory is written and read at stage 5: a load sees stores of cycles before"),
    (STORE, LOAD, ("a", "a"), 1, "the same memory"), (STORE, LOAD, ("a", "b"), 0, "memories that never meet"),
    (STORE, LOAD, ("a", None), 1, "one that may be any"), (STORE, LOAD, (None, "a"), 1, "one that may be any"),
    (LOAD, STORE, ("a", "a"), 0, "a load does not see what is stored with it"),
    (LOAD, VECTOR, ("a", "a"), 0, "loads do not order each other"),
    (BYTE, LOAD, ("a", "b"), 7, "a part of a word keeps memory for six cycles"),
    (BYTE, "rel #48, r0", ("a", None), 11, "it is written at stage 11"),
    (STORE, "rel #48, r0", ("a", None), 5, "stores are done before a lock"),
    (LOAD, "rel #48, r0", ("a", None), 5, "and loads"), (STORE, "done", ("a", None), 5, "and before the end"),
    ("acq #48, r0", LOAD, (None, "a"), 1, "nothing is read with a lock"),
    ("acq #48, r0", STORE, (None, "a"), 1, "nothing is written with it"),
    ("acq #48, r0", "rel #49, r3", (None, None), 4, "the port of locks is taken for four cycles"),
    ("rel #49, r3", "done", (None, None), 4, "also before the end"),
    ("add r3, r4, r5", "add r6, r3, r5", (None, None), 1, "a sum is there in the next cycle"),
    ("mul r3, r4, r5", "add r6, r3, r5", (None, None), 2, "a product in two"),
    (LOAD, "add r6, r1, r5", (None, None), 7, "what is loaded in seven"),
    (LOAD, "mova r1, #3", (None, None), 7, "writes land in their order"),
    ("mul r3, r4, r5", "mova r3, #3", (None, None), 2, "writes land in their order"),
    ("add r6, r1, r5", LOAD, (None, None), 0, "it has read when the load lands"),
    ("add r6, r1, r5", "mova r1, #3", (None, None), 0, "all of a bundle read before any writes"),
    ("add r3, r4, r5", "adc r6, r7, r8", (None, None), 1, "the carry"),
    ("add r3, r4, r5", "mova r6, #3", (None, None), 0, "nothing in common"),
    ("add r3, r4, r5", "sub r6, r7, r8", (None, None), 1, "one slot"),
]  # fmt: skip


@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize(("first", "second", "memories", "apart", "why"), PAIRS)
def test_an_instruction_issues_as_soon_as_it_may(first, second, memories, apart, why, generation):
    ops = [AssemblyOp(text, memory=memory) for text, memory in zip((first, second), memories, strict=True)]
    found = {op.text: at for at, cycle in enumerate(placed(isa.load(generation), ops)) for op in cycle.ops}
    assert found == {first: 0, second: apart}, f"{why}: {found[second]} cycles apart, not {apart}"


SUMS = tuple(f"add r{i}, r8, r9" for i in range(8))
BLOCKS = [  # instructions, branch, first cycle; cycle of the branch, cycles of the block
    ((), None, 0, None, 0), ((), None, 8, None, 8), ((), "j #x", 0, 0, 6), ((), "j #x", 4, 4, 10),
    (("add r1, r2, r3",), None, 0, None, 1), (("add r1, r2, r3",), None, 3, None, 4),
    ((LOAD,), None, 0, None, 7), ((LOAD,), None, 2, None, 9), ((STORE,), None, 0, None, 5),
    ((BYTE,), None, 0, None, 11),
    ((LOAD,), "j #x", 0, 1, 7), ((LOAD,), "jnz r1, #x", 0, 7, 13), (("add r2, r2, #-1",), "jnz r2, #x", 0, 1, 7),
    (("mul r2, r2, r3",), "jz r2, #x", 0, 2, 8), (("acq #48, r0",), "j #x", 0, 1, 7), (SUMS, "j #x", 0, 3, 9),
    (("mul r5, r8, r9", "or r6, r5, r9", "or r4, r8, r9"), "jnz r4, #x", 0, 1, 7),  # the condition goes first
    (SUMS, "jnz r0, #x", 0, 3, 9), (SUMS[:6], "j #x", 0, 1, 7), (SUMS[:5], "j #x", 0, 0, 6),
]  # fmt: skip


@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize(("texts", "branch", "quiet", "at", "length"), BLOCKS)
def test_a_block_ends_when_all_has_landed_and_branches_five_bundles_before(
    texts, branch, quiet, at, length, generation
):
    """Loads land after 7 cycles, stores are written after 5; the branch waits for its condition, locks and sums."""
    block = BasicBlock("x", [AssemblyOp(text) for text in texts], branch and AssemblyOp(branch), quiet)
    lines = scheduled(isa.load(generation), block)
    issued = [i for i, line in enumerate(lines) if branch and branch in line]
    assert (issued, len(lines)) == ([at] if branch else [], length)
    assert not any(text in line for line in lines[:quiet] for text in texts)
    assert sorted(text for text in texts for line in lines if text in line) == sorted(texts)


def test_of_those_that_are_ready_the_longest_way_goes_first():
    """The product, whose sum comes two cycles later, before what nobody waits for; of equals the first."""
    product, others, last = "mul r3, r8, r9", ["or r1, r8, r9", "or r2, r8, r9"], "or r4, r3, r9"
    cycles = placed(isa.load("aie2p"), [AssemblyOp(text) for text in (*others, product, last)])
    assert [cycle.texts for cycle in cycles] == [(product,), (others[0],), (others[1],), (last,)]
