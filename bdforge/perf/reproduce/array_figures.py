"""Whole designs of any operator: what a run takes, what its sequence has in flight, what a configuration weighs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from bdforge.array.lower.configuration import StaticConfiguration, configuration
from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.common.files import read_toml
from bdforge.common.tree import tree
from bdforge.design.sequences.interpret import Start, StartedTask
from bdforge.devices import device_named
from bdforge.devices.timing import Timing, timing_in, timing_of
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import Operation, Write
from bdforge.devices.types import peak_macs
from bdforge.operators import Plan, Problem, SpecError, operator_of, plan, render, spec_from
from bdforge.operators.contraction import contraction, plan_contraction
from bdforge.operators.gemm import GemmPlan, load_spec, plan_gemm
from bdforge.perf.assembled.counted_core import core_elfs
from bdforge.perf.bounds.composition_time import change_us
from bdforge.perf.bounds.contraction import ContractionCase, contraction_case
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.bounds.load_time import packets_us
from bdforge.perf.bounds.operator_bound import cost_estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.operator_rows import OperatorRow, operator_row
from bdforge.perf.reproduce.entries import Fields
from bdforge.perf.reproduce.quantity import Producer, Quantity
from bdforge.perf.rows import Row
from bdforge.perf.timed import timed


@dataclass(frozen=True, slots=True)
class DesignRun:
    """A problem of a planned design."""

    plan: Plan
    problem: Problem

    @property
    def modelled_us(self) -> float:
        return cost_estimate(self.plan, self.problem, timing_of(self.plan.device)).time_us

    @property
    def emulated_us(self) -> float:
        """With a dispatch, as the modelled one has it."""
        return (
            timed(self.plan, self.problem, "compiled").array_seconds * 1e6
            + timing_of(self.plan.device).dispatch_ns / 1e3
        )

    def gb_s(self, us: float) -> float:
        cost = self.plan.cost(self.problem)
        return (cost.read_bytes + cost.write_bytes) / us / 1e3

    @property
    def shim_bds(self) -> Mapping[int, list[set[int]]]:
        """By column the BDs that each step of the sequence starts."""
        found: dict[int, list[set[int]]] = {}
        for event in self.plan.sequence(self.problem).events:
            started = [each for each in getattr(event, "items", ()) if isinstance(each, StartedTask)]
            for column in {each.column for each in started} if isinstance(event, Start) else ():
                own = {bd.bd_id for each in started if each.column == column for bd in each.bds}
                found.setdefault(column, []).append(own)
        return found


def _run(fields: Fields) -> DesignRun:
    """`design` with `set` keys changed, such as set=array.rows:1,tile:2048, on `device`, for `sizes` such as 1x1024."""
    path, device = tree() / "designs" / f"{fields['design']}.toml", device_named(fields["device"])
    content = read_toml(path, SpecError)
    for change in filter(None, fields.get("set", "").split(",")):
        _change(content, *change.split(":"))
    spec = spec_from(content, fields["design"], str(path))
    sizes = [int(size) for size in fields["sizes"].split("x")]
    return DesignRun(plan(spec, device), operator_of(spec).problem(sizes))


def _change(content: dict[str, Any], key: str, value: str) -> None:
    *sections, last = key.split(".")
    for section in sections:
        content = content.setdefault(section, {})
    content[last] = int(value) if value.isdecimal() else value == "true" if value in ("true", "false") else value


OPERATORS = Producer(
    _run,
    {
        "ms": Quantity("ms", "modelled", lambda run: run.modelled_us / 1e3, lambda run: run.emulated_us / 1e3),
        "gb_s": Quantity(
            "GB/s", "modelled", lambda run: run.gb_s(run.modelled_us), lambda run: run.gb_s(run.emulated_us)
        ),
        "shim_bds": Quantity("BDs", "counted", lambda run: max(len(set().union(*s)) for s in run.shim_bds.values())),
        "bds_a_token": Quantity("BDs", "counted", lambda run: max(len(b) for s in run.shim_bds.values() for b in s)),
    },
)


def _compiled_ms(row: OperatorRow | Row) -> float:
    us = row.case.time_us() if isinstance(row, OperatorRow) else estimate(row.case).time_us
    return us / 1e3


COMPILED = Producer(
    operator_row,
    {"ms": Quantity("ms", "modelled", _compiled_ms)},
    lambda row: f"{row.fields['shape']}, {row.fields['config']}",
)
"""Runs of others' designs, their kernels as compiled."""


