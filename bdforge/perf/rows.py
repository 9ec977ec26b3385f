"""Rows of measurement tables as cases. Empty means unknown: what is filled in instead is said with the row.

Columns are those of `data/measured_gemm.csv`; `bd_overlap`, `b_resident` (yes, no), `compiler` and `dispatch` may be
added. Where they are missing or empty, what source and notes say of them counts (`row_notes`).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from bdforge.common.files import csv_text
from bdforge.common.messages import clip, listed
from bdforge.devices.timing import DISPATCHES, timing_of
from bdforge.devices.topology import DEVICES, MLIR_DEVICES, Device
from bdforge.devices.types import TYPES, Order, TypeNameError, order_named, type_named
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.tile_bound import fastest_tile
from bdforge.perf.bounds.traffic import padded
from bdforge.perf.csv_rows import parsed_rows
from bdforge.perf.errors import PerfError
from bdforge.perf.row_notes import RowNotes

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
_STOCK_TILE = 64  # m, k and n of IRON's GEMM when nothing else is asked
_LARGEST = 1 << 30  # of any number in a table
_NUMBER = re.compile(r"[+-]?(\d{1,99}(\.\d{0,99})?|\.\d{1,99})([eE][+-]?\d{1,3})?", re.ASCII)
_NUMBERS = ("k_mt", "M", "K", "N", "m_ct", "k_ct", "n_ct", "rho")
_FIGURES = ("core_macs_per_cycle", "tops", "time_us", "clock_ghz")
"""Columns of whole numbers and of any; all are read, whatever a row's case needs of them."""
_USUAL_SIZE = 4096  # the size papers mean by "about 4K"
_ACROSS: Mapping[Order, Order] = {"row": "column", "column": "row", "packed": "packed"}


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
    return parsed_rows(text, where, REQUIRED, row_from, column=_column, told=told)


def _column(name: str) -> str:
    name = name.strip()
    return _ALIASES.get(name, name)


def device_of(text: str) -> Device:
    """The array of a device as sources name it; PerfError lists the known ones."""
    reader = _Reader({"device": text})
    name = reader.device()
    if reader.faults:
        raise PerfError(reader.faults[0])
    return DEVICES.get(name) or MLIR_DEVICES[name]


def dispatch_of(fields: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """How a row's runs are handed over, by its column or what source and notes say, and what is to be said about it."""
    reader = _Reader(fields)
    found = reader.said("dispatch", tuple(DISPATCHES))
    if reader.faults:
        raise PerfError(reader.faults[0])
    return found, tuple(reader.assumed)


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
        self.words = RowNotes.of(self.fields)
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
        if not (m or k or n) and self.words.stock:
            m = k = n = self.note("tile", _STOCK_TILE)
        if not (m and k and n):
            unnoted, named = list(self.assumed), m and n
            m, k, n = fastest_tile((m, k, n), lambda m, k, n: self.case(facts, m, k, n, core_only))
            self.assumed = [*unnoted, f"k_ct={k}" if named else f"tile={m}x{k}x{n}"]
        case = self.case({**facts, "core_macs_per_cycle": rate}, m, k, n, core_only)
        return Row(self.fields, replace(case, assumed=tuple(self.assumed)), tops, core_only)

    def facts(self) -> dict[str, Any]:
        """All of a case but its tile and what follows from the tile."""
        device = self.device()
        array = DEVICES.get(device) or MLIR_DEVICES[device]
        a, b, c = self.types()
        clock = self.number("clock_ghz")
        rows, columns, turned = self.cores(array)
        layout = self.layout(b)
        layouts = {"a_layout": _ACROSS[layout], "b_layout": "column", "c_layout": "column"} if turned else {}
        return {
            "device": device, "a": a, "b": b, "c": c, "rows": rows, "columns": columns,
            "b_layout": layout, **layouts, "c_buffers": self.count("c_buffers", _STOCK_C_BUFFERS, 2),
            "rho": self.whole("rho") or 1, "clock_hz": clock * 1e9 if clock else None,
            "bd_overlap": self.said("bd_overlap", ("yes", "no")) == "yes",
            "b_kept": float(self.resident(b)),
            "compiler": self.said("compiler", None), "dispatch": self.said("dispatch", tuple(DISPATCHES)),
        }  # fmt: skip

    def cores(self, array: Device) -> tuple[int, int, bool]:
        """Rows and columns of cores, and whether M goes over columns and N over rows: C is modelled turned then.

        So it does where more rows are given than the array has, and in a herd of mlir-air (`herd 8x4` in the notes).
        """
        herd, given = self.words.herd, (self.whole("rows"), self.whole("cols"))
        over_m, over_n = herd if any(herd) else given
        if not (over_m and over_n):
            over_m = over_n = 0
        if 0 < over_m <= array.columns and over_n <= array.core_rows and (any(herd) or over_m > array.core_rows):
            self.assumed.append("M over columns, N over rows")
            return over_n, over_m, True
        rows = self.count("rows", array.core_rows, array.core_rows)
        return rows, self.count("cols", array.columns, array.columns), False

    def case(self, facts: dict[str, Any], m: int, k: int, n: int, core_only: bool) -> GemmCase:
        k_mt, names = k if core_only else self.slab(k, facts), "MKN"
        if "a_layout" in facts:
            m, n, names = n, m, "NKM"
        steps = (m * facts["rows"], k_mt, n * facts["columns"])
        M, K, N = (self.problem(name, step, core_only) for name, step in zip(names, steps, strict=True))
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
        if self.words.stock and facts["b_layout"] != "packed":
            return self.note("k_mt", k)
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

    def resident(self, b: str) -> bool:
        """Whether B is read once and stays in memtiles."""
        if self.fields.get("b_resident"):
            return self.said("b_resident", ("no", "yes")) == "yes"
        depth, n = self.whole("K") or 0, self.whole("n_ct") or 0
        if stays := self.words.resident(depth, depth * n * TYPES[b].bytes):
            self.assumed.append("b_resident=yes (source and notes)")
        return stays

    def said(self, name: str, choices: tuple[str, ...] | None) -> str:
        """A column that may be missing, or what source and notes say of it; the first of `choices` where neither does.

        None is any word, and none.
        """
        default = choices[0] if choices else ""
        if text := self.fields.get(name, "").lower():
            if choices and text not in choices:
                self.faults.append(f"{name} is {clip(repr(text))}; it is {listed(choices, ' or ')}, or empty")
                return default
            return text
        found = self.words.value(name) or default
        if found != default:
            self.assumed.append(f"{name}={found} (source and notes)")
        return found


ADDED = ("tops_modelled", "time_us_modelled", "time_us_low", "time_us_high", "bound", "estimate_of", "assumed")


def write_rows(rows: Iterable[tuple[Mapping[str, str], Mapping[str, str]]]) -> str:
    """A CSV of rows' fields as read, with the added ones behind them."""
    pairs = list(rows)
    names = list(dict.fromkeys(name for fields, _ in pairs for name in fields if name not in ADDED))
    lines = ([*(fields.get(name, "") for name in names), *(added[name] for name in ADDED)] for fields, added in pairs)
    return csv_text([[*names, *ADDED], *lines])
