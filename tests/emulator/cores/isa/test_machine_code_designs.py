"""Whole designs whose cores run machine code: names of the design in programs, and a GEMM on several cores."""

import pytest

from bdforge.array.core_bodies.core_program import core_symbols
from bdforge.array.emulator import emulate
from bdforge.array.emulator.errors import ArgumentError
from bdforge.array.emulator.timed import TimingOptions
from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.core.isa.assembler import assemble
from bdforge.operators.gemm import GemmProblem
from support.array_text import buffer, lock, module, tile
from support.differences import same
from support.examples import example

GEMM = example("machine_code/gemm.py")
SMALL = {
    "kind": "gemm",
    "types": {"a": "int8", "b": "int8", "c": "int32"},
    "array": {"device": "npu2", "rows": 2, "columns": 2},
    "tile": {"m": 16, "k": 24, "n": 32},
    "buffers": {"k_mt": 48, "c_buffers": 1},
    "problems": [{"name": "odd", "M": 37, "K": 100, "N": 90}],
}

NAMES = module(
    "npu2", *(tile(*place) for place in ((1, 1), (1, 2), (0, 3), (1, 3), (2, 3))),
    *(buffer(name, at, 16, address=address) for name, at, address in (
        ("m", "11", 0), ("a", "12", 1024), ("b", "03", 2048), ("core_1_3_c", "13", 4096), ("d", "23", 0)
    )),
    lock("la", "12", 2), lock("lb", "03", 3), lock("core_1_3_lc", "13", 4),
)  # fmt: skip


def test_programs_know_buffers_and_locks_that_their_core_reaches():
    (device,) = (op for op in parse(NAMES).walk() if isinstance(op, DeviceOp))
    own = {"c": 0x71000, "core_1_3_c": 0x71000, "lc": 48 + 4, "core_1_3_lc": 48 + 4}
    assert core_symbols(device, 1, 3) == own | {"a": 0x40400, "b": 0x50800, "la": 2, "lb": 16 + 3}
    assert core_symbols(device, 1, 2) == {"a": 0x70400, "la": 48 + 2, "core_1_3_c": 0x61000, "core_1_3_lc": 32 + 4}


@pytest.mark.daily("options0")
@pytest.mark.parametrize(
    "options", [{"timing": TimingOptions()}, {"schedule": "random", "seed": 5, "capacity": 0, "poison": True}]
)
def test_a_gemm_on_cores_of_machine_code_equals_numpy(options):
    done = GEMM.run(GEMM.plan(SMALL), GemmProblem(37, 100, 90), 3, **options)
    same(done.c, done.expected)
    assert done.result.warnings == ()
    # Steps of K, of 24, are padded to two; 2 x 2 output tiles of 16 x 32, one of them padding.
    steps, tiles = 6, 2 * 2
    assert [core.macs for core in done.result.cores] == [tiles * steps * 16 * 32 * 24] * 4
    if (report := done.result.timing) is not None:
        for core, profile in zip(report.cores, done.result.cores, strict=True):
            worked = core.busy["core program"]
            assert profile.cycles + profile.conflicts - 40 < worked <= profile.cycles + profile.conflicts


def test_an_elf_takes_the_place_of_a_body(tmp_path):
    (tmp_path / "store.elf").write_bytes(assemble("movxm p0, #0x70400\nmovxm r0, #7\nst r0, [p0, #0]\ndone\n").elf())
    text = """module { aie.device(npu2) { %tile = aie.tile(0, 2)
        %data = aie.buffer(%tile) {sym_name = "data", address = 1024 : i32} : memref<16xi32>
        %core = aie.core(%tile) { aie.end } } }"""
    for elfs in ({}, {(0, 2): tmp_path / "store.elf"}, {}):  # each run by itself, whatever the one before it was given
        assert emulate(text, elfs=elfs).buffers["data"][0] == 7 * len(elfs)
    with pytest.raises(ArgumentError, match=r"core \(0, 3\), but the design has no aie.core there"):
        emulate(text, elfs={(0, 3): tmp_path / "store.elf"})
