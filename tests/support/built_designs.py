"""Designs built in a test: rendered, with kernels compiled for this host, ready for `BuiltDesign.load`."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from bdforge.common.compilers import native_flags
from bdforge.devices import DEVICES, device_named
from bdforge.operators import Plan, Problem, built_files, gemm, manifest, operator_of, plan, plan_of, render, spec_from
from bdforge.runtime import BuiltDesign, load_kernels
from support.once import locked, made_in

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "test-kernels"
ENTRY = ROOT / "kernels" / "hostapi" / "entry.cc"
QUICK = ("-O0", "-Dalways_inline=")
"""Options of g++ that halve the time to compile kernels: a function's code stands once, not at each of its calls. Small
tiles notice that less."""

TERNARY = ("int8", "int2", "int32")


def spec_content(
    m: int,
    k: int,
    n: int,
    *,
    types: tuple[str, ...] = TERNARY,
    layouts: str = "row packed row",
    rows: int = 2,
    columns: int = 2,
    m_used: int = 0,
    epilogue: dict[str, Any] | None = None,
    sequence: dict[str, Any] | None = None,
    outputs: Mapping[str, int] = MappingProxyType({}),
    **buffers: int,
) -> dict[str, Any]:
    """TOML content of a small design: types and layouts of A, B, C (and accumulator); columns of its `outputs`;
    `buffers` as in its section."""
    return {
        "kind": "gemm",
        "types": dict(zip(("a", "b", "c", "accumulator"), types, strict=False)),
        "layouts": dict(zip("abc", layouts.split(), strict=True)),
        "epilogue": epilogue or {},
        "array": {"rows": rows, "columns": columns},
        "tile": {"m": m, "k": k, "n": n, "m_used": m_used},
        "buffers": buffers,
        "sequence": sequence or {},
        "outputs": [{"name": name, "columns": columns} for name, columns in outputs.items()],
        "problems": [],
    }


def small_gemm(m: int = 16, k: int = 16, n: int = 32, device: str = "strix_halo", **changes: Any) -> gemm.GemmPlan:
    """The plan of a small GEMM; `changes` as in `spec_content`."""
    return gemm.plan_gemm(gemm.spec_from(spec_content(m, k, n, **changes), "small"), device_named(device))


@cache
def named_designs() -> dict[str, Callable[[], gemm.GemmPlan]]:
    """Every GEMM of `designs/` on every array that it fits, a product for each array; planned when it is called."""
    specs = map(gemm.load_spec, sorted((ROOT / "designs").glob("gemm_*.toml")))
    pairs = [(spec, DEVICES[product]) for spec in specs for product in ("strix_halo", "phoenix")]
    return {
        f"{spec.name}-{device.name}": cache(partial(gemm.plan_gemm, spec, device))
        for spec, device in pairs
        if operator_of(spec).fits(spec, device)
    }


def named_plans() -> list[gemm.GemmPlan]:
    return [planned() for planned in named_designs().values()]


def possible(plan: gemm.GemmPlan, M: int, K: int, N: int) -> gemm.GemmProblem:
    """A problem of these sizes, but for N where arrays take all of C's columns."""
    return gemm.GemmProblem(M, K, sum(one.columns for one in plan.spec.outputs) or N)


each_named = pytest.mark.parametrize("plan", named_designs().values(), ids=named_designs(), indirect=True)
"""A test for each, with its plan: collecting tests plans nothing."""


class PlannedDesign(BuiltDesign):
    """A built design with the plan that it was made of."""

    @cached_property
    def plan(self) -> Any:
        """Made anew of the manifest's spec."""
        return plan_of(self.manifest, self.folder)

    def mlir_for(self, problem: Problem) -> str:
        """MLIR that holds the sequence of a problem: the built text, or one rendered for it."""
        return self.mlir if self.built_sequence(problem.sizes) else render(self.plan, [problem])


def build(folder: Path, content: dict[str, Any], name: str = "small", device: str = "strix_halo") -> PlannedDesign:
    """Everything that `scons host` makes of a spec, in `folder`."""
    return build_plan(folder, plan(spec_from(content, name), device_named(device)))


