"""One core: its kernels by schedule and by count, the tiles that the published walk names, stages of instructions."""

from dataclasses import dataclass, replace
from functools import cache

from bdforge.core.codegen.kernels import assembled
from bdforge.core.isa import load
from bdforge.core.isa.flow import DELAY_SLOTS
from bdforge.core.isa.forms import FormTiming
from bdforge.devices import Device, device_named
from bdforge.devices.types import TYPES, peak_macs
from bdforge.operators.gemm import GemmProblem, plan_gemm, spec_from
from bdforge.perf.assembled.counted_core import CoreCosts, core_costs
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.kernel_cost import kernel_cost, mlir_aie_blocking, pass_cycles
from bdforge.perf.reproduce.entries import Fields
from bdforge.perf.reproduce.quantity import Producer, Quantity
from bdforge.perf.tune.balanced_tiles import FIXED, Balance, RankedTile, balance
from bdforge.perf.tune.space import search_space

_EDGES = (64, 68, 72, 76)
"""Sides of tiles, a whole number of blocks and what is more."""


@dataclass(frozen=True, slots=True)
class CoreTile:
    """A matrix kernel on a tile m x k x n, which `rho` calls make; `types` are those of A, B and the accumulator.

    `kind` is "mm", or "lut" of products by tables; `turned` names the operands that lie column by column.
    """

    device: Device
    types: tuple[str, str, str]
    m: int
    k: int
    n: int
    rho: int = 1
    kind: str = "mm"
    turned: str = ""

    @property
    def macs(self) -> int:
        return self.m * self.k * self.n

    def sequential(self, b: str = "") -> float:
        """Cycles of a compiled loop nest, in mlir-aie's blocks; of another type of B where given."""
        a, own, c = self.types
        generation = self.device.generation
        found = kernel_cost(
            (a, b or own, c), self.m, self.k, self.n, generation=generation,
            blocking=mlir_aie_blocking(generation, a),
        )  # fmt: skip
        return found.sequential_cycles

    @property
    def issued(self) -> int:
        """Bundles of all calls of the assembled kernel; CodegenError where there is none."""
        sizes = {"DIM_M": self.m, "DIM_K": self.k, "DIM_N": self.n} | ({"DIM_RHO": self.rho} if self.rho > 1 else {})
        symbol = "_".join((self.kind, *(TYPES[name].code for name in self.types)))
        options = [*(f"{name}={size}" for name, size in sizes.items()), *(f"{x}_TRANSPOSED" for x in self.turned)]
        cycles = assembled(symbol, self.device.generation.name.lower(), options).cycles
        if cycles is None:
            raise PerfError(f"nobody counted {symbol}")
        return cycles * self.rho

    @property
    def counted(self) -> float:
        """The same with stalls at the core's own banks, in a core of a whole design."""
        costs = _counted(self)
        return costs.step.of(costs.multiply)

    def percent(self, cycles: float) -> float:
        """Of the peak of these types."""
        return 100 * self.macs / cycles / peak_macs(self.device.generation.name, *self.types[:2])

    def edge_place(self, *, slowest: bool) -> int:
        """Its place among compiled tiles of its k whose m or n are no whole blocks, from the slowest or the fastest."""
        pairs = [(m, n) for m in _EDGES for n in _EDGES if (m, n) != _EDGES[:1] * 2]
        rates = [tile.macs / tile.sequential() for tile in (replace(self, m=m, n=n) for m, n in pairs)]
        own = self.macs / self.sequential()
        return 1 + sum(rate < own if slowest else rate > own for rate in rates)

    @property
    def lost_points(self) -> float:
        """Of the peak, against the kernel whose operands all lie row by row."""
        return self.percent(replace(self, turned="").issued) - self.percent(self.issued)

    @property
    def zero_percent(self) -> float:
        """Zeroing C, in time of one call of the kernel."""
        zero = pass_cycles(f"zero_{TYPES[self.types[2]].code}", self.m * self.n, self.device.generation)
        return 100 * zero / self.sequential()


@cache
def _counted(tile: CoreTile) -> CoreCosts:
    a, b, c = tile.types
    content = {
        "kind": "gemm", "types": {"a": a, "b": b, "c": c, "accumulator": c},
        "layouts": {"a": "row", "b": "packed", "c": "row"},
        "array": {"rows": tile.device.core_rows, "columns": tile.device.columns},
        "tile": {"m": tile.m, "k": tile.k, "n": tile.n}, "buffers": {"k_mt": tile.k},
    }  # fmt: skip
    return core_costs(plan_gemm(spec_from(content, "tile"), tile.device))


