"""Where aiecc put the buffers: read from made-up working folders of both forms, compared with the plan."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from bdforge.devices import device_named
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, plan_gemm, spec_from
from bdforge.runtime.toolchain.read_back import ReadBack, differences, read_back
from support.built_designs import spec_content


@pytest.fixture(scope="module")
def plan() -> GemmPlan:
    return plan_gemm(spec_from(spec_content(16, 16, 32, rows=1, columns=2), "small"), device_named("strix_halo"))


def with_addresses(folder: Path, text: str) -> Path:
    """A working folder as aiecc leaves it, below it the text with addresses."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main_input_with_addresses.mlir").write_text(text)
    return folder


def with_programs(folder: Path, symbols: Mapping[tuple[int, int], Mapping[str, int]]) -> Path:
    """The same with nothing but core programs; `symbols` as their cores see them."""
    folder.mkdir(parents=True, exist_ok=True)
    for (column, row), told in symbols.items():
        lines = "".join(f".globl {name}\n.set {name}, {value}\n" for name, value in told.items())
        output = folder / f"main_core_{column}_{row}.elf"
        words = ["g++", "-x", "assembler", "-c", "-", "-o", str(output)]
        subprocess.run(words, input=lines, text=True, check=True)
    return folder


def test_a_text_with_all_addresses_is_read_and_agrees(plan, tmp_path):
    found = read_back(with_addresses(tmp_path / "small.mlir.prj", render(plan, [])), plan.design)
    assert found is not None
    assert found.source == "input_with_addresses.mlir"
    assert found.buffers == plan.design.buffer_addresses
    assert differences(found, plan.design) == ""


def test_moved_buffers_of_cores_and_memtiles_are_named_with_both_addresses(plan, tmp_path):
    """As the default scheme moves them: up by their own size."""
    text = render(plan, [])
    rtp, slab = plan.design.buffer_addresses["core_1_2_rtp"], plan.design.buffer_addresses["mem_0_a0_ping"]
    for name, at, size in (("core_1_2_rtp", rtp, 64), ("mem_0_a0_ping", slab, 256)):
        kept = f'{{address = {at} : i32, sym_name = "{name}"}}'
        assert text.count(kept) == 1
        text = text.replace(kept, f'{{address = {at + size} : i32, sym_name = "{name}"}}')
    found = read_back(with_addresses(tmp_path, text), plan.design)
    assert found is not None
    assert differences(found, plan.design).splitlines() == [
        f"  memtile (0, 1): mem_0_a0_ping lies at {slab + 256:#x}, the text says {slab:#x}",
        f"  core (1, 2): core_1_2_rtp lies at {rtp + 64:#x}, the text says {rtp:#x}",
    ]


@pytest.mark.parametrize(("moved", "lines", "last"), [(1, 1, ""), (12, 12, ""), (13, 13, "  and 1 more")])
def test_twelve_moved_buffers_are_told_one_by_one(plan, moved: int, lines: int, last: str):
    names = list(plan.design.buffer_addresses)[:moved]
    found = ReadBack("made up", {name: plan.design.buffer_addresses[name] + 4 for name in names})
    told = differences(found, plan.design).splitlines()
    assert len(told) == lines
    assert told[-1] == last if moved > 12 else names[-1] in told[-1]


def seen_by_cores(plan: GemmPlan) -> dict[tuple[int, int], dict[str, int]]:
    """Symbols of core programs: a core's own memory starts at 0x70000."""
    return {
        (tile.column, tile.row): {b.name: 0x70000 + (b.address or 0) for b in tile.buffers}
        for tile in plan.design.tiles
        if tile.core
    }


def test_without_such_a_text_the_symbols_of_the_programs_are_read(plan, tmp_path):
    symbols = seen_by_cores(plan)
    symbols[0, 2] |= {"core_1_2_rtp": 0x50000, "_main_init": 0x100}  # a neighbour's, and a function
    found = read_back(with_programs(tmp_path, symbols), plan.design)
    assert found is not None
    assert found.source == "core_*_*.elf"
    assert found.buffers == {n: a for n, a in plan.design.buffer_addresses.items() if n.startswith("core_")}
    assert differences(found, plan.design) == ""


def test_a_symbol_elsewhere_is_named(plan, tmp_path):
    symbols = seen_by_cores(plan)
    symbols[1, 2]["core_1_2_rtp"] = 0x70000 + 57344
    found = read_back(with_programs(tmp_path, symbols), plan.design)
    assert found is not None
    assert differences(found, plan.design) == "  core (1, 2): core_1_2_rtp lies at 0xe000, the text says 0x1000"


@pytest.mark.parametrize("text", ["", "module {", "module {\n  aie.device(npu2) {\n  }\n}\n"])
def test_a_text_that_says_nothing_is_passed_over_for_the_programs(plan, tmp_path, text):
    assert read_back(with_addresses(tmp_path, text), plan.design) is None
    found = read_back(with_programs(tmp_path, seen_by_cores(plan)), plan.design)
    assert found is not None
    assert found.source == "core_*_*.elf"


def test_a_text_that_leaves_one_buffer_open_is_passed_over_for_the_programs(plan, tmp_path):
    """What it says of the others is not enough: the open buffer would pass for one that lies right."""
    text, address = render(plan, []), plan.design.buffer_addresses["core_1_2_rtp"]
    kept = f'{{address = {address} : i32, sym_name = "core_1_2_rtp"}}'
    assert text.count(kept) == 1
    folder = with_addresses(tmp_path, text.replace(kept, '{sym_name = "core_1_2_rtp"}'))
    assert read_back(folder, plan.design) is None, "a text without the address of core_1_2_rtp was believed"
    found = read_back(with_programs(folder, seen_by_cores(plan)), plan.design)
    assert found is not None
    assert found.source == "core_*_*.elf"


def test_an_empty_folder_none_at_all_and_stripped_programs_say_nothing(plan, tmp_path):
    assert read_back(tmp_path, plan.design) is None
    assert read_back(tmp_path / "absent", plan.design) is None
    (tmp_path / "core_0_2.elf").write_bytes(b"\x7fELF but no more")
    (tmp_path / "core_1_2.elf").write_bytes(b"work")
    assert read_back(with_programs(tmp_path / "stripped", {(0, 2): {}}), plan.design) is None
    assert read_back(tmp_path, plan.design) is None
