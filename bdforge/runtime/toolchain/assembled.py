"""A design's image without a compiler: MLIR to register writes, with programs of machine code, to an xclbin."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from bdforge.array.core_bodies.core_program import (
    DevicePrograms,
    LinkedProgram,
    Tile,
    device_programs,
    elf_name,
    naming_programs,
)
from bdforge.array.images.image_build import image, program_of
from bdforge.array.lower import StaticConfiguration, configuration
from bdforge.array.mlir import parsed
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.txn.insts import encode_module
from bdforge.array.txn.target import REFUSING, Policy
from bdforge.common.tree import PACKAGE
from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.kernels import assembled, refusal
from bdforge.core.isa.elf import CoreSegment, core_segments
from bdforge.devices import Generation
from bdforge.runtime.toolchain.find import Tool

_CODE = (".py", ".csv", ".hpp", ".cpp")


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An xclbin, instruction words by sequence, programs by core; `without` says which cores have none, and why."""

    xclbin: bytes
    streams: Mapping[str, bytes]
    programs: Mapping[Tile, LinkedProgram]
    without: Mapping[Tile, str]


def built_image(
    text: str, file: str, defines: Sequence[str], sequences: Sequence[str],
    given: Mapping[str, AssemblyKernel] | None = None, code_at_end: bool = False,
) -> BuiltImage:  # fmt: skip
    """The image of a design, whose kernels are assembled with options as `-D` gives them, but for those `given`.

    Programs start at address 0, or with `code_at_end` end where program memory does.

    Cores whose kernels have no machine code are left without a program. MlirError, LoweringError, RoutingError,
    AllocationError, CodegenError and AssemblyError for what cannot be built.
    """
    module = parsed(text, file)
    device = next(op for op in module.walk() if isinstance(op, DeviceOp))
    generation = device.device.generation.name.lower()
    known = given or {}
    made = device_programs(device, lambda name: known.get(name) or assembled(name, generation, defines), code_at_end)
    streams = {name: encode_module(module, name).astype("<u4").tobytes() for name in sequences}
    return BuiltImage(image(programmed(device, made), ".xclbin", bare=True), streams, made.programs, made.without)


def programmed(device: DeviceOp, made: DevicePrograms, policy: Policy = REFUSING) -> StaticConfiguration:
    """The register writes of a device whose cores run these programs instead of their bodies."""
    elfs = {Path(elf_name(tile)).parts: program.elf for tile, program in made.programs.items()}

    def program(path: Path, generation: Generation) -> list[CoreSegment]:
        elf = elfs.get(path.parts[-2:])
        return program_of(path, generation) if elf is None else core_segments(elf)[0]

    return configuration(naming_programs(device, made.programs), program, policy)


def cpp_only(kernels: Sequence[str], generation: Generation, defines: Sequence[str]) -> dict[str, str]:
    """Kernels without machine code, with the reason."""
    reasons = {name: refusal(name, generation.name.lower(), defines) for name in kernels}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def for_emulation_only(name: str, without: Mapping[str, str]) -> str:
    """What is said of an image in which cores have no program."""
    return (
        f"{name} is for the emulated array, no xclbin for silicon: its cores have no machine code of "
        f"{', '.join(without)} ({next(iter(without.values()))}); toolchain=aiecc compiles them"
    )


def toolchain_facts(name: str, tools: Sequence[Tool], without: Mapping[Tile, str] | None = None) -> dict:
    """What a manifest tells of how an image was made."""
    found = [{"name": t.name, "version": t.version, "sha256": _sha256(t.path)} for t in tools if t.path]
    own = {"name": "bdforge", "version": _version(), "sha256": _own_hash()}
    cores = [list(tile) for tile in sorted(without or {})]
    return {"name": name, "tools": [own, *found], "host_cores": cores}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _version() -> str:
    """Of bdforge as it is installed; "" in a tree that is not."""
    try:
        return metadata.version("bdforge")
    except metadata.PackageNotFoundError:
        return ""


@cache
def _own_hash() -> str:
    """Of all code and tables of the package, by their places in it."""
    found = hashlib.sha256()
    for path in sorted(path for path in PACKAGE.rglob("*") if path.suffix in _CODE):
        found.update(f"{path.relative_to(PACKAGE)}\n".encode() + path.read_bytes())
    return found.hexdigest()
