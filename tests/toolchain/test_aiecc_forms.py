"""Which text and which options a version of aiecc gets; versions and dates: mlir-aie's releases."""

from pathlib import Path

import pytest

from bdforge.array.mlir import Era
from bdforge.runtime.toolchain import Tool, find_aiecc
from bdforge.runtime.toolchain.aiecc import aiecc_fault, aiecc_note, form_of, form_of_version, version_of_text
from bdforge.runtime.toolchain.pins import PEANO, peano_fault, peano_note

FORMS = {
    "0.0.1.2026030504+5ff2ab9": Era.MARCH,
    "1.3.1": Era.MARCH,
    "1.3.4": Era.MARCH,
    "1.3.5.dev4+g0123456": Era.MARCH,
    "1.3.5.dev5+g627e3ef": None,
    "1.3.5.dev52+g660e1a0": None,
    "1.3.5": None,
    "1.3.5.dev59+g0123456": None,
    "1.3.5.dev60+g398f7f7": Era.MODERN,
    "1.3.6": Era.MODERN,
    "1.4.0": Era.MODERN,
    "1.4.2": Era.MODERN,
    "1.4.4.dev18+gf5196d8": Era.MODERN,
    "2.0.0": Era.MODERN,
}


def command(version: str) -> list[str]:
    form = form_of_version(version)
    assert form is not None
    return form.command("aiecc", "peano", "d.mlir", "d.xclbin", form.insts_pattern)


@pytest.mark.parametrize("version", FORMS)
def test_a_version_tells_the_form(version):
    form = form_of_version(version)
    assert form is not None
    assert form.era is FORMS[version]


WORDS = {
    "1.3.4": "aiecc --no-xchesscc --no-xbridge --no-compile-host --peano peano --tmpdir=d.mlir.prj "
    "--alloc-scheme=basic-sequential --aie-generate-xclbin --xclbin-name=d.xclbin --aie-generate-npu-insts "
    "--npu-insts-name=insts_{1}.bin d.mlir",
    "1.4.0": "aiecc --no-xchesscc --no-xbridge --peano peano --tmpdir=d.mlir.prj --alloc-scheme=basic-sequential "
    "--get-xclbin --xclbin-name=d.xclbin --get-npu-insts --npu-insts-name=insts_{0}.bin d.mlir",
    "1.4.1": "aiecc --peano peano --tmpdir=d.mlir.prj --alloc-scheme=basic-sequential --get-xclbin "
    "--xclbin-name=d.xclbin --get-npu-insts --npu-insts-name=insts_{0}.bin d.mlir",
}
SAME_WORDS = {
    "0.0.1.2026030504+5ff2ab9": "1.3.4", "1.3.5": "1.3.4", "1.3.5.dev4": "1.3.4", "1.3.5.dev59": "1.3.4",
    "1.3.5.dev60": "1.4.0", "1.3.6": "1.4.0", "1.4.1.dev3+gabc": "1.4.1", "2.0.0": "1.4.1",
}  # fmt: skip


@pytest.mark.parametrize("version", [*WORDS, *SAME_WORDS])
def test_each_version_is_called_by_these_words(version: str):
    """Without a pattern for them, instruction words are not asked for."""
    assert " ".join(command(version)) == WORDS[SAME_WORDS.get(version, version)]
    form = form_of_version(version)
    assert form is not None
    assert not any("insts" in word for word in form.command("aiecc", "peano", "d.mlir", "d.xclbin", None))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1.4.2", (1, 4, 2, None)), ("aiecc 1.4.2 (a build)", (1, 4, 2, None)), ("1.3.5.dev0", (1, 3, 5, 0)),
        ("1.3.5.dev52+g660e1a0", (1, 3, 5, 52)), ("0.0.1.2026030504+5ff2ab9", (0, 0, 1, None)),
        ("10.20.30", (10, 20, 30, None)), ("1.4", None), ("LLVM version 22.0.0git", None), ("llvm 1.4.2", None),
        ("", None), ("v 1.4.2.dev12", (1, 4, 2, 12)),
    ],
)  # fmt: skip
def test_a_version_is_read_of_wheels_names_and_of_what_tools_print(text: str, found):
    assert version_of_text(text) == found


def test_names_of_instruction_words_are_those_that_aiecc_fills_in():
    march, later = form_of_version("1.3.4"), form_of_version("1.4.3")
    assert march is not None
    assert later is not None
    assert march.written_name("insts_M_1.bin") == "insts_M_1.bin"
    assert later.written_name("insts_M_1.bin") == "insts_main_M_1.bin"
    assert later.written_name("d.xclbin") == "d.xclbin"


def aiecc(folder: Path, version: str, text: str = "") -> Tool:
    path = folder / "bin" / "aiecc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || echo "{text}"\n')
    path.chmod(0o755)
    return find_aiecc({"MLIR_AIE_INSTALL_DIR": str(folder), "PATH": "/usr/bin:/bin"})


