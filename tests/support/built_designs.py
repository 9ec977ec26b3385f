"""Designs built in a test: rendered, with kernels compiled for this host, ready for `BuiltDesign.load`."""

import json
import subprocess
from pathlib import Path
from typing import Any

from bdforge.devices import device_named
from bdforge.plan import manifest, plan_gemm, render, spec_from
from bdforge.runtime import BuiltDesign

ROOT = Path(__file__).resolve().parents[2]


def spec_content(m: int, k: int, n: int, *, rows: int = 2, columns: int = 2, **buffers: int) -> dict[str, Any]:
    """TOML content of a small design; `buffers` as in its section."""
    return {
        "kind": "gemm",
        "types": {"a": "int8", "b": "int2", "c": "int32"},
        "array": {"rows": rows, "columns": columns},
        "tile": {"m": m, "k": k, "n": n},
        "buffers": buffers,
        "problems": [],
    }


def build(folder: Path, content: dict[str, Any], name: str = "small") -> BuiltDesign:
    """Everything that `scons host` makes of a spec, in `folder`."""
    plan = plan_gemm(spec_from(content, name), device_named("strix_halo"))
    facts = manifest(plan, plan.spec.problems)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(facts))
    (folder / facts["files"]["mlir"]).write_text(render(plan, plan.spec.problems))
    compile_kernels(folder / facts["files"]["host_kernels"], content["tile"])
    return BuiltDesign.load(folder)


def compile_kernels(library: Path, tile: dict[str, int]) -> None:
    """The AIE kernels for one tile size as a shared library."""
    library.parent.mkdir(parents=True, exist_ok=True)
    sources = [*sorted((ROOT / "kernels" / "aie2p").glob("*.cc")), ROOT / "kernels" / "hostapi" / "entry.cc"]
    defines = [f"-DDIM_{axis.upper()}={size}" for axis, size in tile.items()]
    flags = ["-std=c++20", "-O2", "-march=native", "-fPIC", "-shared", f"-I{ROOT / 'kernels' / 'hostapi'}"]
    subprocess.run(["g++", *flags, *defines, *map(str, sources), "-o", str(library)], check=True)
