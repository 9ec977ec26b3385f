"""Examples and puzzles of the playground, as people write them; the flagship, a spec, as MLIR."""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.cli.demo import DESIGN, LAYER
from bdforge.cli.options import DEFAULT_PRODUCT
from bdforge.cli.puzzle import Puzzle, puzzles
from bdforge.design.sequences.buffers import arguments, outputs_of, placed
from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators import load_spec, render
from bdforge.operators.gemm import GemmProblem, GemmSpec, plan_gemm

ROOT = Path(__file__).resolve().parents[3]
_EXAMPLES = {
    "pass_through": ("A copy through a memtile", "pass_through.mlir", "", "def right(a):\n    return a\n"),
    "add_one": ("One core that adds one", "add_one/add_one.mlir", "", "def right(a):\n    return a + 1\n"),
    "chain": (
        "Two cores in a chain", "chain/chain.mlir", "chain/kernels.py",
        "import numpy as np\n\n\ndef right(a):\n    return np.maximum(3 * a, 0)\n",
    ),
    "deadlock": ("A hang: who waits for whom", "deadlock/deadlock.mlir", "", ""),
    "transpose": (
        "A transpose by a memtile's BD, of 32 x 64 words", "documents/transpose.toml", "",
        "def right(a):\n    return a.reshape(32, 64).T\n",
    ),
}  # fmt: skip
"""Title, file, kernels and reference of each, below `examples`."""
_SHAPES = {"transpose": "32x64"}
FLAGSHIP = "gemm_i8_i2"


def write_tasks(folder: Path) -> None:
    """`tasks.json`, the texts that it names, and the flagship's arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    text, arrays = flagship(LAYER)
    (folder / f"{FLAGSHIP}.npz").write_bytes(arrays)
    made = [*map(_example, _EXAMPLES), (_flagship_task(), text), *map(puzzle_task, puzzles())]
    for task, text in made:
        (folder / task["file"]).write_text(text, encoding="utf-8")
    (folder / "tasks.json").write_text(json.dumps([task for task, _ in made], indent=1), encoding="utf-8")


def _example(name: str) -> tuple[dict[str, Any], str]:
    title, file, kernels, reference = _EXAMPLES[name]
    path = ROOT / "examples" / file
    task = {
        "name": name, "file": path.name, "kind": "example", "title": title, "said": [], "references": reference,
        "shape": _SHAPES.get(name, ""),
        "kernels": (ROOT / "examples" / kernels).read_text(encoding="utf-8") if kernels else "",
    }  # fmt: skip
    return task | ({"reference": "right"} if reference else {}), path.read_text(encoding="utf-8")


def puzzle_task(puzzle: Puzzle) -> tuple[dict[str, Any], str]:
    """A puzzle and its starting point."""
    title, *said = puzzle.said
    task = {
        "name": str(puzzle), "file": puzzle.file, "kind": "puzzle", "hint": puzzle.hint,
        "title": f"{puzzle.number}. {title}", "said": said,
        "reference": str(puzzle).partition("_")[2], **dict(_modules(puzzle)),
    }  # fmt: skip
    return task, puzzle.start.read_text(encoding="utf-8")


def _modules(puzzle: Puzzle) -> Iterator[tuple[str, str]]:
    for name in ("kernels", "references"):
        yield name, puzzle.start.with_name(f"{name}.py").read_text(encoding="utf-8")


def _flagship_task() -> dict[str, Any]:
    kernels = Path(__file__).with_name("ternary_kernels.py").read_text(encoding="utf-8")
    return {
        "name": FLAGSHIP, "file": f"{FLAGSHIP}.mlir", "kind": "example",
        "title": f"BitNet's GEMM, int8 x ternary, {LAYER}, on 32 cores",
        "said": [], "kernels": kernels, "references": "", "arrays": f"{FLAGSHIP}.npz",
    }  # fmt: skip


def flagship(problem: GemmProblem, **changes: Any) -> tuple[str, bytes]:
    """The MLIR of the BitNet GEMM for a problem, and an .npz of its host buffers with C as it must be.

    `changes` are those of its spec.
    """
    spec = load_spec(ROOT / "designs" / f"{DESIGN}.toml")
    assert isinstance(spec, GemmSpec)
    plan = plan_gemm(replace(spec, **changes), device_named(DEFAULT_PRODUCT))
    inputs, sequence = plan.random(problem, seed=0), plan.sequence(problem)
    buffers = arguments(sequence, placed(sequence, inputs))
    outputs = outputs_of(sequence.program)
    expected = plan.expected(inputs, {o.name: np.empty(0) for o in outputs})
    right = {o.name: expected[o.name].values.astype(TYPES[o.type].dtype) for o in outputs}
    for argument, buffer in placed(sequence, right, outputs).items():
        buffers[argument] = buffer
    content = BytesIO()
    np.savez_compressed(content, *buffers)
    return render(plan, [problem]), content.getvalue()