def _core_tile(fields: Fields) -> CoreTile:
    a, b, c = fields["types"].split(",")
    m, k, n = _sizes(fields["tile"])
    rho, kind = int(fields.get("rho", 1)), fields.get("kernel", "mm")
    return CoreTile(device_named(fields["device"]), (a, b, c), m, k, n, rho, kind, fields.get("turned", ""))


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split("x")]


KERNELS = Producer(
    _core_tile,
    {
        "bundles": Quantity("bundles", "counted", lambda tile: tile.issued),
        "cycles": Quantity("cycles", "counted", lambda tile: tile.counted),
        "issued_rate": Quantity("MACs/cycle", "counted", lambda tile: tile.macs / tile.issued),
        "assembled_percent": Quantity("% of peak", "counted", lambda tile: tile.percent(tile.counted)),
        "issued_percent": Quantity("% of peak", "counted", lambda tile: tile.percent(tile.issued)),
        "compiled_percent": Quantity("% of peak", "modelled", lambda tile: tile.percent(tile.sequential())),
        "slowest_place": Quantity("of 15", "modelled", lambda tile: tile.edge_place(slowest=True)),
        "fastest_place": Quantity("of 15", "modelled", lambda tile: tile.edge_place(slowest=False)),
        "lost_points": Quantity("% of peak", "counted", lambda tile: tile.lost_points),
        "zero_percent": Quantity("% of a call", "modelled", lambda tile: tile.zero_percent),
        "int4_times": Quantity("x int8", "modelled", lambda tile: tile.sequential() / tile.sequential("int4")),
    },
)


@dataclass(frozen=True, slots=True)
class WalkedTile:
    """A published tile beside the one that the walk of `balance` names in its place: of a "core" the fastest, of the
    "array" the one at its k."""

    published: RankedTile
    named: RankedTile
    balanced: RankedTile
    stage: str

    @property
    def times_named(self) -> float:
        """What the walk looks for, of the named one over the published one: MACs per cycle, or MACs at a k."""
        if self.stage == "core":
            return self.named.macs_per_cycle / self.published.macs_per_cycle
        return self.named.macs / self.published.macs


@cache
def _walk(device: str, types: str, shape: str, stack: int) -> Balance:
    M, K, N = _sizes(shape)
    problem = GemmProblem(M, K, N)
    space = search_space(
        device_named(device), types, problem.K, b_layouts=("column",), fixed=FIXED, stack_bytes=stack
    )  # fmt: skip
    return balance(space, "fitted", problem)


def _walked(fields: Fields) -> WalkedTile:
    walk, stage = _walk(fields["device"], fields["types"], fields["shape"], int(fields["stack"])), fields["stage"]
    depth = _sizes(fields["tile"])[1]
    named = next((tile for tile in walk.walk if tile.k == depth), walk.ranked[0])
    for tile in walk.ranked:
        if str(tile) == fields["tile"]:
            return WalkedTile(tile, walk.ranked[0] if stage == "core" else named, walk.steps[-1], stage)
    raise PerfError(f"{fields['tile']} does not fit a core beside a stack of {fields['stack']} bytes")


TILES = Producer(
    _walked,
    {
        "times_named": Quantity("x published", "modelled", lambda tile: tile.times_named),
        "times_balanced": Quantity("x time", "modelled", lambda tile: tile.published.time_us / tile.balanced.time_us),
    },
    note=lambda tile: f"named {tile.named}" + (f", balanced {tile.balanced}" if tile.stage == "array" else ""),
)


@dataclass(frozen=True, slots=True)
class FormStages:
    """The stages of a form's `result`, and of the operand into which it sums, if it does (`FormTiming`)."""

    timing: FormTiming
    result: str
    sums: str

    @property
    def latency(self) -> int:
        """Cycles until what reads at once finds the result."""
        return self.timing.defs[self.result]

    @property
    def distance(self) -> int:
        """Cycles between two that sum into the same register."""
        return self.latency - self.timing.uses[self.sums] + 1


def _form(fields: Fields) -> FormStages:
    timing = load(fields["generation"]).forms[fields["form"]].timing
    return FormStages(timing, fields.get("result", ""), fields.get("sums", ""))


FORMS = Producer(
    _form,
    {
        "latency": Quantity("cycles", "counted", lambda form: form.latency),
        "distance": Quantity("cycles", "counted", lambda form: form.distance),
        "jump": Quantity("cycles", "counted", lambda _: 1 + DELAY_SLOTS),
    },
)
