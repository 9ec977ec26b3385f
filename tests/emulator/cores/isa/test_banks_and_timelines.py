"""Exact cycles of machine code by name and bank, on the timeline of a timed run, and what may conflict there."""

import itertools
import json

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.array.emulator.timed import TimingOptions
from bdforge.array.emulator.timed.bank_conflicts import OWN
from bdforge.array.emulator.timed.time_tables import write_timeline
from bdforge.core import isa
from bdforge.core.exact.core_memory import WINDOW_BYTES, DataMemory
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.profile import PartMark, Parts, PartTimeline
from bdforge.core.exact.translated import Translated
from bdforge.core.isa.assembler import assemble
from support.differences import same
from support.machine_code_designs import gemm_elf, gemm_source, gemm_text, operands

PROGRAM = """
main:   movxm   p0, #0x70000            // own, bank 0
        movxm   p1, #0x74000            // own, bank 1
        movxm   p2, #0x4c000            // south, bank 3
body:   vlda    x0, [p0, #0] ; vldb x1, [p1, #0]
        vlda    x0, [p0, #0] ; vldb x1, [p0, #64]
        vlda    x0, [p2, #0]
        nop
tail:   st      r0, [p0, #4]
        nop
        nop
        nop
        nop
        nop
        nop
        done
"""
ELF_CORE = '%core = aie.core(%tile) { aie.end } {elf_file = "core.elf"}'


@pytest.mark.parametrize("executor", [Interpreter, Translated])
def test_parts_and_banks_are_counted_in_their_cycles(executor):
    program = assemble(PROGRAM)
    core = executor(
        isa.load("aie2p"), program.code[0][1], DataMemory([np.zeros(WINDOW_BYTES, np.uint8) for _ in range(4)])
    )
    parts = Parts({program.symbols[name]: name for name in ("main", "body", "tail")})
    core.watch(parts)
    list(core.run(100))
    assert core.conflicts == 1  # two loads from bank 0, sampled in cycle 8, after all of `body` has issued
    assert core.uses == [0, 0, 0, 1] + [0] * 8 + [4, 1, 0, 0]
    marks = core.marks()
    assert marks == [PartMark(0, 0, 1), PartMark(3, 0, 2), PartMark(7, 0, 3)]
    assert core.marks() == []
    took = PartTimeline(parts).took(marks, core.cycle, core.conflicts)
    assert [*took] == [("(no name)", 0, 0), ("main", 3, 0), ("body", 4, 0), ("tail", core.cycle - 7, 1)]


def timed(write, a_address: str, spans=None):
    """The GEMM of the tests with A at an address, in time."""
    source = gemm_source("aie2p").replace("A = 0x70400", f"A = {int(a_address) + 0x70000:#x}")
    file = write(assemble(source).elf())
    arrays, expected = operands("aie2p", 1, seed=4)
    text = gemm_text("npu2", 1, ELF_CORE).replace("address = 1024", f"address = {a_address}")
    result = emulate(text, arrays, file=file, timing=TimingOptions(spans=spans))
    same(arrays[2], expected)
    assert result.timing is not None
    return result, result.timing


@pytest.fixture
def write(tmp_path):
    """Writes core.elf beside the name of a design."""

    def write(data: bytes) -> str:
        (tmp_path / "core.elf").write_bytes(data)
        return str(tmp_path / "design.mlir")

    return write


def test_stalls_of_a_core_are_told_by_cause(write):
    for address, waits in (("1024", 512), ("32768", 0)):
        result, report = timed(write, address)
        (core,), (profile,) = report.cores, result.cores
        assert profile.conflicts == core.stalled.get(OWN, 0) == waits
        assert sum(cycles for what, cycles in core.stalled.items() if what.startswith("lock ")) > 0
        before = next(share.bundles for share in profile.shares if share.name == "main")  # the first operation
        assert core.busy_cycles == pytest.approx(profile.cycles - before)  # locks take their bundles and no more
        assert not core.conflicts  # nothing moves in these banks while the only product is made


def test_the_timeline_has_names_waits_and_locks_of_machine_code(write, tmp_path):
    spans = []
    result, report = timed(write, "1024", spans)
    mine = [span for span in spans if span.party == "core (0, 2)"]
    ran = {name: sum(s.end - s.start for s in mine if s.what == name) for name in ("loop", "last", "rows", "columns")}
    counts = {share.name: share.bundles for share in result.cores[0].shares}
    assert ran["loop"] == pytest.approx(counts["loop"] + 512)  # where A's tiles wait for B's
    assert ran["rows"] == pytest.approx(counts["rows"])
    assert any(span.waits for span in mine)
    assert {span.what.split()[0] for span in mine if " lock " in f" {span.what}"} >= {"take", "give", "lock"}
    for first, second in itertools.pairwise(mine):
        assert first.end <= second.start + 1e-6
    write_timeline(tmp_path / "t.json", spans, report.array_hz)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(event.get("args", {}).get("cycles", 0) for event in events if event["name"] == "loop") == pytest.approx(
        ran["loop"]
    )


def test_a_gemm_elf_runs_alike_with_and_without_time(write):
    file = write(gemm_elf("aie2p"))
    profiles = []
    for timing in (None, TimingOptions()):
        arrays, _ = operands("aie2p", 1, seed=4)
        (profile,) = emulate(gemm_text("npu2", 1, ELF_CORE), arrays, file=file, timing=timing).cores
        profiles.append((profile.cycles, profile.bundles, profile.conflicts))
    assert profiles[0] == profiles[1]
