"""Rows of measured operators of others: sums, norms, rotations, products of one row, attention, GEMMs.

Columns are those of `data/measured_operators.csv`. `shape` is `1048576`, `2048x1024` or `2048x2048 d64/64 heads 32/8`;
`config` says how many cores worked, as its source does: `8/1/2048` columns, rows and tile, `8/8/8` cores and tiles of a
GEMV, `scaling: cols 4`, and of a GEMM `direct herd 8x4 tile 64/256/32/128` (m, k_mt, k, n). What is modelled is their
design: cores that take `data/compiled_operators.csv`'s cycles for each element, beside the port to DRAM.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

from bdforge.common.files import read_csv
from bdforge.common.messages import clip
from bdforge.devices.timing import timing_in, timing_of
from bdforge.devices.types import TYPES, TypeNameError, type_named
from bdforge.perf.bounds.compiled_operator import CompiledOperator
from bdforge.perf.csv_rows import parsed_rows
from bdforge.perf.errors import PerfError
from bdforge.perf.rows import DATA, Row, device_of, dispatch_of, row_from

MEASURED_OPERATORS = DATA / "measured_operators.csv"
OPERATOR_COLUMNS = ("device", "operator", "types", "shape", "config")
_DEFAULT_TYPE = "bf16"
_NAMES: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("eltwiseadd", "add", "eltwisemul", "mul", "sub", "eltwisesub", "max", "axpy"), ("add", 2)),
    **dict.fromkeys(("relu", "leakyrelu", "copy", "passthrough", "cast", "transpose"), ("add", 1)),
    **dict.fromkeys(("gelu", "silu", "swish", "sigmoid", "tanh", "exp", "softmax"), ("gelu", 1)),
    **dict.fromkeys(("silumul", "swiglu", "geglu", "gelumul"), ("silu_mul", 2)),
    **dict.fromkeys(("rmsnorm", "layernorm", "weightedrmsnorm", "groupnorm"), ("rmsnorm", 1)),
    "rope": ("rope", 2), "gemv": ("gemv", 1), "matvec": ("gemv", 1),
}  # fmt: skip
"""Operators by what sources call them, letters alone: whose form is taken, and how many elements are read for one."""
_MEASURED = {"eltwiseadd", "gelu", "silumul", "rmsnorm", "rope", "gemv"}  # what the forms were fitted to
_ATTENTION = re.compile(r"(\d+)[x×](\d+) d(\d+)(?:/\d+)? heads (\d+)/(\d+)")
_HERD = re.compile(r"herd (\d+)x(\d+) tile (\d+)/(\d+)/(\d+)/(\d+)")
_LARGEST = 1 << 40


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """A row of an operator that is no GEMM: its fields, its design, and the measured microseconds where there are."""

    fields: Mapping[str, str]
    case: CompiledOperator
    time_us: float | None

    @property
    def source(self) -> str:
        return self.fields.get("source", "")


def operator_rows(
    text: str, where: str, told: Callable[[], object] = lambda: None
) -> tuple[list[OperatorRow | Row], list[str]]:
    """Rows of a CSV, GEMMs as `rows.Row`, and what is wrong with the others, by line; PerfError as of `parsed_rows`."""
    return parsed_rows(text, where, OPERATOR_COLUMNS, operator_row, told=told)


@cache
def measured_operators() -> tuple[OperatorRow | Row, ...]:
    """The published measurements of this package; PerfError never."""
    return tuple(map(operator_row, read_csv(MEASURED_OPERATORS)))


def operator_row(fields: Mapping[str, str]) -> OperatorRow | Row:
    """A row from its fields; PerfError for what cannot be read."""
    fields = {name: (value or "").strip() for name, value in fields.items()}
    name = "".join(filter(str.isalpha, fields["operator"].lower()))
    if name == "gemm":
        return row_from(_gemm_fields(fields))
    case = _attention(fields) if "attention" in name else _of_elements(fields, name)
    return OperatorRow(fields, case, _milliseconds(fields))


def _milliseconds(fields: Mapping[str, str]) -> float | None:
    text = fields.get("ms", "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < _LARGEST:
        raise PerfError(f"ms is {clip(repr(text))}, not a positive number; leave it empty when unknown")
    return value * 1e3


def _gemm_fields(fields: dict[str, str]) -> dict[str, str]:
    """A GEMM of a herd as a row of the table of GEMMs."""
    sizes, herd = _whole(fields, "shape", 3), _HERD.search(fields["config"])
    if herd is None:
        raise PerfError(f"config is {clip(repr(fields['config']))}; of a GEMM it has `herd 8x4 tile m/k_mt/k/n`")
    over_m, over_n, m, k_mt, k, n = herd.groups()
    a, b, c = _types(fields)
    time_us = _milliseconds(fields)
    tops = f"{2 * prod(sizes) / time_us / 1e6:.6g}" if time_us else ""
    return fields | {
        "device": fields["device"], "dtype_a": a, "dtype_b": b,
        "dtype_c": c, "m_ct": m, "k_ct": k, "n_ct": n, "k_mt": k_mt, "rows": over_m, "cols": over_n, "b_layout": "row",
        "c_buffers": "", "rho": "", **dict(zip("MKN", map(str, sizes), strict=True)), "core_macs_per_cycle": "",
        "tops": tops, "time_us": f"{time_us:.6g}" if time_us else "", "notes": fields["config"],
    }  # fmt: skip


def _of_elements(fields: Mapping[str, str], name: str) -> CompiledOperator:
    """An operator whose cores take so many cycles for an element; PerfError lists the known ones."""
    if name not in _NAMES:
        known = ", ".join(sorted({*_NAMES, "attention", "gemm"}))
        raise PerfError(f"operator {clip(repr(fields['operator']))} is not known; known: {known}")
    form, read = _NAMES[name]
    sizes = _whole(fields, "shape", None)
    elements, (first, *_, last) = prod(sizes), (TYPES[type_].bytes for type_ in _types(fields))
    columns, cores = _cores(fields, form)
    written = sizes[0] if form == "gemv" else elements
    return _case(fields, form, elements / cores, 0.0, (cores, columns), (elements * read * first, written * last),
                 () if name in _MEASURED else (f"cycles=as of {form}",))  # fmt: skip


def _attention(fields: Mapping[str, str]) -> CompiledOperator:
    """All pairs of queries and keys, masked or not, since compiled causal kernels skip none; heads over all cores."""
    shape = _ATTENTION.fullmatch(fields["shape"])
    if shape is None:
        raise PerfError(f"shape is {clip(repr(fields['shape']))}; of attention it is `2048x2048 d64/64 heads 32/8`")
    queries, keys, head_dim, heads, kv_heads = map(int, shape.groups())
    array = device_of(fields["device"])
    cores = array.core_rows * array.columns
    size, near = TYPES[_types(fields)[0]].bytes, 64 if head_dim <= 96 else 128
    read = head_dim * size * (heads * queries + 2 * kv_heads * keys)
    assumed = () if head_dim == near else (f"cycles=as of attention d{near}, times {head_dim / near:.3g}",)
    scale = head_dim / near
    return _case(fields, f"attention_d{near}", scale * heads * queries * keys / cores, scale * heads * queries / cores,
                 (cores, array.columns), (read, heads * queries * head_dim * size), assumed)  # fmt: skip


def _case(
    fields: Mapping[str, str], form: str, elements: float, rows: float, cores: tuple[int, int],
    moved: tuple[float, float], assumed: tuple[str, ...],
) -> CompiledOperator:  # fmt: skip
    device = device_of(fields["device"]).name
    dispatch, said = dispatch_of({"notes": fields.get("note", ""), **fields})
    timing = timing_in(timing_of(device), device, dispatch=dispatch)
    unknown = (("device", device), ("types", _DEFAULT_TYPE), ("config", f"{cores[0]} cores in {cores[1]} columns"))
    filled = (f"{name}={value}" for name, value in unknown if not fields[name])
    return CompiledOperator(form, elements, rows, cores[1], *moved, timing, (*filled, *assumed, *said))


def _cores(fields: Mapping[str, str], form: str) -> tuple[int, int]:
    """Columns and cores that worked; PerfError where the array has fewer."""
    array, numbers = device_of(fields["device"]), [int(text) for text in re.findall(r"\d{1,6}", fields["config"])]
    columns = numbers[0] if numbers else array.columns
    rows = numbers[1] if len(numbers) > 1 and form not in ("gemv", "rope") else 1
    if not (1 <= columns <= array.columns and 1 <= rows <= array.core_rows):
        raise PerfError(
            f"config is {clip(repr(fields['config']))}: {columns} columns of {rows} cores; the array has "
            f"{array.columns} of {array.core_rows}"
        )
    return columns, columns * rows


def _types(fields: Mapping[str, str]) -> tuple[str, str, str]:
    """Types of A, B and C, the last one as often as it takes."""
    try:
        names = [type_named(text.strip()).name for text in (fields["types"] or _DEFAULT_TYPE).split(",")]
    except TypeNameError as error:
        raise PerfError(f"types: {error}") from None
    a, b, c = (*names, *[names[-1]] * 2)[:3]
    return a, b, c


def _whole(fields: Mapping[str, str], name: str, count: int | None) -> list[int]:
    """Sizes of a shape such as 2048x1024."""
    parts = re.split(r"\s*[x×]\s*", fields[name])
    sizes = [int(part) if re.fullmatch(r"\d{1,10}", part, re.ASCII) else 0 for part in parts]
    if not all(sizes) or prod(sizes) > _LARGEST or (count and len(sizes) != count):
        raise PerfError(
            f"{name} is {clip(repr(fields[name]))}; it is sizes such as {'x'.join(['1024'] * (count or 2))}"
        )
    return sizes
