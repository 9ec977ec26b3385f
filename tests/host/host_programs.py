"""C++ test programs that follow orders on their input."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(program: Path, *arguments: Path | str, lines: list[str] | None = None) -> bytes:
    """What the program prints for these lines of input."""
    text = "\n".join(lines or []).encode()
    return subprocess.run([program, *arguments], input=text, capture_output=True, check=True, timeout=120).stdout