@dataclass(frozen=True, slots=True)
class Contracted:
    """A contraction on the array, by the kernel's published rate, and the peak that its share is of, in GFLOPS.

    `before`: the same in the power mode that it is compared with, where there is one.
    """

    found: Estimate
    peak_gflops: float
    before: "Contracted | None" = None

    @property
    def gflops(self) -> float:
        return self.found.tops * 1e3

    @property
    def percent_of_peak(self) -> float:
        return 100 * self.gflops / self.peak_gflops

    @property
    def points_lost(self) -> float:
        """Of the peak, against the power mode before."""
        if self.before is None:
            raise PerfError("no other power mode is named")
        return self.before.percent_of_peak - self.percent_of_peak


def _contracted(fields: Fields) -> Contracted:
    """`einsum` of sizes such as a:64,b:32 by `design` with a core's `tile`, operands `staged` before, in a mode of
    `power`; compared with that in the mode `over`."""
    spec, device = load_spec(tree() / "designs" / f"{fields['design']}.toml"), device_named(fields["device"])
    m, k, n = (int(size) for size in fields["tile"].split("x"))
    spec = replace(spec, tile=replace(spec.tile, m=m, k=k, n=n), buffers=replace(spec.buffers, k_mt=k), problems=())
    sizes = {pair[0]: int(pair[2:]) for pair in fields["labels"].split(",")}
    operands = {"staged": ""} if fields["staged"] == "none" else {"once": fields["staged"]}
    planned = plan_contraction(contraction(fields["einsum"], sizes), plan_gemm(spec, device), **operands)
    case = contraction_case(planned, core_macs_per_cycle=float(fields["rate"]))
    over = _in_mode(case, fields["over"]) if "over" in fields else None
    return replace(_in_mode(case, fields.get("power", "turbo")), before=over)


def _in_mode(case: ContractionCase, power: str) -> Contracted:
    array, hz = case.array, timing_in(case.timing, case.device, power=power).array_hz
    macs = array.columns * array.core_rows * peak_macs(array.generation.name, case.a, case.b)
    return Contracted(estimate(replace(case, clock_hz=hz)), 2 * macs * hz / 1e9)


CONTRACTIONS = Producer(
    _contracted,
    {
        "gflops": Quantity("GFLOPS", "modelled", lambda made: made.gflops),
        "percent_of_peak": Quantity("% of peak", "modelled", lambda made: made.percent_of_peak),
        "points_lost": Quantity("% of peak", "modelled", lambda made: made.points_lost),
    },
)


@cache
def _configuration(design: str, device: str) -> StaticConfiguration:
    """All register writes of a GEMM design with assembled cores; CodegenError where a kernel is not assembled."""
    planned = plan(load_spec(tree() / "designs" / f"{design}.toml"), device_named(device))
    if not isinstance(planned, GemmPlan):
        raise PerfError(f"{design}: is no GEMM")
    text = render(planned, [])
    op = next(op for op in parse(text).walk() if isinstance(op, DeviceOp))
    programs = {tile: elf.code for tile, elf in core_elfs(planned, text).items()}
    return configuration(op, lambda path, _: (), programs_of=programs)


@dataclass(frozen=True, slots=True)
class WrittenConfiguration:
    """A configuration, with the times of a product."""

    found: StaticConfiguration
    timing: Timing

    @classmethod
    def of(cls, fields: Fields) -> "WrittenConfiguration":
        return cls(_configuration(fields["design"], fields["device"]), timing_of(fields["device"]))

    @property
    def writes_us(self) -> float:
        return change_us(self.found.operations, self.timing)

    @property
    def kb(self) -> float:
        return encode(self.found.operations, self.found.device).nbytes / 1024

    def run_us(self, operations: Iterable[Operation]) -> float:
        """A run of a full ELF whose control packets write what the operations do."""
        return self.timing.elf_dispatch_ns / 1e3 + packets_us(operations, self.timing)


CONFIGURATIONS = Producer(
    WrittenConfiguration.of,
    {
        "write_us": Quantity("us", "modelled", lambda one: one.writes_us),
        "write_ms": Quantity("ms", "modelled", lambda one: one.writes_us / 1e3),
        "packets_run_us": Quantity("us", "modelled", lambda one: one.run_us(one.found.operations)),
        "program_packets_run_us": Quantity("us", "modelled", lambda one: one.run_us(one.found.parts[0])),
        "one_packet_run_us": Quantity("us", "modelled", lambda one: one.run_us([Write(0, 0)])),
        "kb": Quantity("KiB", "counted", lambda one: one.kb),
    },
)
