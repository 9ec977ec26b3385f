"""The problems that a tuner weighs: models by name, lists, files."""

import re
from collections.abc import Mapping
from pathlib import Path

from bdforge.common.files import SETTINGS_BYTES_MAX, read_text
from bdforge.common.messages import clip
from bdforge.operators.gemm import GemmProblem
from bdforge.operators.specs import LARGEST_SIZE
from bdforge.perf.bounds.models import GPT2_TRAIN, Linear, Model
from bdforge.perf.errors import PerfError

Weighted = tuple[GemmProblem, int]
"""A problem and how often it is run."""

DEFAULT_ROWS = 256  # tokens of one prefill
NAMED: dict[str, tuple[tuple[str, int, int, int], ...]] = {
    # name, K, N, times in a layer. BitNet-b1.58-2B-4T: hidden 2560, 5 key-value heads of 128, feed-forward 6912.
    "bitnet-2b": (
        ("attention q, o", 2560, 2560, 2), ("attention k, v", 2560, 640, 2),
        ("feed-forward gate and up", 2560, 13824, 1), ("feed-forward down", 6912, 2560, 1),
    ),
}  # fmt: skip
"""Linear layers of models by name; M is the tokens."""
WHOLE: Mapping[str, Model] = {GPT2_TRAIN.name: GPT2_TRAIN}
"""Models whose every GEMM has its own M: GPT-2's step of training has twelve sizes, forward and backward."""
NAMES = (*NAMED, *WHOLE)

_SHAPE = re.compile(r"\s*(\d{1,12})x(\d{1,12})x(\d{1,12})(?:\*(\d{1,12}))?(?:\s+(.*))?\s*")


def shapes(text: str, rows: int | None = None) -> tuple[Weighted, ...]:
    """Problems from a name, from `MxKxN,MxKxN*3`, or from a file with one `MxKxN*3 name` a line.

    `*3` says that a problem is run three times. `rows` is M of named models, which say only K and N. PerfError says
    what cannot be read.
    """
    if text in NAMED:
        m = DEFAULT_ROWS if rows is None else rows
        return tuple((_problem(m, k, n, name), count) for name, k, n, count in NAMED[text])
    if text in WHOLE and rows is None:
        return _whole(WHOLE[text])
    if rows is not None:
        raise PerfError(f"--tokens goes with the shapes of models ({', '.join(NAMED)}); {text!r} says its own M")
    path = Path(text)
    if path.is_file():
        return _file(path)
    return tuple(_shape(part, f"shapes {text!r}") for part in text.split(","))


def _whole(model: Model) -> tuple[Weighted, ...]:
    """Sizes of a model, each once, with the names of the GEMMs that have it."""
    alike: dict[tuple[int, int, int], list[Linear]] = {}
    for one in model.linears:
        alike.setdefault((one.M, one.K, one.N), []).append(one)
    return tuple(
        (_problem(*sizes, ", ".join(one.name for one in found)), sum(one.count for one in found))
        for sizes, found in alike.items()
    )


def _file(path: Path) -> tuple[Weighted, ...]:
    lines = read_text(path, PerfError, SETTINGS_BYTES_MAX).splitlines()
    told = [(i, line.split("#")[0].strip()) for i, line in enumerate(lines, 1)]
    found = tuple(_shape(line, f"{path}:{i}") for i, line in told if line)
    if not found:
        raise PerfError(f"{path}: holds no shape; write one MxKxN a line")
    return found


def _shape(text: str, where: str) -> Weighted:
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise PerfError(f"{where}: {clip(text)!r} is not {', '.join(NAMES)}, a file or MxKxN, such as 512x2560x2560*2")
    M, K, N, count = (int(part or 1) for part in match.groups()[:4])
    if not 1 <= count <= LARGEST_SIZE:
        raise PerfError(f"{where}: a count of {count} is not within 1 and {LARGEST_SIZE}")
    return _problem(M, K, N, match.group(5) or ""), count


def _problem(M: int, K: int, N: int, name: str) -> GemmProblem:
    for axis, size in (("M", M), ("K", K), ("N", N)):
        if not 1 <= size <= LARGEST_SIZE:
            raise PerfError(f"{M}x{K}x{N}: {axis} = {size} is not within 1 and {LARGEST_SIZE}")
    return GemmProblem(M, K, N, name)
