"""Cores of the array that run machine code: ELFs of the text, and code written through registers."""

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.array.emulator.errors import ArgumentError, BudgetExceeded, CoreError, LoadError, RegisterAccessError
from bdforge.array.emulator.timed import TimingOptions
from bdforge.array.mlir import parse
from bdforge.array.txn.lower import lower_module
from bdforge.core.isa.assembler import assemble
from bdforge.devices import mlir_device_named
from bdforge.devices.registers import address
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import BlockWrite, Operation, Write
from support.differences import same
from support.machine_code_designs import SOURCES, gemm_elf, gemm_source, gemm_text, operands

DEVICES = {"aie2p": "npu2", "aie2": "npu1"}
ELF_CORE = '%core = aie.core(%tile) {{ aie.end }} {{elf_file = "{}"}}'
RUNS = 2


@pytest.fixture
def write_elf(tmp_path):
    """Writes an ELF beside a design file that does not exist, and tells the name of both."""

    def write(data: bytes, name: str = "core.elf") -> tuple[str, str]:
        (tmp_path / name).write_bytes(data)
        return name, str(tmp_path / "design.mlir")

    return write


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("schedule", ["in-order", "random"])
@pytest.mark.parametrize("generation", DEVICES)
def test_a_gemm_of_machine_code_equals_numpy(write_elf, generation, schedule, poison):
    name, file = write_elf(gemm_elf(generation))
    text = gemm_text(DEVICES[generation], RUNS, ELF_CORE.format(name))
    arrays, expected = operands(generation, RUNS, seed=5)
    result = emulate(text, arrays, file=file, schedule=schedule, seed=3, poison=poison)
    same(arrays[2], expected)
    assert result.warnings == ()


CODE, CONTROL = address(0, 2, 0x20000), address(0, 2, 0x32000)
ENABLE, RESET = 1, 2


