"""What designs take of a tile, counted in their texts another way: by regular expressions."""

import re

import pytest

from bdforge.cli.step_resources import resource_table
from bdforge.runtime import BuiltDesign
from support.coded_folders import SMALL, coded

BYTES = {"i8": 1, "bf16": 2, "i32": 4, "f32": 4}


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> list[BuiltDesign]:
    folder = tmp_path_factory.mktemp("built")
    return [coded(folder, name) for name in SMALL]


def most(text: str, rows: set[str]) -> tuple[int, int, int]:
    """Tiles of these rows; bytes of buffers and locks of those that have most."""
    tiles = [tile for tile, row in re.findall(r"(%\w+) = aie\.tile\(\d+, (\d+)\)", text) if row in rows]
    taken, locks = dict.fromkeys(tiles, 0), dict.fromkeys(tiles, 0)
    for tile, shape, kind in re.findall(r"aie\.buffer\((%\w+)\).*: memref<([\dx]+)x(\w+)>", text):
        if tile in taken:
            taken[tile] += eval(shape.replace("x", "*")) * BYTES[kind]
    for tile in re.findall(r"aie\.lock\((%\w+), ", text):
        if tile in locks:
            locks[tile] += 1
    return len(tiles), max(taken.values()), max(locks.values())


@pytest.mark.slow
def test_each_design_has_its_most_of_all(designs: list[BuiltDesign]):
    *rows, limits = zip(*(column.cells for column in resource_table(designs).columns), strict=True)
    for design, row in zip(designs, rows, strict=True):
        name, cores, code, core_bytes, core_locks, _, memtile_bytes, memtile_locks, _ = map(str, row)
        stack = max(map(int, re.findall(r"stack_size = (\d+)", design.mlir)))
        count, of_buffers, locks = most(design.mlir, {"2", "3", "4", "5"})
        assert (name, int(cores), int(core_bytes), int(core_locks)) == (design.name, count, of_buffers + stack, locks)
        assert (int(memtile_bytes), int(memtile_locks)) == most(design.mlir, {"1"})[1:]
        assert 0 < int(code) < 16384
    assert limits[2:] == ("16384", "65536", "16", "16", "524288", "64", "48")