def build_plan(folder: Path, planned: Plan, root: Path = ROOT) -> PlannedDesign:
    """The same of a plan, whose kernels lie below `root`."""
    folder.mkdir(parents=True, exist_ok=True)
    hashes = {}
    if planned.reference_file:
        shutil.copy(planned.reference_file, folder / built_files(planned, ())["reference"])
        hashes["reference"] = hashlib.sha256(planned.reference_file.read_bytes()).hexdigest()
    facts = manifest(planned, planned.problems, hashes)
    (folder / "manifest.json").write_text(json.dumps(facts))
    (folder / facts["files"]["mlir"]["path"]).write_text(render(planned, planned.problems))
    compile_kernels(folder / facts["files"]["host_kernels"]["path"], planned, root)
    return PlannedDesign.load(folder)


def host_defines(plan: Plan) -> tuple[str, ...]:
    """The kernels' macros, and what compilers for the array define by themselves."""
    return (*plan.kernels.defines, f"__AIE_ARCH__={plan.device.generation.compiler_architecture}")


def kernels_of(plan: Plan) -> Mapping[str, Callable[..., Any]]:
    """A design's kernels, ready to be called."""
    return _loaded(_library(plan.kernels.sources, host_defines(plan)))


_loaded = cache(load_kernels)


def compile_kernels(library: Path, plan: Plan, root: Path = ROOT) -> None:
    """A design's kernels as a shared library; what was compiled once of the same sources is taken again."""
    library.parent.mkdir(parents=True, exist_ok=True)
    sources = tuple(str(root / source) for source in plan.kernels.sources)
    shutil.copy(_library(sources, host_defines(plan)), library)


@cache
def _library(sources: tuple[str, ...], macros: tuple[str, ...]) -> Path:
    """The sources as one, which takes half of the time, and how hosts call kernels, which is compiled once."""
    defines, header = [f"-D{macro}" for macro in macros], _stand_in(f"-D{macros[-1]}")
    text = "".join(f'#include "{ROOT / path}"\n' for path in sources)
    entry = _compiled(".o", *defines[-1:], "-include", str(header), "-c", "-x", "c++", str(ENTRY))
    return _compiled(
        ".so", *defines, "-include", str(header), "-shared", "-x", "c++", "-", "-x", "none", str(entry), text=text
    )


def compiler_says(source: str, macros: tuple[str, ...]) -> str:
    """What the compiler says against a kernel with these macros, the last of which is the architecture; or ''."""
    words = [*(f"-D{macro}" for macro in macros), "-include", str(_stand_in(f"-D{macros[-1]}")), "-fsyntax-only"]
    return subprocess.run([*_gxx(), *words, str(ROOT / source)], capture_output=True, text=True, check=False).stderr


@cache
def _stand_in(*defines: str) -> Path:
    """The AIE API for this host as a precompiled header: parsing it takes half of the time."""
    header = KEPT / "api.hpp"
    KEPT.mkdir(parents=True, exist_ok=True)
    header.write_text("#include <aie_api/aie.hpp>\n")
    made = _compiled(".hpp.gch", *defines, "-x", "c++-header", str(header))
    return made.with_suffix("")


def _compiled(suffix: str, *words: str, text: str = "") -> Path:
    """What g++ makes of words and input, once for all processes, kept by these and all that could be included."""
    command = [*_gxx(), *words]
    kept = KEPT / f"{hashlib.sha256(repr((command, text, _kernel_sources())).encode()).hexdigest()}{suffix}"
    with locked(kept.with_suffix(".lock")):
        if not kept.exists():
            part = kept.with_suffix(f".{os.getpid()}")
            subprocess.run([*command, "-o", str(part)], input=text, text=True, check=True)
            part.replace(kept)
    return kept


def made_of_kernels(words: object, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills with what g++ makes of kernels, kept by the words and all that could be included."""
    key = repr((words, _gxx(), _kernel_sources()))
    return made_in(KEPT / hashlib.sha256(key.encode()).hexdigest(), make)


def _gxx() -> list[str]:
    return ["g++", "-std=c++20", *QUICK, *native_flags("g++", QUICK[0]), "-fPIC", f"-I{ROOT / 'kernels' / 'hostapi'}"]


@cache
def _kernel_sources() -> str:
    """Everything that a kernel could include, and the compiler."""
    version = subprocess.run(["g++", "--version"], check=True, capture_output=True).stdout
    files = sorted(path for path in (ROOT / "kernels").rglob("*") if path.is_file())
    files += sorted(path for path in (ROOT / "tests" / "kernels").glob("*.*") if not path.name.startswith("test_"))
    return hashlib.sha256(version + b"".join(path.read_bytes() for path in files)).hexdigest()
