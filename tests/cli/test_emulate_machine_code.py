"""`bdforge emulate --break` and `--profile` on a GEMM of machine code."""

import numpy as np
import pytest

from support.differences import same
from support.machine_code_designs import gemm_elf, gemm_source, gemm_text, operands

CORE = '%core = aie.core(%tile) { aie.end } {elf_file = "core.elf"}'
RUNS = 2


@pytest.fixture
def emulated(run, tmp_path):
    """Runs the design with options."""
    (tmp_path / "design.mlir").write_text(gemm_text("npu2", RUNS, CORE))
    (tmp_path / "core.elf").write_bytes(gemm_elf("aie2p"))
    files = []
    for i, array in enumerate(operands("aie2p", RUNS, seed=1)[0]):
        np.save(tmp_path / f"{i}.npy", array)
        files += ["--arg", f"{i}.npy"]
    return lambda *options: run("emulate", "design.mlir", *files, *options)


def test_a_profile_tells_functions_slots_macs_and_waits(emulated):
    code, out, _ = emulated("--profile")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if "%" in line}
    assert "core (0, 2), core.elf: 10347 bundles (emulated)" in out
    assert int(rows["loop"][0]) == 7 * 8 * 64 * RUNS  # seven bundles, eight steps of K, 64 tiles
    assert rows["last"][-1] == "184.2"  # 1024 of 2846 bundles make 512 MACs each
    assert "waited 1024 cycles for its own banks" in out  # A and B lie in one bank
    assert "Acquire" in out.splitlines()[-2]


def test_a_breakpoint_shows_what_has_changed_since_the_last_look(emulated):
    code, out, _ = emulated("--break", "0,2:rows")
    looks = out.split("core (0, 2) (core.elf, at 0x60, rows + 0x0), cycle ")[1:]
    assert code == 0
    assert len(looks) == 8 * RUNS
    assert looks[0].startswith("18: movxm\tp1, #463872")
    assert "r5     0x8" in looks[0]
    assert "le " in looks[0]
    assert "le " not in looks[1]
    assert [line.split() for line in looks[1].splitlines() if line.startswith("    r")] == [["r5", "0x7"]]


def test_a_breakpoint_by_address_is_one_by_name(emulated):
    assert emulated("--break", "0,2:0x60")[1] == emulated("--break", "0,2:rows")[1]


def test_looks_end_before_they_fill_the_screen(emulated):
    assert "    no more than 32 are shown" in emulated("--break", "0,2:last")[1]


def test_a_reader_who_leaves_is_no_fault_of_a_core(emulated, monkeypatch):
    """As in `bdforge emulate ... --break 0,2:rows | head`."""

    def gone(text: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("bdforge.cli.machine_code.say", gone)
    code, _, err = emulated("--break", "0,2:rows")
    assert (code, err) == (1, "")  # as click ends commands whose reader has gone


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("rows", "'rows' is no breakpoint: write COLUMN,ROW:ADDRESS or COLUMN,ROW:NAME"),
        ("0,2:nowhere", "no name 'nowhere' is in core.elf, at which core (0, 2) should be looked at"),
    ],
)
def test_places_that_are_none_are_named(emulated, place, message):
    code, _, err = emulated("--break", place)
    assert code != 0
    assert message in err


def test_a_program_takes_names_from_a_design_and_runs_in_it(run, tmp_path):
    text = gemm_text("npu2", 1, "%core = aie.core(%tile) { aie.end }")
    (tmp_path / "design.mlir").write_text(text)
    source = gemm_source("aie2p").replace("0x70400", "a").replace("0x71400", "b").replace("= 0x72400", "= c")
    for number, lock in enumerate(("A_FREE", "A_FULL", "B_FREE", "B_FULL", "C_FREE", "C_FULL"), 48):
        source = source.replace(f"{lock} = {number}", f"{lock} = FIRST + {number - 48}")
    (tmp_path / "gemm.s").write_text(source)
    asm = ("asm", "gemm.s", "-o", "gemm.elf", "--design", "design.mlir", "--core", "0,2")
    assert run(*asm)[0] == 2  # FIRST is not defined
    assert run(*asm, "--define", "FIRST=48")[0] == 0
    arrays, expected = operands("aie2p", 1, seed=2)
    files = []
    for i, array in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", array)
        files += ["--arg", f"{i}.npy"]
    for elf in ("gemm.elf", "0,2=gemm.elf"):
        assert run("emulate", "design.mlir", *files, "--elf", elf, "--out", "after", "--force")[0] == 0
        same(np.load(tmp_path / "after" / "2.npy"), expected)


def test_a_run_of_an_image_tells_what_each_core_did(run, tmp_path):
    text = gemm_text("npu2", RUNS, CORE)
    (tmp_path / "design.mlir").write_text(text)
    (tmp_path / "core.elf").write_bytes(gemm_elf("aie2p"))
    for i, array in enumerate(operands("aie2p", RUNS, seed=1)[0]):
        np.save(tmp_path / f"{i}.npy", array)
    assert run("lower", "design.mlir", "-o", "design.pdi")[0] == 0
    assert run("insts", "encode", "design.mlir", "-o", "insts.bin")[0] == 0
    files = [part for i in range(3) for part in ("--arg", f"{i}.npy")]
    code, out, _ = run("emulate", "design.pdi", "--insts", "insts.bin", *files)
    row = next(line for line in out.splitlines() if "core (0, 2)" in line)
    assert code == 0
    assert row.split()[3:7] == ["10347", str(64**3 * RUNS), f"{64**3 * RUNS / 10347:.1f}", "1024"]
    assert "Acquire" in row
