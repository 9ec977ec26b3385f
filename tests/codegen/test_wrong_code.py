"""What is wrong in the code of a kernel is found, by the checker of hazards or by the kernel's test."""

import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
from test_assembled_kernels import call

from bdforge.array.emulator.errors import EmulationError
from bdforge.core.codegen.abi import AssemblyKernel, Callee
from bdforge.core.codegen.kernels import assembled
from bdforge.core.isa.errors import IsaError

MADE = [
    ("mm_i8_i2_i32", "aie2p", "M=32 K=32 N=32", (1024, 256, 4096)),
    ("mm_i8_i2_i32", "aie2p", "M=16 K=32 N=64 LOOPS=hardware", (512, 512, 4096)),
    ("mm_i8_i8_i32", "aie2p", "M=32 K=24 N=24", (768, 576, 3072)),
    ("mm_i8_i8_i16", "aie2p", "M=32 K=24 N=16 SHIFT=3", (768, 384, 1024)),
    ("mm_i8_i8_i8", "aie2p", "M=16 K=24 N=16 SHIFT=7", (384, 384, 256)),
    ("mm_i8_i4_i32", "aie2p", "M=16 K=32 N=16", (512, 256, 1024)),
    ("mm_i8_i8_i32", "aie2", "M=16 K=24 N=16", (384, 384, 1024)),
    ("mm_bf16_bf16_f32", "aie2", "M=32 K=24 N=8", (1536, 384, 1024)),
    ("zero_i32", "aie2p", "M=16 K=8 N=16", (1024,)),
    ("unscale_i32", "aie2p", "M=16 K=8 N=32", (2048,)),
    ("finish_i32_i8", "aie2p", "M=16 K=8 N=16 SHIFT=3", (1024,)),
]
"""Kernels, their options without DIM_, and the bytes of their operands."""
SMALL = ("mm_i8_i8_i32", "aie2p", "M=16 K=16 N=16 BLOCKS=2x1", (256, 256, 1024))
REGISTER = re.compile(r"\b(x|wl|wh|dm|cm|p|r|m|bmll|bmlh|bmhl|bmhh|cml|cmh)(\d+)\b")


def text_of(name: str, generation: str, options: str) -> str:
    """The assembly of a kernel."""
    words = (f"DIM_{word}" if word[0] in "MKN" else word for word in options.split())
    return assembled(name, generation, tuple(words)).text


def result(name: str, generation: str, sizes: tuple[int, ...], text: str) -> bytes | None:
    """What a text computes; None where it is refused, or leaves its memory or its registers."""
    rng = np.random.default_rng(8)
    operands = [rng.integers(0, 256, size, np.uint8) for size in sizes]
    if "bf16" in name:
        floats = [rng.standard_normal(size // 2).astype(np.float32) for size in sizes]
        operands[:2] = [(x.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8) for x in floats[:2]]
        operands[2] = floats[2][: sizes[2] // 4].view(np.uint8)
    elif name.startswith("mm_i8_i2"):
        operands[1] &= 0xAA  # codes 0 and 2
    elif name.startswith("finish"):
        operands[0] = (operands[0].view(np.int32) >> 21).view(np.uint8)  # few of them saturate
    try:
        call(AssemblyKernel(Callee(name, quiet=True), text, "test"), generation, operands)
    except (AssertionError, IsaError, EmulationError):
        return None
    return b"".join(operand.tobytes() for operand in operands)


def swapped(lines: list[str], rng: random.Random) -> Iterator[str]:
    """Texts with two neighbouring bundles in the other order."""
    places = [i for i, line in enumerate(lines) if line.startswith(" ") and line.strip()[0] != "."]
    while True:
        at = rng.randrange(len(places) - 1)
        here, there = places[at], places[at + 1]
        if bare(lines[here]) != bare(lines[there]):
            yield changed(lines, {here: lines[there], there: lines[here]})


def renamed(lines: list[str], rng: random.Random) -> Iterator[str]:
    """Texts with another register in one place."""
    found = [(i, m) for i, line in enumerate(lines) if line[0] == " " for m in REGISTER.finditer(bare(line))]
    found = [(i, m) for i, m in found if lines[i].strip()[0] != "."]
    while True:
        i, match = rng.choice(found)
        number = rng.choice([n for n in range(5) if n != int(match[2])])  # all of these names have five at least
        line = bare(lines[i])
        yield changed(lines, {i: f"{line[: match.start(2)]}{number}{line[match.end(2) :]}"})


def bare(line: str) -> str:
    """A line without its comment and what pads it."""
    return re.sub(r"( ;)? nop\w*", "", line.partition("//")[0]).rstrip()


def changed(lines: list[str], others: dict[int, str]) -> str:
    """A text with other lines."""
    return "\n".join(others.get(i, line) for i, line in enumerate(lines)) + "\n"


def share(made, wrong, count: int, seed: int) -> float:
    """Of wrong texts, those that are noticed."""
    name, generation, options, sizes = made
    text = text_of(name, generation, options)
    right, rng = result(name, generation, sizes, text), random.Random(seed)
    assert right is not None
    texts = wrong(text.splitlines(), rng)
    return sum(result(name, generation, sizes, next(texts)) != right for _ in range(count)) / count


@pytest.mark.parametrize(("wrong", "least"), [(swapped, 0.6), (renamed, 0.9)])
def test_wrong_code_is_noticed(wrong, least):
    assert share(SMALL, wrong, 10, 1) >= least


@pytest.mark.slow
@pytest.mark.parametrize("made", MADE, ids=lambda made: f"{made[0]}-{made[1]}")
def test_wrong_code_of_every_kernel_is_noticed(made):
    """What is not noticed makes the same: independent constants of a set-up in another order, an access in a cycle
    before or after in which nothing waits for it, upper halves of registers that no product looks at."""
    assert share(made, swapped, 60, 2) >= 0.55
    assert share(made, renamed, 60, 3) >= 0.9
