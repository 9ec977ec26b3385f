"""Limits of sequence programs, operators and tools, with the places that enforce them."""

import ctypes
from collections.abc import Iterator
from tempfile import TemporaryFile

import numpy as np
from limit_table import Case, Limit, Place
from pydantic import TypeAdapter, ValidationError

from bd_patterns import Pattern
from bdforge.common.messages import InputError
from bdforge.design.manifest import Size as ManifestSize
from bdforge.design.sequences import planned
from bdforge.design.sequences.expression_text import WrongExpressionError, parsed
from bdforge.devices import device_named
from bdforge.devices.limits import SHIM
from bdforge.operators.contraction.walks import WalkReason, chain
from bdforge.operators.specs import Size
from bdforge.perf.errors import PerfError
from bdforge.perf.plots.pattern_plot import PlotError, order_grid, pattern_picture
from bdforge.perf.tune.shapes import shapes
from bdforge.runtime.built_design import BuildError
from bdforge.runtime.host_kernels import KernelFault, NativeKernel
from bdforge.runtime.service.origin import configured
from support.run_limits import RUN_LIMITS, RunLimit


def tool_limits() -> Iterator[Limit]:
    """Limits that no register has."""
    for limit in RUN_LIMITS.values():
        if limit.named:
            yield Limit(limit.named, limit.last, Place(_run(limit), limit.said, InputError))
    for name, number, *places in TABLE:
        yield from (Limit(name, number, place) for place in places)


def _run(limit: RunLimit) -> Case:
    return lambda n: planned(*limit.program(n), device_named("strix_halo")).words()


def _arguments(count: int) -> None:
    """A call of a kernel that looks at none."""
    NativeKernel(None, ctypes.CFUNCTYPE(None)(lambda: None), None, {})(*[np.zeros(1, np.int8)] * count)


def _pdi(size: int) -> None:
    """A hardware context's configuration of zeros."""
    with TemporaryFile() as file:
        file.truncate(size)
        configured("npu2", file.fileno(), [])


def _chain(bds: int) -> None:
    """A walk of so many lines that lie anyhow."""
    chain([[(1000 * i * i, 1, 1) for i in range(bds)], [(0, 8, 1)]], 16, SHIM)


def _picture(width: int) -> None:
    pattern_picture(Pattern((2,), (1,)), width)


OUTSIDE = "is not within 1 and 1048576"
TABLE: list[tuple] = [
    (
        "operators.specs.LARGEST_SIZE", 1 << 20,
        Place(TypeAdapter(Size).validate_python, "less than or equal to 1048576", ValidationError),
        Place(lambda n: shapes(f"{n}x1x1"), OUTSIDE, PerfError),
        Place(lambda n: shapes(f"1x1x{n}"), OUTSIDE, PerfError),
        Place(lambda n: shapes(f"1x1x1*{n}"), OUTSIDE, PerfError),
    ),
    (
        "design.manifest.SIZE_MAX", 1 << 40,
        Place(TypeAdapter(ManifestSize).validate_python, "less than or equal to 1099511627776", ValidationError),
    ),
    (
        "design.sequences.expression_text.LONGEST", 400,
        Place(lambda n: parsed("1".rjust(n), {}), "an expression has at most 400 characters", WrongExpressionError),
    ),
    ("operators.contraction.walks.MOST_BDS", 6, Place(_chain, "BDs a tile, at most 6 leave room", WalkReason)),
    ("runtime.host_kernels.MOST_ARGUMENTS", 24, Place(_arguments, "compiled kernels take at most 24", KernelFault)),
    ("runtime.service.origin.PDI_BYTES_MOST", 64 << 20, Place(_pdi, "it takes 1 to 67108864", BuildError)),
    (
        "perf.plots.pattern_plot.LARGEST", 1 << 20,
        Place(_picture, "give --width of 1 to 1048576", PlotError),
        Place(lambda n: order_grid(Pattern((n,), (1,)), 64), "the 1048576 elements that can be drawn", PlotError),
        Place(lambda n: order_grid(Pattern((2,), (n - 1,)), 64), "the 1048576 elements that can be drawn", PlotError),
    ),
]  # fmt: skip
