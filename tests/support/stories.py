"""The outputs in docs/debugging.md, made from the design that it breaks: `python tests/support/stories.py`."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import bdforge
from bdforge.array.emulator import EmulationError
from bdforge.runtime import load_kernels

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "debugging.md"
DESIGN = ROOT / "docs" / "hanging" / "gemm.mlir"
KERNELS = ROOT / "docs" / "hanging" / "kernels.py"
STORY = re.compile(r"```diff\n-(?P<before>[^\n]*)\n\+(?P<after>[^\n]*)\n```\n\n```text\n(?P<shown>.*?)```", re.S)
STEPS = 16


def operands() -> tuple[np.ndarray, np.ndarray]:
    """A and B in the order in which the design reads them."""
    rng = np.random.default_rng(1)
    return rng.integers(-9, 9, (STEPS, 8, 8), np.int32), rng.integers(-9, 9, (STEPS, 2, 8, 8), np.int32)


def run(text: str, **options) -> tuple[np.ndarray, str]:
    """C, and what the command line prints of a run."""
    a, b = operands()
    c = np.zeros((2, 8, 8), np.int32)
    try:
        result = bdforge.emulate(text, [a, b, c], load_kernels(KERNELS), file=DESIGN.name, **options)
    except EmulationError as error:
        return c, f"bdforge: {error}\n"
    return c, "".join(f"warning: {warning}\n" for warning in result.warnings)


def stories(page: str) -> Iterator[tuple[str, str]]:
    """What the page shows for each story, and what really comes out."""
    text = DESIGN.read_text(encoding="utf-8")
    for story in STORY.finditer(page):
        assert text.count(story["before"]) == 1, story["before"]
        yield story["shown"], run(text.replace(story["before"], story["after"]))[1]


def rewritten(page: str) -> str:
    """The page with real outputs."""
    outputs = iter([real for _, real in stories(page)])
    return STORY.sub(lambda story: story[0].removesuffix(story["shown"] + "```") + next(outputs) + "```", page)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
