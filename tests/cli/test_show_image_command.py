"""`bdforge show` of images: partition, kernels, tiles, BDs and routes in tables."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bdforge.array.images.cdo import cdo
from bdforge.array.images.image_build import image
from bdforge.array.lower.array_state import StateError
from bdforge.array.show import ShowError
from bdforge.cli.commands import app
from bdforge.common.binary import ImageError
from bdforge.devices.txn_format.operations import Write
from support.cdo_vectors import VECTORS
from support.images import IMAGES


def shown(*words, columns: int = 80):
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["show", *map(str, words)])


@pytest.fixture
def whole(tmp_path) -> Path:
    path = tmp_path / "whole.xclbin"
    path.write_bytes(image(VECTORS["npu2_whole"].configuration(), ".xclbin"))
    return path


def test_an_xclbin_is_shown_within_the_screen(whole):
    result = shown(whole)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for line in ("columns of partitions 8", "kernel MLIR_AIE:MLIRAIE, id 0x901", "memtile (0, 1) 4 6 6",
                 "core (0, 2) enabled 64 40 16 2 2", "memtile (0, 1) 0: 2, 2: 2", "core (0, 2) program 0x0 64",
                 "memtile (0, 1) MM2S 1 24 1", "(0, 0) DMA : 0 (0, 1) DMA : 0",
                 "(0, 0) TileControl : 0 15 (0, 0) South : 0"):  # fmt: skip
        assert line in lines, line
    assert "length 256, next 1, use_next 1, address 131072, d0_wrap" in lines[lines.index("BDs, in words") + 7]


def test_other_kinds_are_told_by_their_first_bytes(tmp_path):
    for name, text in (("pdi_core", "core (1, 2) data 0x500 12"), ("full_elf_small", "core (0, 2) 3: 5"),
                       ("xclbin_small", "time 2026-11-21 22:13:30 UTC")):  # fmt: skip
        (tmp_path / name).write_bytes(IMAGES[name])
        assert text in [" ".join(line.split()) for line in shown(tmp_path / name).stdout.splitlines()]
    (tmp_path / "cascade.cdo").write_bytes(cdo(VECTORS["npu2_cascade"].configuration().operations))
    assert "core (2, 2) cascade North to East" in " ".join(shown(tmp_path / "cascade.cdo", columns=120).stdout.split())


def test_what_cannot_be_shown_is_said(whole, tmp_path):
    assert isinstance(shown(whole, "-o", tmp_path / "x.png").exception, ShowError)
    (tmp_path / "cut.xclbin").write_bytes(whole.read_bytes()[:900])
    assert isinstance(shown(tmp_path / "cut.xclbin").exception, ImageError)
    (tmp_path / "odd.cdo").write_bytes(cdo([Write(0x00036000, 5)]))
    error = shown(tmp_path / "odd.cdo").exception
    assert isinstance(error, StateError)
    assert str(error) == "shim (0, 0) register 0x36000: no rule knows what it is; 0x5 is written to it"
