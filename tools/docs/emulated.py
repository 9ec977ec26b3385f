"""Estimates beside timed emulation, and our design beside stock tilings: `emulated.csv`.

`run_all` runs every comparison on the emulated array (minutes) and writes the table, from which docs/accuracy.md is
made. Kernels cost what their ideal schedule says, or that of a compiled loop nest; both columns of
a row use the same cycles, so that the difference is the models' own.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmPlan, GemmProblem, GemmSpec, load_spec, plan_gemm, spec_from
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.timed import timed
from bdforge.perf.tune.time_model import Basis, kernel_of

TABLE = Path(__file__).with_name("emulated.csv")

_STACK_BYTES = 1024  # of the published designs, whose tiles leave no room for more
_TERNARY, _INT8 = ("int8", "int2", "int32"), ("int8", "int8", "int32")
_OURS = "64x128x64 packed"
TUNED = Path(__file__).parents[2] / "designs" / "gemm_i8_i2_tuned.toml"
STOCK = ("stock 64x64x64, double C", "stock 128x64x64")
"""mlir-aie's whole_array tilings: column-major int8 B, k_mt = k."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One problem of one design on one device, in microseconds, both by model and by timed emulation."""

    group: str
    design: str
    device: str
    M: int
    K: int
    N: int
    kernel: str
    modelled_us: float
    bound: str
    emulated_us: float

    @property
    def difference(self) -> float:
        """Emulated over modelled time, minus 1."""
        return self.emulated_us / self.modelled_us - 1

    def tops(self, time_us: float) -> float:
        """10^12 operations per second in that time."""
        return 2 * self.M * self.K * self.N / time_us / 1e6


def _spec(
    name: str, types: tuple[str, ...], layouts: str, tile: tuple[int, int, int], *, columns: int = 8, **buffers: int
) -> GemmSpec:
    content: dict[str, Any] = {
        "kind": "gemm",
        "types": dict(zip(("a", "b", "c"), types, strict=True)),
        "layouts": dict(zip("abc", layouts.split(), strict=True)),
        "array": {"rows": 4, "columns": columns},
        "tile": dict(zip("mkn", tile, strict=True)),
        "buffers": {"stack_bytes": _STACK_BYTES, **buffers},
    }
    return spec_from(content, name)


def _column(name: str, types: tuple[str, ...], tile: tuple[int, int, int], **more: int) -> GemmSpec:
    return _spec(name, types, "row column row", tile, **more)


