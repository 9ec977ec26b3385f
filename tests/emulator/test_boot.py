"""Arrays that boot from images: the same results as from the text, and what an image alone can do."""

from types import SimpleNamespace

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import CoreError, Deadlock, LoadError
from bdforge.array.emulator import core_machine as machine
from bdforge.array.images.cdo import cdo
from bdforge.array.images.image_build import image, program_of
from bdforge.array.lower import configuration
from bdforge.devices import mlir_device_named
from bdforge.devices.txn_format.operations import Write
from support.decoded import device_of
from support.differences import same
from support.images import IMAGES
from support.small_designs import loopback
from support.txn_vectors import encode_mlir

DATA = np.random.default_rng(8).integers(-(2**31), 2**31, 96, np.int32)


def built(text: str, suffix: str = ".pdi") -> bytes:
    """A text's own image."""
    return image(configuration(device_of(text), program_of), suffix, bare=True)


@pytest.mark.parametrize("device", ["npu1", "npu2_3col"])
@pytest.mark.parametrize("suffix", [".cdo", ".pdi", ".xclbin"])
def test_an_image_and_words_do_what_the_text_does(device, suffix):
    text = loopback(device=device, send="0, 32, [<size = 8, stride = 1>, <size = 4, stride = 8>]")
    b, booted = np.zeros((2, 96), np.int32)
    bdforge.emulate(text, [DATA, b])
    result = bdforge.emulate("", [DATA, booted], image=built(text, suffix), instructions=encode_mlir(text))
    assert b.any()
    same(b, booted)
    assert result.warnings == ()


def test_the_image_counts_and_not_the_text_beside_it():
    straight, turned = loopback(), loopback(send="0, 32, [<size = 8, stride = 1>, <size = 4, stride = 8>]")
    b, booted = np.zeros((2, 96), np.int32)
    bdforge.emulate(turned, [DATA, b])
    bdforge.emulate(straight, [DATA, booted], image=built(turned))
    same(b, booted)


def test_messages_name_registers_where_there_is_no_text():
    text = loopback(fill_release="aie.use_lock(%free, Release, 1)")
    where = r"MM2S 0 waits for lock \d of memtile \(0, 1\) >= 1, .* \(memtile \(0, 1\) BD \d+\)"
    with pytest.raises(Deadlock, match=where):
        bdforge.emulate("", [DATA, np.zeros(96, np.int32)], image=built(text), instructions=encode_mlir(text))


def test_the_program_of_a_foreign_image_runs_as_machine_code():
    with pytest.raises(CoreError, match=r"core \(1, 2\): unknown bundle at 0x0, .* \(program memory, at 0x0\)"):
        bdforge.emulate("", image=IMAGES["pdi_core"], device="npu2")


def test_cores_of_a_foreign_image_without_a_program_are_named():
    result = bdforge.emulate("", image=IMAGES["xclbin_small"], device="npu2")
    assert "core (0, 2) is enabled but has no program: it stands still" in result.warnings


@pytest.mark.parametrize(
    ("data", "device", "message"),
    [
        (cdo([Write(0x0023_6000, 1)]), "npu2", r"core \(0, 2\) register 0x36000: no rule knows .*; 0x1 is written"),
        (cdo([Write(0x2000_0000 + 0x1D000, 1)]), "npu2", r"shim \(16, 0\) is configured: "),
        (cdo([Write(0x1D000, 1)]), None, "an image does not tell its array: name the device"),
    ],
    ids=["unknown register", "beyond the array", "no device"],
)
def test_images_that_cannot_boot_are_refused(data, device, message):
    with pytest.raises(LoadError, match=message):
        bdforge.emulate("", image=data, device=device)


def header(generation: object, columns: int, rows: int, *, knows: bool = True) -> SimpleNamespace:
    """A decoded stream without operations, made for such an array."""
    made_for = SimpleNamespace(generation=generation, columns=columns, rows=rows, knows_device=knows)
    return SimpleNamespace(header=made_for, notes=("a note",), operations=())


@pytest.mark.parametrize(
    ("device", "columns", "knows", "named"),
    [("npu1", None, True, "npu1"), ("npu1", 8, True, "npu1"), (None, 8, True, "npu2"), (None, 8, False, None),
     (None, 99, True, None), (None, None, True, None), ("npu9", None, True, None)],
)  # fmt: skip
def test_an_image_alone_is_for_the_device_that_is_named_or_the_streams(device, columns, knows, named, monkeypatch):
    generation = mlir_device_named("npu2").generation.instruction_generation
    monkeypatch.setattr(machine, "decode", lambda _: header(generation, columns, 6, knows=knows))
    words = None if columns is None else b""
    if named is not None:
        assert machine.empty_design(device, words) == f"aie.device({named}) {{\n}}\n"
        return
    with pytest.raises(LoadError, match="an image does not tell its array: name the device"):
        machine.empty_design(device, words)
