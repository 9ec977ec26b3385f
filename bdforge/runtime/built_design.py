"""A built design as SCons leaves it: manifest, MLIR and host-compiled kernels in one folder."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from bdforge.array.emulator.resident_design import Resident
from bdforge.common.files import read_bytes, read_json, read_text
from bdforge.common.messages import InputError, clip_path
from bdforge.design.manifest import COMPOSITION, CONFIGURATIONS, OWN_TOOLCHAIN, Manifest, manifest_fault
from bdforge.design.sequences import (
    OperandError,
    PlannedSequence,
    Program,
    ProgramError,
    SequenceOptions,
    WalkError,
    planned,
)
from bdforge.devices import DEVICES, Device, DeviceError, device_named, mlir_device_named
from bdforge.devices.txn_format.codec import TxnError, decode_all
from bdforge.devices.txn_format.operations import Operation
from bdforge.runtime.host_kernels import load_kernels


class BuildError(InputError):
    """A folder that holds no usable built design."""


@dataclass(frozen=True)
class BuiltDesign:
    """A design ready to run: what its manifest says, whatever it computes. `options`: how runs wait, None as built."""

    folder: Path
    manifest: Manifest
    mlir_file: Path
    kernel_library: Path | None
    options: SequenceOptions | None = None

    def __repr__(self) -> str:
        return f"<BuiltDesign {self.summary}, in {self.folder}>"

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read `manifest.json` and what it names; BuildError says what is missing or does not match."""
        folder = Path(folder)
        manifest = _manifest(folder / "manifest.json")
        host = f"run scons device={manifest.device} host"
        mlir_file = _checked_file(folder, manifest, "mlir", host)
        if manifest.kind == COMPOSITION:  # its cores run machine code alone
            return cls(folder, manifest, mlir_file, None)
        return cls(folder, manifest, mlir_file, _checked_file(folder, manifest, "host_kernels", host))

    def waiting(self, options: SequenceOptions | None) -> "BuiltDesign":
        """The same built array, whose sequences wait as `options` say and are made anew; None: as built."""
        return self if options is None else replace(self, options=options)

    @property
    def name(self) -> str:
        return self.manifest.design

    @property
    def summary(self) -> str:
        return f"{self.name} ({self.manifest.kind}) for {self.manifest.device}"

    @property
    def device(self) -> Device:
        return device_named(self.manifest.device)

    @property
    def array(self) -> Device:
        return mlir_device_named(self.manifest.mlir_device)

    @property
    def program(self) -> Program:
        """What yields its instruction stream for any sizes."""
        return self.manifest.sequence.program

    def sequence(self, sizes: Mapping[str, int]) -> PlannedSequence:
        """The runtime sequence for sizes by parameter; OperandError where the design cannot run them."""
        try:
            if missing := [name for name in self.program.sizes if name not in sizes]:
                raise OperandError(f"no array tells {', '.join(missing)}")
            options = self.options or SequenceOptions(
                "wide" if self.manifest.sequence.wide else "column", self.program.in_flight
            )
            return planned(self.program, sizes, self.array, options, self.configurations)
        except (OperandError, ProgramError, WalkError) as error:
            where = [self.name, "x".join(map(str, sizes.values()))] if sizes else [self.name]
            raise type(error)(": ".join([*where, str(error)])) from None

    def built_sequence(self, sizes: Mapping[str, int]) -> str | None:
        """The name of the runtime sequence in the MLIR for these sizes, if it has one; of compositions none."""
        if self.manifest.kind == COMPOSITION:
            return None
        built = {problem.sequence for problem in self.manifest.problems if dict(problem.sizes) == dict(sizes)}
        return (next(iter(built), None) or None) if self.options is None else None

    @cached_property
    def mlir(self) -> str:
        """Text of the array configuration with the built-in problems' sequences."""
        return read_text(self.mlir_file, BuildError)

    @cached_property
    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        """The kernels, compiled for this host."""
        return {} if self.kernel_library is None else load_kernels(self.kernel_library)

    @cached_property
    def configurations(self) -> tuple[tuple[Operation, ...], ...]:
        """What its runs change the array's configuration to, by number; BuildError for a file that is none."""
        if not self.program.configurations:
            return ()
        path = _checked_file(self.folder, self.manifest, CONFIGURATIONS, "run bdforge compose")
        try:
            found = decode_all(read_bytes(path, BuildError))
        except TxnError as error:
            raise BuildError(f"{path}: {error}; run bdforge compose again") from None
        if len(found) != self.program.configurations:
            raise BuildError(f"{path}: holds {len(found)} changes, its program has {self.program.configurations}")
        return tuple(stream.operations for stream in found)

    @property
    def cores_note(self) -> str:
        """What its cores run on the emulated array, of a build without a compiler; "" where all run host kernels."""
        toolchain = self.manifest.toolchain
        if toolchain is None or toolchain.name != OWN_TOOLCHAIN:
            return ""
        if not toolchain.host_cores:
            return "machine code in every core"
        return f"kernels of the host on {len(toolchain.host_cores)} cores, which have no machine code"

    @cached_property
    def booted(self) -> bytes | None:
        """The image of a build without a compiler, from which the emulated array boots; None: it takes the text.

        BuildError where the image is missing or of another build.
        """
        toolchain = self.manifest.toolchain
        if toolchain is None or toolchain.name != OWN_TOOLCHAIN:
            return None
        return read_bytes(self.image("emulated" if toolchain.host_cores else "xclbin"), BuildError)

    def resident(self, image: bytes | None = None) -> Resident:
        """The design on an emulated array of its own, booted from `image` or from the build's; faults as there."""
        booted = self.booted if image is None else image
        return Resident(self.mlir, self.kernels, str(self.mlir_file), image=booted, permissive=self.permissive)

    @property
    def permissive(self) -> list[str]:
        """Checks of the emulated array that its author has decided against."""
        return ["program-writes"] if self.manifest.document.get("programs_ahead") else []

    def image(self, role: str) -> Path:
        """What is loaded onto an NPU: "xclbin" or "elf"; BuildError when it is missing or of another build."""
        way = f"build it with scons device={self.manifest.device}{' format=elf' if role == 'elf' else ''}"
        return _checked_file(self.folder, self.manifest, role, way)