def loading(source: str, generation: str = "aie2p") -> list[Operation]:
    """Writes that reset the core of tile (0, 2), write its program and start it."""
    ((start, code),) = assemble(source, generation, "code.s").code
    padded = code.ljust(-(-len(code) // 4) * 4, b"\0")
    words = tuple(int.from_bytes(padded[i : i + 4], "little") for i in range(0, len(padded), 4))
    assert start == 0
    return [Write(CONTROL, RESET), BlockWrite(CODE, words), Write(CONTROL, ENABLE)]


def run_words(operations: list[Operation], text: str, arrays: list[np.ndarray], device: str = "npu2", **options):
    """Instruction words on a design without programs of its own."""
    return emulate(text, arrays, instructions=encode(operations, mlir_device_named(device)), **options)


@pytest.mark.parametrize("generation", DEVICES)
def test_a_core_that_is_loaded_through_registers_does_the_same(generation):
    device = DEVICES[generation]
    text = gemm_text(device, RUNS, "")
    arrays, expected = operands(generation, RUNS, seed=6)
    operations = loading(gemm_source(generation), generation) + lower_module(parse(text))[1]
    run_words(operations, text, arrays, device)
    same(arrays[2], expected)


SMALL = """
module {{
  aie.device(npu2) {{
    %shim = aie.tile(0, 0)
    %tile = aie.tile(0, 2)
    %west = aie.tile(0, 3)
    %data = aie.buffer(%tile) {{sym_name = "data", address = 1024 : i32}} : memref<16xi32>
    %beside = aie.buffer(%west) {{sym_name = "beside", address = 1024 : i32}} : memref<16xi32>
    %gate = aie.lock(%tile, 0) {{init = 0 : i32, sym_name = "gate"}}
    {core}
  }}
}}
"""


def run_small(write_elf, source: str, **options):
    """A core that runs assembly text, checked by nobody."""
    name, file = write_elf(assemble(source, "aie2p", "small.s").elf())
    return emulate(SMALL.format(core=ELF_CORE.format(name)), [], file=file, **options)


def test_a_core_stores_in_its_own_memory_and_in_that_of_its_neighbour(write_elf):
    source = "movxm p0, #0x70400\nmovxm p1, #0x60404\nmovxm r0, #1234\nst r0, [p0, #4]\nst r0, [p1, #0]\ndone\n"
    result = run_small(write_elf, source)
    assert result.buffers["data"][1] == result.buffers["beside"][1] == 1234


def test_a_core_reaches_registers_of_its_tile_and_its_timer(write_elf):
    """Lock 0 lies at 0x1f000, 16 bytes before the next; a store writes in its fifth cycle."""
    source = """
        movxm p0, #0x1f000 ; mova r1, #3
        movxm p1, #0x70400
        rel #48, r1
        nop
        nop
        nop
        nop
        lda.tm r2, [p0, #0]
        st.tm r1, [p0, #16]
        mov l2, cntr
        mov.nb r7, ss
        nop
        nop
        nop
        nop
        mov l3, cntr
        lda.tm r3, [p0, #16]
        sub r8, r6, r4
        nop
        nop
        mov r9, srSS0
        nop
        nop
        st r2, [p1], #4
        st r3, [p1], #4
        st r8, [p1], #4
        st r9, [p1], #4
        nop
        nop
        nop
        nop
        done
"""
    result = run_small(write_elf, source)
    assert list(result.buffers["data"][:4]) == [3, 3, 6, 0]


def test_data_of_an_elf_lies_in_memory(write_elf):
    result = run_small(write_elf, ".section .data, 0x70408\n.word 7, 8\n.text\ndone\n")
    assert list(result.buffers["data"][:5]) == [0, 0, 7, 8, 0]


SLOTS = "nop\n" * 5
FAULTS = {
    "a load beyond the memories": (
        "movxm p0, #0x3fffc\nlda r0, [p0, #0]\n" + SLOTS,
        CoreError,
        r"core \(0, 2\): at 0x\w+: loads 4 bytes at 0x3fffc; data memory is from 0x40000 to 0x7ffff \(core.elf",
    ),
    "a misaligned vector": (
        "movxm p0, #0x70420\nvlda x0, [p0, #0]\n" + SLOTS,
        CoreError,
        "64 bytes at 0x70420, which is no multiple of 64",
    ),
    "a store where no core is": (
        "movxm p0, #0x50000\nst r0, [p0, #0]\n" + SLOTS,
        CoreError,
        "no core's memory to the west",
    ),
    "bytes that are no bundle": ("nop\n.byte 0xff, 0xff, 0xff, 0xff\n", CoreError, "unknown bundle at 0x2"),
    "an open form": (
        "vldb.fillx.512 r30, [p0, lf0, r24]",
        CoreError,
        "what VLDB_FILLX_512 does is open: how r30 spreads",
    ),
    "the end of the code": ("j #0x3ff0\n" + SLOTS, CoreError, "execution leaves program memory"),
    "no end": (
        "main: .p2align 4\nagain: j #again\n" + SLOTS,
        BudgetExceeded,
        r"no end after 5000 bundles \(core.elf, at 0x\w+, again \+",
    ),
    "a lock out of reach": ("mova r0, #-1\nacq #5, r0\ndone", CoreError, "lock 5 would be in memtile"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_faults_name_core_bundle_and_reason(write_elf, what):
    source, error, message = FAULTS[what]
    with pytest.raises(error, match=message):
        run_small(write_elf, source, budget=5000)


def test_a_blocked_core_is_told_with_lock_and_bundle(write_elf):
    source = "main: mova r0, #-1\nnop\nacq #48, r0\ndone\n"
    result = run_small(write_elf, source)
    assert "waits for lock gate" in result.warnings[0]
    assert ">= 1, which is 0" in result.warnings[0]
    assert "(core.elf, at 0x6, main + 0x6)" in result.warnings[0]


def test_files_that_are_no_program_are_refused(write_elf):
    text, (_, file) = SMALL.format(core=ELF_CORE.format("core.elf")), write_elf(b"no ELF")
    with pytest.raises(LoadError, match=r"design.mlir:\d+.*elf_file .*core.elf: no ELF"):
        emulate(text, [], file=file)
    write_elf(assemble("done", "aie2", "old.s").elf())
    with pytest.raises(LoadError, match="the program is for aie2, not for aie2p"):
        emulate(text, [], file=file)
    with pytest.raises(LoadError, match=r"gone.elf: No such file or directory; paths are relative to the design"):
        emulate(SMALL.format(core=ELF_CORE.format("gone.elf")), [], file=file)


def test_hazards_of_a_program_are_warned_of(write_elf):
    source = "movxm p0, #0x70400\nlda r0, [p0, #0]\nst r0, [p0, #4]\n" + "nop\n" * 8 + "done"
    assert "[machine-code]" in run_small(write_elf, source).warnings[0]
    assert run_small(write_elf, source, permissive=["machine-code"]).warnings == ()


def test_what_a_program_does_not_reach_is_not_its_own(write_elf):
    """Such as the end of another one in a composition's image, here a jump into a bundle."""
    jump = "j #8\n" + "nop\n" * 5
    assert "[machine-code]" in run_small(write_elf, f"done\n{jump}").warnings[0]
    assert run_small(write_elf, "done\n.p2align 4\nend: j #end\n" + "nop\n" * 5 + jump).warnings == ()


FLOATS = """movxm r0, #0x3f800000
movxm r3, #0x0000003c
vbcst.32 x0, r0
vbcst.16 x2, r1
vbcst.16 x3, r1
nop
vmov bmll0, x0
nop
nop
mova r2, #4
"""
STORED = "movxm p0, #0x70400\nvst bmll1, [p0, #0]\n" + "nop\n" * 8 + "done"


def test_a_sum_of_three_floats_stops_a_core_unless_that_is_permitted(write_elf):
    """What is assumed is told once; 1 + 1 + 2^-30 depends on the order."""
    one = FLOATS.replace("r3, #0x0000003c", "r1, #0x3080") + "movxm r3, #0x3c\nvmov bmll1, x0\nnop\nnop\n"
    sums = "vaddmac.f dm1, dm0, y1, y1, r3\n" + "nop\n" * 8
    with pytest.raises(CoreError, match="a sum whose rounding is not told") as stopped:
        run_small(write_elf, one + sums + STORED)
    assert stopped.value.__notes__ == ["[float-edges]"]
    (told,) = run_small(write_elf, one + sums + sums + STORED, permissive=["float-edges"]).warnings
    assert told.startswith("float-edges (permitted): a sum whose rounding is not told")


def test_an_approximation_is_told_once_and_known_by_the_result(write_elf):
    """tanh(0.5) is 0.4621, of which bf16 has 0.4629."""
    half = FLOATS.replace("r0, #0x3f800000", "r0, #0x3f000000")
    source = half + ("vtanh wl4, bmll0\n" + "nop\n" * 8) * 2 + STORED.replace("vst bmll1", "vst x4")
    with pytest.raises(CoreError, match=r"VTANH is an approximation here.*; `approximate` gives the nearest value"):
        run_small(write_elf, source)
    found = {}
    for how in ("nearest", "low", "high"):
        result = run_small(write_elf, source, approximate=how)
        assert result.warnings == ("approximate: VTANH, |e| <= 0.016, bits unpublished",)
        assert [row.form for row in result.approximated] == ["VTANH"]
        found[how] = int(result.buffers["data"].view(np.uint32)[0] & 0xFFFF)
    assert found == {"nearest": 0x3EED, "low": 0x3EE5, "high": 0x3EF5}
    with pytest.raises(ArgumentError, match="'up'; they are one of off, nearest, low, high"):
        run_small(write_elf, source, approximate="up")


def test_subnormal_floats_of_a_core_are_told_of_once(write_elf):
    sums = "vadd.f dm1, dm0, dm2, r2\n" + "nop\n" * 8
    source = FLOATS.replace("r0, #0x3f800000", "r0, #0x00400000") + sums + sums + STORED
    result = run_small(write_elf, source)
    same(result.buffers["data"], np.zeros(16, np.int32))
    assert result.warnings == ("machine code: subnormal floats are as AIE2 has them [subnormal-floats]",)


@pytest.mark.parametrize(("store", "distance"), [("st r0, [p0, #0]", 4), ("st.s8 r0, [p0, #0]", 10)])
def test_a_lock_that_is_given_before_a_store_has_written_is_warned_of(write_elf, store, distance):
    def warnings(gap: int) -> tuple[str, ...]:
        source = f"mova r0, #1\nmovxm p0, #0x70400\n{store}\n" + "nop\n" * (gap - 1) + "rel #48, r0\n"
        return run_small(write_elf, source + "nop\n" * 12 + "done").warnings

    assert warnings(distance) == ()
    (warning,) = warnings(distance - 1)
    assert "core (0, 2) gives a lock while 1 of its stores have not written yet" in warning
    assert warning.endswith("[early-release]")


def test_a_timed_run_gets_the_cycles_between_two_requests(write_elf):
    name, file = write_elf(gemm_elf("aie2p"))
    arrays, _ = operands("aie2p", RUNS, seed=5)
    text = gemm_text("npu2", RUNS, ELF_CORE.format(name))
    result = emulate(text, arrays, file=file, timing=TimingOptions())
    assert result.trace
    (profile,) = result.cores
    (party,) = (party for party in result.trace.parties if party.kind == "core")
    ran = [action for action in party.actions if action[0] == "run"]
    assert sum(cycles for _, cycles, *_ in ran) == profile.cycles
    assert sum(waits for _, _, waits, *_ in ran) == profile.conflicts
    assert all(cycles + waits == sum(took for _, took in parts) for _, cycles, waits, _, parts in ran)
    assert profile.bundles - profile.cycles == 1  # the bundle that waits for the next operands


def test_code_cannot_be_written_under_a_core_that_runs():
    text = gemm_text("npu2", 1, "")
    arrays, _ = operands("aie2p", 1, seed=1)
    operations = loading("mova r0, #-1\nnop\nacq #49, r0\ndone\n")
    with pytest.raises(RegisterAccessError, match="whose core runs: reset it first"):
        run_words([*operations, Write(CODE, 0)], text, arrays)
    with pytest.raises(RegisterAccessError, match="whose core has its program from the text"):
        run_words([Write(CODE, 0)], gemm_text("npu2", 1, "%core = aie.core(%tile) { aie.end }"), arrays)


def test_a_core_is_reset_and_runs_another_program():
    text = gemm_text("npu2", 1, "")
    arrays, _ = operands("aie2p", 1, seed=1)
    store = "movxm p0, #0x72400\nmovxm r0, #{}\nst r0, [p0, #{}]\nnop\nnop\nnop\nnop\nacq #49, r0\ndone\n"
    operations = [*loading(store.format(5, 0)), *loading(store.format(6, 4)), *loading("done")]
    result = run_words(operations, text, arrays)
    assert list(result.buffers["c"][:3]) == [5, 6, 0]


def test_an_elf_in_the_upstream_form_starts_calls_spills_and_copies(write_elf):
    result = run_small(write_elf, (SOURCES / "upstream_form.s").read_text())
    assert result.buffers["data"].tobytes()[:16] == b"thirteen byte\0\0\0"
    assert result.warnings == ()
    (profile,) = result.cores
    copied = next(share for share in profile.shares if share.name == "memcpy")
    assert copied.bundles == 13 * 14 + 6
    assert profile.conflicts == 0