def test_without_a_version_the_help_text_tells(tmp_path):
    old = aiecc(tmp_path / "old", "LLVM (http://llvm.org/):", "  --aie-generate-xclbin  make one")
    assert form_of(old).era is Era.MARCH
    new = aiecc(tmp_path / "new", "LLVM (http://llvm.org/):", "  --alloc-scheme=<scheme>")
    assert (form_of(new).era, form_of(new).alloc_scheme) == (Era.MODERN, True)
    assert form_of(new, Era.MARCH).get_options is False


def test_newer_tools_get_the_scheme_only_where_they_know_it(tmp_path):
    assert not form_of(aiecc(tmp_path / "without", "1.4.5")).alloc_scheme
    assert form_of(aiecc(tmp_path / "with", "1.4.5", "--alloc-scheme")).alloc_scheme
    assert form_of(aiecc(tmp_path / "sure", "1.4.3")).alloc_scheme
    unsure = form_of(aiecc(tmp_path / "unsure", "1.4.4"))
    assert not unsure.alloc_scheme
    assert not any("alloc-scheme" in word for word in unsure.command("aiecc", "peano", "d.mlir", "d.xclbin", None))


def test_a_wish_decides_the_text_and_not_the_options(tmp_path):
    form = form_of(aiecc(tmp_path, "1.4.2"), Era.MARCH)
    assert (form.era, form.get_options) == (Era.MARCH, True)


def test_no_aiecc_gets_the_text_of_march():
    assert form_of(Tool("aiecc", None, "", (), "")).era is Era.MARCH


def test_an_unpacked_wheel_tells_its_version(tmp_path):
    tool = aiecc(tmp_path / "mlir_aie", "LLVM (http://llvm.org/):")
    assert tool.version == "LLVM (http://llvm.org/):"
    info = tmp_path / "mlir_aie-1.4.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mlir_aie\nVersion: 1.4.2\n")
    assert aiecc(tmp_path / "mlir_aie", "LLVM (http://llvm.org/):").version == "1.4.2"


def test_notes_tell_form_and_age(tmp_path):
    assert aiecc_note(aiecc(tmp_path, "1.4.2")) == "gets the 1.4 form by version 1.4.2"
    assert aiecc_note(aiecc(tmp_path, "1.4.5")) == "gets the 1.4 form by version 1.4.5"
    assert "newer than 1.4.5" in aiecc_note(aiecc(tmp_path, "1.4.6"))
    assert "newer than 1.4.5" in aiecc_note(aiecc(tmp_path, "1.5.0"))
    mixed = aiecc(tmp_path, "1.3.5.dev52+g660e1a0")
    assert aiecc_note(mixed) == ""
    assert "reads neither form of the dialect" in (aiecc_fault(mixed) or "")
    assert aiecc_fault(aiecc(tmp_path, "1.3.4")) is None


@pytest.mark.parametrize(
    ("stamp", "why"),
    [
        ("21.0.0.2026051501+f4933ef7", None),
        ("21.0.0.2026051601+55604435", "assertion"),
        ("21.0.0.2026062301+cb664e8c", None),
        ("21.0.0.2026062401+fdf257de", "wrong code"),
        (PEANO, None),
        ("22.0.0.2026082101+f3081197", "table look-up"),
        ("22.0.0.2026090201+a36c62b9", None),
        ("clang version 20.0.0", None),
        *((f"21.0.0.{stamp}+0", None) for stamp in (2026051600, 2026062400, 2026070800, 2026082100, 2026082102)),
        ("21.0.0.2026062300+0", "assertion"),
        ("21.0.0.2026070799+0", "wrong code without a word"),
    ],
)
def test_bad_builds_of_peano_are_known(stamp, why):
    fault = peano_fault(stamp)
    assert fault is None if why is None else why in str(fault), f"{stamp}: {fault}"


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("21.0.0.2026071501+0123456", "no report of this build was read"),
        (PEANO, "mlir-aie's pin of August 2026"),
        ("22.0.0.2026071501+0123456", "stack frames of 22.x need 960 to 1216 bytes"),
        ("22.0.0.2026090201+a36c62b9", "used with mlir_aie 1.4.3.dev55 by mlir-air"),
        ("22.1.0", "stack frames of 22.x"),
    ],
)
def test_what_is_known_of_a_build_of_peano_is_noted(version: str, note: str):
    assert peano_note(version).startswith(note)
    assert peano_note("21.1.0") == ""


@pytest.mark.parametrize(
    ("help_text", "wanted", "get_options", "known_by"),
    [
        ("--aie-generate-xclbin", None, False, "its --help, for it tells no version"),
        ("--get-xclbin", None, True, "its --help, for it tells no version"),
        ("--aie-generate-xclbin", Era.MODERN, True, "dialect=1.4, for it tells no version"),
        ("--get-xclbin", Era.MARCH, False, "dialect=march, for it tells no version"),
    ],
)
def test_a_wish_decides_all_where_no_version_does(tmp_path, help_text, wanted, get_options, known_by):
    form = form_of(aiecc(tmp_path, "LLVM (http://llvm.org/):", help_text), wanted)
    era = wanted or (Era.MODERN if get_options else Era.MARCH)
    assert (form.era, form.get_options, form.known_by) == (era, get_options, known_by)
