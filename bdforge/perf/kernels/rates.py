"""Cycles of kernels known only by published rates, as forms that were fitted to them.

`cycles = m·k·n / P + q·m·n`: P MACs per cycle in the inner loop, q cycles for each element of C that is loaded and
stored, two parameters for all rows of a generation and types. `data/kernel_forms.csv` holds those of xchesscc's
kernels, whose rates were published, with the share of our schedules that they reach. `data/compiled_forms.csv` holds
those of other compilers, known by the time of whole problems: each way of making a kernel by itself, with cycles for
each element of C when a tile is done (a pass that casts or drains it) and for each slab. `python -m tools.fit` makes
both files. What our own kernels take stands in `kernel_cost`, nothing fitted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bdforge.common.files import read_csv
from bdforge.devices import Generation
from bdforge.devices.timing import Timing
from bdforge.devices.types import PEAK_MACS, TYPES

FORMS_FILE = Path(__file__).parents[1] / "data" / "kernel_forms.csv"
COMPILED_FILE = FORMS_FILE.with_name("compiled_forms.csv")
_UNPACKED = {"int8": "int8", "bf16": "bfp16", "bfp16": "bfp16"}  # what 2- and 4-bit weights become, by A's type
_UNKNOWN_SHARE = 0.25  # of bf16's peak, for types that no unit multiplies

FormKey = tuple[str, str, str, str]
"""Generation and the types of A, B and C by name."""


@dataclass(frozen=True, slots=True)
class FittedKernel:
    """A fitted kernel: `macs_per_cycle` is P, `cycles_per_c` is q of the module's formula.

    `rows` published tiles or problems were fitted; their kernels reach `share` of the sequential schedule of the same
    tiles. `cycles_per_result` are spent on each element of C once its tile is done (None: as passes of ours have
    them), `cycles_per_slab` on each slab that a tile needs.
    """

    macs_per_cycle: float
    cycles_per_c: float
    rows: int
    share: float = 1.0
    note: str = ""
    cycles_per_result: float | None = None
    cycles_per_slab: float = 0.0

    def cycles(self, m: int, k: int, n: int) -> float:
        """Cycles of one m x k x n step."""
        return m * k * n / self.macs_per_cycle + self.cycles_per_c * m * n


Forms = Mapping[FormKey, FittedKernel]
CompiledForms = Mapping[tuple[str, FormKey], FittedKernel]
"""By the way in which a kernel was made, such as `peano`, and what it multiplies."""


@dataclass(frozen=True, slots=True)
class KernelCycles:
    """Cycles that a core spends on one tile of C, and where they come from; numbers or arrays.

    `cycles` are those of the kernels of one step m x k x n, `around` of all else in the step (calls, locks, loops),
    `ends` of zeroing and finishing the tile, `slab` at each slab of the tile. Where None, these take what calls and
    locks of compiled code were measured at, and the passes over C as `kernel_cost.pass_cycles` has them
    (`estimate.tile_cycles`).
    """

    cycles: Any
    basis: str
    around: Any = None
    ends: Any = None
    slab: float = 0.0


def switch_cycles(timing: Timing) -> int:
    """Cycles between two runs of a microkernel: a call and two lock operations, together the 50 of Wang et al."""
    return timing.kernel_call_cycles + 2 * timing.core_lock_cycles


@cache
def fitted_kernels() -> Forms:
    return {
        (row["generation"], row["a"], row["b"], row["c"]): FittedKernel(
            float(row["macs_per_cycle"]), float(row["cycles_per_c"]), int(row["rows"]), float(row["share"])
        )
        for row in read_csv(FORMS_FILE)
    }


@cache
def compiled_kernels() -> CompiledForms:
    """The forms of `data/compiled_forms.csv`."""
    return {
        (row["compiler"], (row["generation"], row["a"], row["b"], row["c"])): FittedKernel(
            float(row["macs_per_cycle"]), float(row["cycles_per_c"]), int(row["rows"]),
            cycles_per_result=float(row["cycles_per_result"]) if row["cycles_per_result"] else None,
            cycles_per_slab=float(row["cycles_per_slab"] or 0),
        )
        for row in read_csv(COMPILED_FILE)
    }  # fmt: skip


def fitted_kernel(generation: str, types: tuple[str, str, str], forms: Forms | None = None) -> FittedKernel:
    """The fitted form for these types, or the nearest one scaled; of `forms`, where others than ours are given.

    Packed int2 and int4 weights take the form of what they are unpacked to. Otherwise P scales with the peak of the
    operand types and q with the bytes of an element of C.
    """
    forms = fitted_kernels() if forms is None else forms
    a, b, c = types
    if b in ("int2", "int4"):
        b = _UNPACKED.get(a, b)
    if (generation, a, b, c) in forms:
        return forms[generation, a, b, c]
    key = min(forms, key=lambda known: _distance(known, (generation, a, b, c)))
    near = forms[key]
    share = _peak(generation, a, b) / _peak(*key[:3])
    size = TYPES[c].bytes / TYPES[key[3]].bytes
    note = f"scaled from {' x '.join(key[1:3])} to {key[3]}"
    return FittedKernel(near.macs_per_cycle * share, near.cycles_per_c * size, 0, near.share, note)


def _peak(generation: str, a: str, b: str) -> float:
    peaks = PEAK_MACS[generation]
    return peaks.get((a, b)) or peaks["bf16", "bf16"] * _UNKNOWN_SHARE


def _distance(known: FormKey, wanted: FormKey) -> tuple[float, ...]:
    """Same generation first, then A's type, B's type, and the nearest size of C."""
    sizes = abs(TYPES[known[3]].bytes - TYPES[wanted[3]].bytes)
    return (known[0] != wanted[0], known[1] != wanted[1], known[2] != wanted[2], sizes)


def compiled_share(types: tuple[str, str, str], generation: Generation) -> float:
    """Mean share of the sequential schedule that published compiled kernels of such types reach, at most 1.

    For types that nobody measured: those with the same A and C, else with the same A, else all of the generation.
    """
    a, b, c = types
    rows = [(key[1:], form) for key, form in fitted_kernels().items() if key[0] == generation.name]
    nearest = ((a, b, c), (a, None, c), (a, None, None), (None, None, None))
    known = (
        [form for key, form in rows if all(w in (None, k) for w, k in zip(wanted, key, strict=True))]
        for wanted in nearest
    )
    found = next(forms for forms in known if forms)
    return min(sum(form.rows * form.share for form in found) / sum(form.rows for form in found), 1.0)


def _form_of(compiler: str, wanted: FormKey, compiled: CompiledForms) -> FittedKernel | None:
    """A compiler's own form for a generation's A and B, with C of the nearest size."""
    known = [key for made, key in compiled if made == compiler and key[:3] == wanted[:3]]
    return compiled[compiler, min(known, key=lambda key: _distance(key, wanted))] if known else None


def kernel_cycles(
    generation: str, types: tuple[str, str, str], m: int, k: int, n: int, *,
    macs_per_cycle: float | None = None, forms: Forms | None = None, compiler: str = "",
    compiled: CompiledForms | None = None,
) -> KernelCycles:  # fmt: skip
    """Cycles of one step: m·k·n / `macs_per_cycle` when a rate is given, else the fitted form, of `forms` if given.

    `types` are those of A, B and C by name; `generation` is "AIE2" or "AIE2P". `compiler` made the kernel: its own form
    is taken where there is one for the types, of `compiled` if given.
    """
    if macs_per_cycle:
        return KernelCycles(m * k * n / macs_per_cycle, "assumed: the rate that was given")
    if own := _form_of(compiler, (generation, *types), compiled_kernels() if compiled is None else compiled):
        ends = None if own.cycles_per_result is None else own.cycles_per_result * m * n
        return KernelCycles(
            own.cycles(m, k, n), f"modelled: fitted form of {compiler}", ends=ends, slab=own.cycles_per_slab
        )
    form = fitted_kernel(generation, types, forms)
    return KernelCycles(form.cycles(m, k, n), f"modelled: fitted form{f' {form.note}' if form.note else ''}")
