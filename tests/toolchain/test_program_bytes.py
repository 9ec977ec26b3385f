"""How the size of a core's program is measured, on an object of this machine."""

import subprocess
from pathlib import Path

from support.image_contents import program_bytes

SOURCE = """
.text
.skip 100
.section .text.other,"ax"
.skip 28
.section .rodata
.skip 4000
.bss
.skip 5000
.section .note,"",@note
.skip 6
"""


def test_only_what_is_executed_counts(tmp_path: Path):
    subprocess.run(["g++", "-c", "-x", "assembler", "-", "-o", tmp_path / "a.o"], input=SOURCE, text=True, check=True)
    assert program_bytes(tmp_path / "a.o") == 128