OURS = _spec(_OURS, _TERNARY, "row packed row", (64, 128, 64), k_mt=256)
STOCKS = (
    _column(STOCK[0], _INT8, (64, 64, 64), c_buffers=2),
    _column(STOCK[1], _INT8, (128, 64, 64)),
)
_SHORT = {"c_memtile_buffers": 1}
AGREEMENT: tuple[tuple[GemmSpec, str, tuple[int, int, int]], ...] = (
    (OURS, "strix_halo", (256, 2560, 2560)),
    (OURS, "strix_halo", (1024, 2560, 2560)),
    (STOCKS[0], "strix_halo", (1024, 2560, 2560)),
    (STOCKS[1], "strix_halo", (1024, 2560, 2560)),
    (_spec("int8 64x64x64, row-major B", _INT8, "row row row", (64, 64, 64)), "strix_halo", (1024, 1024, 2560)),
    (_column("int8-int32 96x64x96", _INT8, (96, 64, 96), k_mt=384, **_SHORT), "krackan", (1536, 1536, 1536)),
    (_column("int8-int8 144x72x144", ("int8",) * 3, (144, 72, 144), k_mt=432, **_SHORT), "krackan", (2304, 2160, 2304)),
    (_column("bf16 112x48x96", ("bf16",) * 3, (112, 48, 96), k_mt=384, **_SHORT), "krackan", (1792, 1536, 1536)),
    (
        _spec(
            "bf16 x bfp16 64x64x64, rho 2", ("bf16", "bfp16", "bf16"), "row packed row", (64, 64, 64), k_mt=256, rho=2
        ),
        "strix",
        (1024, 2048, 2048),
    ),
    (
        _column("int8-int8 112x112x112", ("int8",) * 3, (112, 112, 112), columns=4, k_mt=448),
        "phoenix",
        (1792, 1792, 1792),
    ),
    (
        _spec("int8 32x64x32, row-major B, half of the columns", _INT8, "row row row", (32, 64, 32), columns=4),
        "strix_halo",
        (512, 512, 1280),
    ),
    (
        _spec("int8 64x32x64, row-major B, half of the columns", _INT8, "row row row", (64, 32, 64), columns=4),
        "strix_halo",
        (512, 1280, 1280),
    ),
    (_column("bf16 64x64x64, column-major B", ("bf16",) * 3, (64, 64, 64)), "strix_halo", (1024, 2048, 1024)),
    (_column("int8 64x64x64, one column", _INT8, (64, 64, 64), columns=1), "strix_halo", (512, 640, 512)),
    (_column("bf16 96x56x96", ("bf16",) * 3, (96, 56, 96), columns=4, k_mt=224), "phoenix", (1536, 1120, 1536)),
    (
        _spec("ternary 48x128x64", _TERNARY, "row packed row", (48, 128, 64), columns=4, k_mt=256),
        "phoenix",
        (768, 2560, 2560),
    ),
)
"""Designs of many kinds on which both models apply: types, layouts, devices, and what binds."""
SHAPES = ((1024, 2560, 2560), (1024, 2560, 640), (1024, 2560, 13824), (1024, 6912, 2560))
"""BitNet-2B's layers with 1024 tokens."""


def side_by_side() -> Iterator[Comparison]:
    """Our designs and the stock tilings on BitNet's layers, for the ideal and for compiled kernels."""
    for spec in (OURS, replace(load_spec(TUNED), name="tuned, packed"), *STOCKS):
        plan = plan_gemm(spec, device_named("strix_halo"))
        for basis in ("ideal", "compiled"):
            for shape in SHAPES:
                yield compare("side by side", plan, GemmProblem(*shape), basis)


def agreement() -> Iterator[Comparison]:
    """Both models on the designs of `AGREEMENT`."""
    for spec, device, shape in AGREEMENT:
        yield compare("agreement", plan_gemm(spec, device_named(device)), GemmProblem(*shape), "ideal")


def compare(group: str, plan: GemmPlan, problem: GemmProblem, basis: Basis) -> Comparison:
    """Both models on one problem, with the same kernel cycles."""
    case = case_of(plan.spec, plan.device, problem)
    modelled = estimate(case, kernel=kernel_of(case, basis))
    emulated = timed(plan, problem, basis)
    return Comparison(
        group, plan.spec.name, plan.device.name, problem.M, problem.K, problem.N, basis,
        round(modelled.time_us, 1), modelled.bound, round(emulated.seconds * 1e6, 1),
    )  # fmt: skip


def read_table(path: Path = TABLE) -> list[Comparison]:
    """The comparisons as they were written."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_typed(row) for row in csv.DictReader(file)]


def _typed(row: dict[str, str]) -> Comparison:
    kinds = {"int": int, "float": float, "str": str, int: int, float: float, str: str}
    return Comparison(**{f.name: kinds[f.type](row[f.name]) for f in fields(Comparison)})  # type: ignore[index]


def write_table(rows: Iterable[Comparison], path: Path = TABLE) -> None:
    """Write comparisons for `read_table`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Comparison)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def run_all() -> Iterator[str]:
    """Run everything, telling of each comparison, and write the table."""
    rows = []
    for row in chain(agreement(), side_by_side()):
        yield f"{row.design} on {row.device}, {row.M}x{row.K}x{row.N}: {row.difference:+.1%}"
        rows.append(row)
    write_table(rows)
