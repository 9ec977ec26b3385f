"""What a built design's folder tells of it: files by role, the image that boots, what its cores run, how runs wait."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bdforge.design.manifest import BuiltFile, Toolchain
from bdforge.design.sequences import Builder, ProgramError, SequenceOptions, Start
from bdforge.runtime import BuildError, BuiltDesign, OperandError
from bdforge.runtime import built_design as runtime_design
from support.built_designs import PlannedDesign

CONTENT = {"xclbin": b"for silicon", "emulated": b"for the emulated array", "elf": b"full"}


def made_by(small: PlannedDesign, folder: Path, name: str | None, *cores: list[int], **files: Any) -> BuiltDesign:
    """The small design as toolchain `name` leaves it, with images of CONTENT; `files` change what the manifest says."""
    entries = {}
    for role, content in CONTENT.items():
        (folder / role).write_bytes(content)
        facts = {"path": role, "sha256": hashlib.sha256(content).hexdigest()} | files.get(role, {})
        entries[role] = BuiltFile.model_validate(facts)
    toolchain = None
    if name is not None:
        toolchain = Toolchain.model_validate({"name": name, "tools": [], "host_cores": list(cores)})
    manifest = small.manifest.model_copy(update={"files": entries, "toolchain": toolchain})
    return BuiltDesign(folder, manifest, small.mlir_file, small.kernel_library)


@pytest.mark.parametrize(
    ("name", "cores", "booted", "note"),
    [
        (None, (), None, ""),
        ("aiecc", (), None, ""),
        ("bdforge", (), CONTENT["xclbin"], "machine code in every core"),
        (
            "bdforge", ([0, 2], [1, 3]), CONTENT["emulated"],
            "kernels of the host on 2 cores, which have no machine code",
        ),
    ],
    ids=["no image", "a compiler's", "all coded", "some coded"],
)  # fmt: skip
def test_the_emulated_array_boots_from_an_image_that_no_compiler_made(small, tmp_path, name, cores, booted, note):
    """Of cores without machine code there is an image for the emulated array, besides silicon's."""
    design = made_by(small, tmp_path, name, *cores)
    assert (design.booted, design.cores_note) == (booted, note)


@pytest.mark.parametrize("image", [None, b"", b"a context's own"])
def test_an_array_boots_from_what_is_given_or_from_the_builds_image(small, tmp_path, monkeypatch, image: bytes | None):
    told: list[tuple] = []
    monkeypatch.setattr(runtime_design, "Resident", lambda *given, **named: told.append((given, named)))
    design = made_by(small, tmp_path, "bdforge")
    design.resident(image)
    expected = CONTENT["xclbin"] if image is None else image
    assert told == [((small.mlir, design.kernels, str(small.mlir_file)), {"image": expected, "permissive": []})]


@pytest.mark.parametrize("role", CONTENT)
def test_an_image_is_the_builds_own_or_refused(small, tmp_path, role: str):
    assert made_by(small, tmp_path, None).image(role).read_bytes() == CONTENT[role]
    assert made_by(small, tmp_path, None, **{role: {"sha256": ""}}).image(role) == tmp_path / role
    way = "build it with scons device=strix_halo" + (" format=elf" if role == "elf" else "") + "$"
    with pytest.raises(BuildError, match=rf"files\.{role}\.sha256 is not that of .*different builds, {way}"):
        made_by(small, tmp_path, None, **{role: {"sha256": "0" * 64}}).image(role)
    design = made_by(small, tmp_path, None)
    (tmp_path / role).unlink()
    with pytest.raises(BuildError, match=rf"{tmp_path}/{role} is missing; {way}"):
        design.image(role)
    del design.manifest.files[role]
    with pytest.raises(BuildError, match=rf"manifest\.json: files\.{role} is missing, this design was built without"):
        design.image(role)


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("build/strix_halo/mine", "scons device=strix_halo design=mine host"),
        ("build/phoenix/mine", "scons device=phoenix design=mine host"), ("strix_halo", "scons host"),
        ("strix_halo/build/mine", "scons host"),
    ],
)  # fmt: skip
def test_a_missing_design_is_built_by_the_command_that_its_place_tells(tmp_path: Path, place: str, command: str):
    with pytest.raises(BuildError) as caught:
        BuiltDesign.load(str(tmp_path / place))
    file = tmp_path / place / "manifest.json"
    assert str(caught.value) == f"{file}: there is no such file; build the design first ({command}, or bdforge build)"


