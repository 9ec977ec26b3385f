"""C++ test programs with designs compiled in."""

import json
import subprocess
from pathlib import Path

from bdforge.operators import manifest
from bdforge.operators.gemm import Plan
from bdforge.sequences.cpp import cpp_sequence

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O2", "-pthread"]


def compiled(folder: Path, name: str, plans: list[Plan], *flags: str) -> Path:
    """The program `name`.cc with these designs, which go through JSON as manifests do."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "designs.inc").write_text(",\n".join(map(initialiser, plans)))
    program = folder / name
    paths = [f"-I{folder}", f"-I{ROOT / 'host' / 'include'}", str(HERE / f"{name}.cc"), "-o", str(program)]
    subprocess.run(["g++", *FLAGS, *flags, *paths], check=True)
    return program


def initialiser(plan: Plan) -> str:
    """The plan's sequences in C++."""
    facts = json.loads(json.dumps(manifest(plan, ())))
    return cpp_sequence(facts["sequence"], wide=facts["sequence"]["wide"])


def run(program: Path, *arguments: Path | str, lines: list[str] | None = None) -> bytes:
    """What the program prints for these lines of input."""
    text = "\n".join(lines or []).encode()
    return subprocess.run([program, *arguments], input=text, capture_output=True, check=True, timeout=120).stdout
