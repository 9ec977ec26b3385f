"""`bdforge lower`: listings within the screen, images, refusals in one sentence."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bdforge.array.images.image_build import NoCodeError
from bdforge.array.images.xclbin import pdis
from bdforge.array.mlir import MlirError
from bdforge.cli.commands import app
from bdforge.common.binary import ImageError
from support.cdo_vectors import VECTORS
from support.images import IMAGES

ROOT = Path(__file__).parents[2]


def lowered(*words, columns: int = 80):
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["lower", *map(str, words)])


@pytest.fixture
def design(tmp_path) -> Path:
    vector = VECTORS["npu2_core_elf"]
    (tmp_path / "one.elf").write_bytes(bytes.fromhex(vector.elf_files["one.elf"]))
    path = tmp_path / "design.mlir"
    path.write_text(vector.lowered)
    return path


@pytest.mark.parametrize("width", [40, 80])
def test_writes_are_listed_under_their_lines(width, monkeypatch):
    monkeypatch.chdir(ROOT / "examples/chain")
    result = lowered("chain.mlir", columns=width)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for part in ("chain.mlir:15 aie.lock Write core (0, 2) lock 0 = 1", "S2MM 0 queue = ", "core control = 1",
                 "slave South : 3", "from South : 3", "shim mux = south_3 1 (mask 0x00000c00)"):  # fmt: skip
        assert part in text, part


def test_an_image_is_written_with_cores_from_elfs(design, tmp_path):
    out = tmp_path / "x.pdi"
    result = lowered(design, "-o", out, "--without-code")
    assert result.exit_code == 0
    assert out.read_bytes() == IMAGES["pdi_core"]
    lowered(design, "-o", tmp_path / "x.xclbin", "--without-code", "--columns", 4)
    assert pdis((tmp_path / "x.xclbin").read_bytes()) == [IMAGES["pdi_core"]]


def test_cores_without_code_are_refused_in_one_sentence(design, tmp_path):
    result = lowered(design, "-o", tmp_path / "x.pdi")
    assert isinstance(result.exception, NoCodeError)
    assert "core (1, 3) has no machine code (no elf_file), so this is no image for silicon" in str(result.exception)
    assert not (tmp_path / "x.pdi").exists()


def test_what_is_missing_or_foreign_is_named(design, tmp_path):
    assert isinstance((error := lowered(design, "-o", tmp_path / "x.elf").exception), ImageError)
    assert "written as .cdo, .pdi, .xclbin" in str(error)
    for change, message in (
        (lambda elf: elf.unlink(), "No such file"),
        (lambda elf: elf.write_bytes(b"no"), "no ELF"),
        (lambda elf: elf.write_bytes(_for_aie2(IMAGES["core_elf_small"])), "the program is for aie2, not for aie2p"),
    ):
        change(design.parent / "one.elf")
        assert isinstance((error := lowered(design).exception), MlirError)
        assert "design.mlir:" in str(error)
        assert message in str(error)


def _for_aie2(elf: bytes) -> bytes:
    return elf[:36] + bytes([2]) + elf[37:]
