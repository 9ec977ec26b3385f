"""Rows of measurement tables as cases. Empty means unknown: what is filled in instead is said with the row.

Columns are those of `data/measured_gemm.csv`; `bd_overlap`, `b_resident` (yes, no) and `compiler` may be added.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from bdforge.common.files import csv_text
from bdforge.common.messages import clip, listed, printable
from bdforge.devices.timing import timing_of
from bdforge.devices.topology import DEVICES, MLIR_DEVICES
from bdforge.devices.types import TYPES, Order, TypeNameError, order_named, type_named
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.tile_bound import fastest_tile
from bdforge.perf.bounds.traffic import padded
from bdforge.perf.errors import PerfError

DATA = Path(__file__).parent / "data"
MEASURED = DATA / "measured_gemm.csv"
"""Published measurements; sources are named in the column `source`."""

REQUIRED = (
    "device", "dtype_a", "dtype_b", "dtype_c", "m_ct", "k_ct", "n_ct", "k_mt", "rows", "cols", "b_layout", "c_buffers",
    "rho", "M", "K", "N",
)  # fmt: skip
_ALIASES = {"m": "m_ct", "k": "k_ct", "n": "n_ct", "columns": "cols"}
_DEVICES = (
    (r"strix[ _-]?halo|npu5|\b3[89]5\b", "strix_halo"),
    (r"krackan|npu6|ai7?-?350\b|\b350\b|\b340\b", "krackan"),
    (r"strix|npu4|hx[ -]?37\d|\b36[05]\b", "strix"),
    (r"hawk|8[78]\d0|8[68]\d5", "hawk_point"),
    (r"phoenix|7[5-9]40", "phoenix"),
    (r"npu2|xdna[ _-]?2|aie2p", "npu2"),
    (r"npu1|xdna|aie2|aie-?ml", "npu1"),
)
_DEFAULT_DEVICE = "npu2"
_STOCK_C_BUFFERS = 2  # depth of its queues
ROWS_MAX = 100_000
"""Of a table: a row without a tile takes milliseconds to model."""
_LARGEST = 1 << 30  # of any number in a table
_NUMBER = re.compile(r"[+-]?(\d{1,99}(\.\d{0,99})?|\.\d{1,99})([eE][+-]?\d{1,3})?", re.ASCII)
_NUMBERS = ("k_mt", "M", "K", "N", "m_ct", "k_ct", "n_ct", "rho")
_FIGURES = ("core_macs_per_cycle", "tops", "time_us", "clock_ghz")
"""Columns of whole numbers and of any; all are read, whatever a row's case needs of them."""
_USUAL_SIZE = 4096  # the size papers mean by "about 4K"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its fields as read, its case, and the measured TOPS when there are any.

    `core_only` rows give one core's kernel without a problem: their time is that of one m x k x n step.
    """

    fields: Mapping[str, str]
    case: GemmCase
    tops: float | None
    core_only: bool = False

    @property
    def source(self) -> str:
        return self.fields.get("source", "")

    @property
    def time_us(self) -> float | None:
        """Measured microseconds, from the TOPS when the table has no time."""
        if self.fields.get("time_us"):
            return float(self.fields["time_us"])
        return 2 * self.case.macs / self.tops / 1e6 if self.tops else None


def read_rows(text: str, where: str) -> list[Row]:
    """Rows of a CSV; PerfError names every missing column, or every row and field that cannot be read."""
    rows, faults = sound_rows(text, where)
    if faults:
        raise PerfError(listed(faults, "\n"))
    return rows


def sound_rows(text: str, where: str, told: Callable[[], object] = lambda: None) -> tuple[list[Row], list[str]]:
    """Rows of a CSV, and what is wrong with the others, by line; `told` of each.

    PerfError where columns are missing or twice there.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    _check_columns(reader, where)
    rows, faults = [], []
    for line_number, read in _lines(reader):
        try:
            if isinstance(read, PerfError):
                raise read
            rows.append(row_from(read))
        except PerfError as error:
            faults += [f"{where}: line {line_number}: {line}" for line in str(error).splitlines()]
        told()
    return rows, faults


def _check_columns(reader: csv.DictReader, where: str) -> None:
    try:
        names = [_column(name) for name in reader.fieldnames or ()]
    except csv.Error as error:
        raise PerfError(f"{where}: no CSV: {error}") from None
    if missing := [name for name in REQUIRED if name not in names]:
        raise PerfError(f"{where}: missing columns {', '.join(missing)}; add them, empty where a value is unknown")
    if twice := [name for name, count in Counter(names).items() if count > 1 and name]:
        raise PerfError(f"{where}: columns {listed(map(clip, twice))} are there twice; remove or rename one of each")


