"""C++ test programs with designs compiled in."""

import json
import subprocess
from pathlib import Path

from bdforge.operators import manifest
from bdforge.operators.gemm import Plan
from bdforge.sequences.cpp import cpp_sequence

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-pthread"]
INCLUDE = f"-I{ROOT / 'host' / 'include'}"
DESIGNS = """#include "designs.hpp"
std::vector<bdforge::generator::Design> designs() {{ return {{ {} }}; }}
"""


def compiled(folder: Path, name: str, plans: list[Plan], *flags: str) -> Path:
    """The program `name`.cc with these designs, which go through JSON as manifests do.

    They are long initialisers that run once, so only the program is optimised.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source, designs, program = folder / "designs.cc", folder / "designs.o", folder / name
    source.write_text(DESIGNS.format(",\n".join(map(initialiser, plans))))
    command = ["g++", *FLAGS, "-O2", *flags, f"-I{HERE}", INCLUDE]
    subprocess.run([*command, "-O0", "-c", str(source), "-o", str(designs)], check=True)
    subprocess.run([*command, str(HERE / f"{name}.cc"), str(designs), "-o", str(program)], check=True)
    return program


def initialiser(plan: Plan) -> str:
    """The plan's sequences in C++."""
    facts = json.loads(json.dumps(manifest(plan, ())))
    return cpp_sequence(facts["sequence"], wide=facts["sequence"]["wide"])


def run(program: Path, *arguments: Path | str, lines: list[str] | None = None) -> bytes:
    """What the program prints for these lines of input."""
    text = "\n".join(lines or []).encode()
    return subprocess.run([program, *arguments], input=text, capture_output=True, check=True, timeout=120).stdout