def _checked_file(folder: Path, manifest: Manifest, role: str, way: str) -> Path:
    """The file that the manifest names for `role`, with the content that it records."""
    if (entry := manifest.files.get(role)) is None:
        raise BuildError(f"{folder / 'manifest.json'}: files.{role} is missing, this design was built without; {way}")
    path = folder / entry.path
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise BuildError(
            f"{folder / 'manifest.json'}: files.{role} is {clip_path(entry.path)}, which links to a place outside of "
            f"the design's folder; {way}"
        )
    if not path.is_file():
        raise BuildError(f"{path} is missing; {way}")
    if entry.sha256 and entry.sha256 != hashlib.sha256(read_bytes(path, BuildError)).hexdigest():
        file = folder / "manifest.json"
        raise BuildError(f"{file}: files.{role}.sha256 is not that of {path}; they come from different builds, {way}")
    return path


def _building(folder: Path) -> str:
    """The command that builds into a folder, where its place tells."""
    *_, device, design = folder.parts
    return f"scons device={device} design={design} host" if device in DEVICES else "scons host"


def _manifest(path: Path) -> Manifest:
    if not path.is_file():
        way = f"{_building(path.absolute().parent)}, or bdforge build"
        raise BuildError(f"{path}: there is no such file; build the design first ({way})")
    content = read_json(path, BuildError)
    if fault := manifest_fault(content):
        raise BuildError(f"{path}: {fault}; build the design again")
    manifest = Manifest.model_validate(content)
    try:
        device_named(manifest.device)
        mlir_device_named(manifest.mlir_device)
    except DeviceError as error:
        raise BuildError(f"{path}: {error}; build the design again") from None
    return manifest