def _lines(reader: csv.DictReader) -> Iterator[tuple[int, dict[str, str] | PerfError]]:
    """The line where each row begins, and its fields by name, or what is wrong with it."""
    for number in range(ROWS_MAX + 1):
        first = reader.line_num + 1
        try:
            fields = next(reader)
            if number == ROWS_MAX:
                raise PerfError(f"more than {ROWS_MAX} rows are not read; split the table")
            found = _named(fields)
        except StopIteration:
            return
        except csv.Error as error:
            found = PerfError(f"no CSV: {error}")
        except PerfError as error:
            found = error
        yield first, found


def _named(fields: dict[Any, Any]) -> dict[str, str]:
    """Fields by the names of their columns; PerfError for a row that is none of the table's."""
    more = fields.pop(None, ())
    if any(cell.strip() for cell in more):
        raise PerfError(f"has {len(fields) + len(more)} fields, the table {len(fields)} columns; is a comma unquoted?")
    given = [value for value in fields.values() if value is not None]
    if not any(value.strip() for value in given):
        raise PerfError("every field is blank; remove the line")
    if len(given) < len(fields):
        raise PerfError(f"has {len(given)} fields, the table {len(fields)} columns; end it with a comma for each")
    named = {_column(name or ""): value for name, value in fields.items()}
    if odd := [name for name, value in named.items() if printable(value) != value]:
        raise PerfError(f"{listed(map(clip, odd))}: holds control characters; save the table as plain text")
    return named


def _column(name: str) -> str:
    name = name.strip()
    return _ALIASES.get(name, name)


def measured_rows() -> list[Row]:
    """The published measurements of this package."""
    return read_rows(MEASURED.read_text(encoding="utf-8"), MEASURED.name)


def row_from(fields: Mapping[str, str]) -> Row:
    """A row from its fields; PerfError lists every field that cannot be read."""
    reader = _Reader(fields)
    row = reader.row()
    if reader.faults:
        raise PerfError("\n".join(dict.fromkeys(reader.faults)))
    return row