def links(folder: Path, outside: Path) -> None:
    """Links in a design's folder: to a file and a folder outside, to themselves, and to what is inside."""
    (folder / "link").symlink_to(outside / "file")
    (folder / "links").symlink_to(outside)
    (folder / "loop").symlink_to("loop")
    (folder / "own").symlink_to("file")


OUTSIDE = "../file", "/{outside}/file", "inside/../../outside/file", "", ".", "..", "x\0y", "link", "links/file", "loop"


@pytest.mark.parametrize("path", [*OUTSIDE, "own", "inside/../file"])
@pytest.mark.parametrize("role", ["mlir", "host_kernels", "xclbin"])
def test_files_of_a_manifest_lie_in_its_folder(small: PlannedDesign, tmp_path: Path, role: str, path: str):
    folder, outside = tmp_path / "design", tmp_path / "outside"
    for place in (folder, outside):
        place.mkdir()
        (place / "file").write_bytes(b"mine")
    links(folder, outside)
    content = json.loads((small.folder / "manifest.json").read_text())
    content["files"] = {key: {"path": "file"} for key in ("mlir", "host_kernels", "xclbin")}
    content["files"][role] = {"path": path.format(outside=str(outside)[1:])}
    (folder / "manifest.json").write_text(json.dumps(content))
    (tmp_path / "linked").symlink_to(folder)
    for given in (folder, tmp_path / "linked"):
        if path == "own":
            assert BuiltDesign.load(given).image("xclbin").read_bytes() == b"mine"
            continue
        with pytest.raises(BuildError, match=rf"manifest\.json: files\.{role}|loop is missing"):
            BuiltDesign.load(given).image(role)


def in_steps(small: PlannedDesign, *, wide: bool, in_flight: int) -> BuiltDesign:
    """The small design with a sequence of n steps of a BD each."""
    build = Builder(["n"], in_flight)
    x = build.argument("X", "i32", 32, 64)
    with build.loop(build.parameter("n")), build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, build.bd(x, 0, (4,), (1,)), token=True)
    facts = small.manifest.sequence.model_copy(update={"wide": wide, "program": build.program})
    return replace(small, manifest=small.manifest.model_copy(update={"sequence": facts}))


def waiting(design: BuiltDesign) -> tuple[bool, int]:
    """Whether waits are wide, and the most steps that run at a time."""
    sequence, running = design.sequence({"n": 9}), [0]
    for event in sequence.events:
        running.append(running[-1] + (1 if isinstance(event, Start) else -1))
    return sequence.wide, max(running)


def test_runs_wait_as_built_or_as_they_are_told(small: PlannedDesign):
    column, wide = in_steps(small, wide=False, in_flight=3), in_steps(small, wide=True, in_flight=1)
    assert [waiting(one) for one in (column, wide)] == [(False, 3), (True, 1)], "as the manifest says"
    options = [SequenceOptions("wide"), SequenceOptions("column"), SequenceOptions("column", 2)]
    for built in (column, wide):
        assert [waiting(built.waiting(one)) for one in options] == [(True, 1), (False, 4), (False, 2)], (
            "as they are told"
        )


@pytest.mark.parametrize(
    ("sizes", "error", "said"),
    [
        ({"M": 4, "K": 8}, OperandError, "small: 4x8: no array tells N"),
        ({"K": 8}, OperandError, "small: 8: no array tells M, N"),
        ({}, OperandError, "small: no array tells M, K, N"),
        ({"M": 4, "K": 0, "N": 5}, ProgramError, "small: 4x0x5: K = 0 is outside 1 to 1048576"),
    ],
)
def test_sizes_that_do_not_run_are_refused_with_the_design_and_the_shape(small, sizes, error, said: str):
    with pytest.raises(error) as caught:
        small.sequence(sizes)
    assert str(caught.value) == said
