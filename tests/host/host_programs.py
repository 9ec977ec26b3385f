"""C++ test programs that run designs by their manifests."""

import json
import subprocess
from pathlib import Path

from bdforge.operators import manifest
from bdforge.operators.gemm import GemmPlan

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]
INCLUDE = f"-I{ROOT / 'host' / 'include'}"
READERS = ("json", "messages", "sequence_program", "sequencer", "manifest", "files")
"""Of the library: what makes a design of a manifest's text."""


def compiled(folder: Path, name: str, *flags: str) -> Path:
    """The program `name`.cc with what reads manifests; it takes a file of `manifests`. Compiled as one source,
    which makes once what its parts share."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [HERE / f"{name}.cc", *(ROOT / "host" / "src" / f"{reader}.cpp" for reader in READERS)]
    joined, program = folder / f"{name}.cpp", folder / name
    joined.write_text("".join(f'#include "{part}"\n' for part in parts))
    command = ["g++", *FLAGS, "-O2", *flags, f"-I{HERE}", INCLUDE, f"-I{ROOT / 'host' / 'src'}"]
    subprocess.run([*command, str(joined), "-o", str(program)], check=True)
    return program


def manifests(file: Path, plans: list[GemmPlan]) -> Path:
    """The plans' manifests in a file, one to a line."""
    file.write_text("".join(f"{json.dumps(manifest(plan, ()))}\n" for plan in plans))
    return file


def run(program: Path, *arguments: Path | str, lines: list[str] | None = None) -> bytes:
    """What the program prints for these lines of input."""
    text = "\n".join(lines or []).encode()
    return subprocess.run([program, *arguments], input=text, capture_output=True, check=True, timeout=120).stdout