class _Reader:
    """Reads one row; `faults` and `assumed` collect what is to be said about it."""

    def __init__(self, fields: Mapping[str, str]):
        self.fields = {name: value.strip() for name, value in fields.items() if value is not None}
        self.faults: list[str] = []
        self.assumed: list[str] = []

    def row(self) -> Row:
        facts = self.facts()
        for name in (*_NUMBERS, *_FIGURES):
            self.whole(name) if name in _NUMBERS else self.number(name)
        m, k, n = (self.whole(name) for name in ("m_ct", "k_ct", "n_ct"))
        core_only = facts["rows"] == facts["columns"] == 1 and not any(self.fields.get(name) for name in "MKN")
        if core_only:
            facts.update(c_buffers=2)  # a core alone is published without its wait for C
        rate, tops = self.number("core_macs_per_cycle"), self.number("tops")
        if rate is None:
            self.assumed.append("kernel rate=fitted form")
        if self.faults:
            return Row(self.fields, self.case(facts, 1, 1, 1, core_only), tops)
        if not (m and k and n):
            unnoted = list(self.assumed)
            m, k, n = fastest_tile((m, k, n), lambda m, k, n: self.case(facts, m, k, n, core_only))
            self.assumed = [*unnoted, f"tile={m}x{k}x{n}"]
        case = self.case({**facts, "core_macs_per_cycle": rate}, m, k, n, core_only)
        return Row(self.fields, replace(case, assumed=tuple(self.assumed)), tops, core_only)

    def facts(self) -> dict[str, Any]:
        """All of a case but its tile and what follows from the tile."""
        device = self.device()
        array = DEVICES.get(device) or MLIR_DEVICES[device]
        a, b, c = self.types()
        clock = self.number("clock_ghz")
        return {
            "device": device, "a": a, "b": b, "c": c,
            "rows": self.count("rows", array.core_rows, array.core_rows),
            "columns": self.count("cols", array.columns, array.columns),
            "b_layout": self.layout(b), "c_buffers": self.count("c_buffers", _STOCK_C_BUFFERS, 2),
            "rho": self.whole("rho") or 1, "clock_hz": clock * 1e9 if clock else None, "bd_overlap": self.overlap(),
            "b_kept": float(self.yes("b_resident")),
        }  # fmt: skip

    def case(self, facts: dict[str, Any], m: int, k: int, n: int, core_only: bool) -> GemmCase:
        k_mt = k if core_only else self.slab(k, facts)
        steps = (m * facts["rows"], k_mt, n * facts["columns"])
        M, K, N = (self.problem(name, step, core_only) for name, step in zip("MKN", steps, strict=True))
        return GemmCase(m=m, k=k, n=n, k_mt=k_mt, M=M, K=K, N=N, **facts)

    def number(self, name: str) -> float | None:
        """A positive number, or None when the field is empty or wrong (which is noted)."""
        text = self.fields.get(name, "")
        if not text:
            return None
        value = float(text) if _NUMBER.fullmatch(text) else 0.0
        if not 0 < value <= _LARGEST:
            self.faults.append(
                f"{name} is {clip(repr(text))}, not a positive number up to {_LARGEST}; leave it empty when unknown"
            )
            return None
        return value

    def whole(self, name: str) -> int | None:
        """A whole number of at least 1, or None."""
        value = self.number(name)
        if value is not None and value != int(value):
            self.faults.append(f"{name} is {clip(repr(self.fields[name]))}, not a whole number")
        return None if value is None else max(int(value), 1)

    def count(self, name: str, default: int, most: int) -> int:
        """A whole number from 1 to `most`; `default`, and a note, when the field is empty."""
        value = self.whole(name)
        if not self.fields.get(name):
            self.note(name, default)
        if value is not None and value > most:
            self.faults.append(f"{name} is {value}; the most is {most}")
        return value or default

    def device(self) -> str:
        text = self.fields.get("device", "").lower()
        if text in DEVICES or text in MLIR_DEVICES:
            return text
        if not text:
            return self.note("device", _DEFAULT_DEVICE)
        for pattern, name in _DEVICES:
            if re.search(pattern, text):
                return name
        self.faults.append(f"device {text!r} names no known product; known: {', '.join((*DEVICES, 'npu1', 'npu2'))}")
        return _DEFAULT_DEVICE

    def types(self) -> tuple[str, str, str]:
        a = self.type("dtype_a", "int8")
        b = self.type("dtype_b", a)
        return a, b, self.type("dtype_c", a)

    def named(self, name: str, default: Any, known: Callable[[str], Any], way: str = "") -> Any:
        """What a field names, or `default` and a note where it is empty; TypeNameErrors of `known` are noted."""
        if not (text := self.fields.get(name, "")):
            return self.note(name, default)
        try:
            return known(text)
        except TypeNameError as error:
            self.faults.append(f"{name}: {error}{way}")
            return default

    def type(self, name: str, default: str) -> str:
        return self.named(name, default, lambda text: type_named(text).name)

    def slab(self, k: int, facts: dict[str, Any]) -> int:
        """k_mt; unknown: the smallest multiple of k whose runs are long enough for requests of shims not to bind."""
        if known := self.whole("k_mt"):
            return padded(known, k)
        timing = timing_of(facts["device"])
        wanted = timing.long_run_bytes(facts["columns"]) / TYPES[facts["a"]].bytes
        deepest = padded(self.whole("K") or _USUAL_SIZE, k)
        return self.note("k_mt", min(padded(ceil(wanted), k), deepest))

    def problem(self, name: str, step: int, core_only: bool) -> int:
        """M, K or N; unknown: about 4096 in whole steps, or one step of a core alone."""
        if core_only:
            return step
        return self.whole(name) or self.note(name, max(round(_USUAL_SIZE / step), 1) * step)

    def note(self, name: str, value: Any) -> Any:
        self.assumed.append(f"{name}={value}")
        return value

    def layout(self, b: str) -> Order:
        assumed: Order = "packed" if TYPES[b].packed_only else "row"
        return self.named("b_layout", assumed, order_named, "; or empty when unknown")

    def yes(self, name: str) -> bool:
        """Whether a column that may be missing says yes."""
        text = self.fields.get(name, "").lower()
        if text not in ("", "yes", "no"):
            self.faults.append(f"{name} is {text!r}; it is yes or no, or empty")
        return text == "yes"

    def overlap(self) -> bool:
        """The column `bd_overlap`, or what source and notes say of it."""
        if self.fields.get("bd_overlap"):
            return self.yes("bd_overlap")
        said = f"{self.fields.get('source', '')} {self.fields.get('notes', '')}"
        if re.search(r"noBDoverlap|not overlapped|without BD overlap", said, re.IGNORECASE):
            self.assumed.append("bd_overlap=no (source and notes)")
            return False
        return True


ADDED = ("tops_modelled", "time_us_modelled", "time_us_low", "time_us_high", "bound", "estimate_of", "assumed")


def write_rows(rows: Iterable[tuple[Row, Mapping[str, str]]]) -> str:
    """A CSV of the rows' fields as read, with the added ones behind them."""
    pairs = list(rows)
    names = list(dict.fromkeys(name for row, _ in pairs for name in row.fields if name not in ADDED))
    lines = ([*(row.fields.get(name, "") for name in names), *(added[name] for name in ADDED)] for row, added in pairs)
    return csv_text([[*names, *ADDED], *lines])
