"""A built design as SCons leaves it: manifest, MLIR and host-compiled kernels in one folder."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bdforge.devices import DeviceError, device_named
from bdforge.files import read_bytes, read_json, read_text
from bdforge.messages import InputError
from bdforge.operators.gemm import Plan, Problem, SequenceOptions, SpecError, plan_gemm, render, spec_from
from bdforge.operators.gemm.manifest_schema import Manifest, manifest_fault
from bdforge.runtime.kernels import load_kernels


class BuildError(InputError):
    """A folder that holds no usable built design."""


@dataclass(frozen=True)
class BuiltDesign:
    """A design ready to run on the emulated array."""

    folder: Path
    plan: Plan
    problems: tuple[Problem, ...]
    mlir_file: Path
    kernel_library: Path
    manifest: Manifest
    built_sequences: bool = True

    def __repr__(self) -> str:
        return f"<BuiltDesign {self.plan.summary}, in {self.folder}>"

    @classmethod
    def load(cls, folder: Path | str) -> "BuiltDesign":
        """Read `manifest.json` and what it names; BuildError says what is missing or does not match."""
        folder = Path(folder)
        manifest = _manifest(folder / "manifest.json")
        plan = _plan(manifest, folder / "manifest.json")
        if plan.spec.hash != manifest.spec_hash:
            raise BuildError(f"{folder}: the manifest was built from another spec ({manifest.spec_hash}); build again")
        host = f"run scons device={plan.device.name} host"
        mlir_file, kernel_library = (_checked_file(folder, manifest, role, host) for role in ("mlir", "host_kernels"))
        return cls(folder, plan, plan.spec.problems, mlir_file, kernel_library, manifest)

    def waiting(self, options: SequenceOptions | None) -> "BuiltDesign":
        """The same built array, whose sequences wait as `options` say and are made anew; None: as built."""
        return self if options is None else replace(self, plan=self.plan.waiting(options), built_sequences=False)

    @cached_property
    def mlir(self) -> str:
        """Text of the array configuration with the built-in problems' sequences."""
        return read_text(self.mlir_file, BuildError)

    @cached_property
    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        """The kernels, compiled for this host."""
        return load_kernels(self.kernel_library)

    def mlir_for(self, problem: Problem) -> str:
        """MLIR that holds the sequence of `problem`: the built text, or one rendered for it."""
        return self.mlir if self.built_sequences and problem in self.problems else render(self.plan, [problem])

    def image(self, role: str) -> Path:
        """What is loaded onto an NPU: "xclbin" or "elf"; BuildError when it is missing or of another build."""
        way = f"build it with scons device={self.plan.device.name} format={role} (needs Peano, aiecc and XRT)"
        return _checked_file(self.folder, self.manifest, role, way)


def _checked_file(folder: Path, manifest: Manifest, role: str, way: str) -> Path:
    """The file that the manifest names for `role`, with the content that it records."""
    if (entry := manifest.files.get(role)) is None:
        raise BuildError(f"{folder / 'manifest.json'}: files.{role} is missing, this design was built without; {way}")
    path = folder / entry.path
    if not path.is_file():
        raise BuildError(f"{path} is missing; {way}")
    if entry.sha256 and entry.sha256 != hashlib.sha256(read_bytes(path, BuildError)).hexdigest():
        file = folder / "manifest.json"
        raise BuildError(f"{file}: files.{role}.sha256 is not that of {path}; they come from different builds, {way}")
    return path


def _plan(manifest: Manifest, file: Path) -> Plan:
    try:
        return plan_gemm(spec_from(manifest.spec, manifest.design, str(file)), device_named(manifest.device))
    except (DeviceError, SpecError) as error:
        reasons = str(error).replace(f"{file}: ", "").replace("\n", "; ")
        raise BuildError(f"{file}: {reasons}; build the design again") from None


def _manifest(path: Path) -> Manifest:
    if not path.is_file():
        raise BuildError(f"{path}: there is no such file; build the design first (scons host)")
    content = read_json(path, BuildError)
    if fault := manifest_fault(content):
        raise BuildError(f"{path}: {fault}; build the design again")
    return Manifest.model_validate(content)
