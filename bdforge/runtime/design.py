"""A built design as SCons leaves it: manifest, MLIR and host-compiled kernels in one folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bdforge.devices import device_named
from bdforge.plan import Plan, Problem, plan_gemm, render, spec_from
from bdforge.plan.manifest import SCHEMA_VERSION
from bdforge.runtime.kernels import load_kernels


class BuildError(ValueError):
    """A folder that holds no usable built design."""


@dataclass(frozen=True)
class BuiltDesign:
    """A design ready to run on the emulated array."""

    folder: Path
    plan: Plan
    problems: tuple[Problem, ...]
    mlir_file: Path
    kernel_library: Path

    @classmethod
    def load(cls, folder: Path | str) -> "BuiltDesign":
        """Read `manifest.json` and what it names; BuildError says what is missing or does not match."""
        folder = Path(folder)
        manifest = _manifest(folder / "manifest.json")
        plan = plan_gemm(
            spec_from(manifest["spec"], manifest["design"], str(folder / "manifest.json")),
            device_named(manifest["device"]),
        )
        if plan.spec.hash != manifest["spec_hash"]:
            raise BuildError(
                f"{folder}: the manifest was built from another spec ({manifest['spec_hash']}); build again"
            )
        design = cls(
            folder, plan, plan.spec.problems,
            folder / manifest["files"]["mlir"], folder / manifest["files"]["host_kernels"],
        )  # fmt: skip
        for file in (design.mlir_file, design.kernel_library):
            if not file.is_file():
                raise BuildError(f"{file} is missing; run scons device={plan.device.name} host")
        return design

    @cached_property
    def mlir(self) -> str:
        """Text of the array configuration with the built-in problems' sequences."""
        return self.mlir_file.read_text(encoding="utf-8")

    @cached_property
    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        """The kernels, compiled for this host."""
        return load_kernels(self.kernel_library)

    def mlir_for(self, problem: Problem) -> str:
        """MLIR that holds the sequence of `problem`: the built text, or one rendered for it."""
        return self.mlir if problem in self.problems else render(self.plan, [problem])


def _manifest(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BuildError(f"{path}: {error.strerror}; build the design first (scons host)") from None
    except ValueError as error:
        raise BuildError(f"{path}: not a manifest: {error}") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA_VERSION:
        raise BuildError(f"{path}: its schema is not {SCHEMA_VERSION}; build the design again")
    missing = [key for key in ("design", "device", "files", "spec", "spec_hash") if key not in content]
    missing += [f"files.{key}" for key in ("mlir", "host_kernels") if key not in content.get("files", {})]
    if missing:
        raise BuildError(f"{path}: {', '.join(missing)} missing; build the design again")
    return content
