"""An estimate for people: figures, and bars of where the time goes."""

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bdforge.common.screen import new_table
from bdforge.perf.bounds.estimate import Estimate
from bdforge.perf.bounds.layers import Layers
from bdforge.perf.bounds.operator_bound import CostEstimate
from bdforge.perf.bounds.stage_split import SWITCH_MS

BAR_WIDTH = 40  # characters for the whole time
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """A bar of `share` of `width` characters, in eighths."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def report(found: Estimate) -> RenderableType:
    """Figures and bars of one estimate. Bars of what overlaps do not sum to the time."""
    return Group(
        Text.from_markup(_headline(found)),
        _bars(found, {**found.serial, "imperfect overlap": found.exposed()["imperfect overlap"]}),
        *(Text(line) for line in _remarks(found)),
    )


def cost_report(found: CostEstimate) -> RenderableType:
    """Figures and bars of any operator's estimate."""
    cost, (fast, slow) = found.cost, found.time_range_us
    sizes = ", ".join(f"{name} = {size}" for name, size in found.problem.sizes.items())
    return Group(
        Text.from_markup(
            f"{found.plan.spec.kind} of [bold]{sizes}[/], {found.plan.summary}: [bold]{found.time_us:.0f} us[/] "
            f"(modelled), {found.gb_s:.1f} GB/s of DRAM, bound: [bold]{found.bound}[/]"
        ),
        _bars(found, found.serial),
        Text(f"range: {fast:.0f} to {slow:.0f} us, from everything overlapped to nothing"),
        Text(
            f"{cost.operations} operations; reads {cost.read_bytes / 1e6:.2f} MB, "
            f"writes {cost.write_bytes / 1e6:.2f} MB, in runs of at least {cost.run_bytes} B"
        ),
        *(Text(line) for line in _assumed(found)),
    )


def _assumed(found: CostEstimate) -> Iterator[str]:
    """Cycles of kernels that nobody counted: the operator says them itself."""
    if cycles := found.plan.kernels.cycles:
        told = ", ".join(f"{symbol} {count}" for symbol, count in cycles.items())
        yield f"kernels: cycles of a call as the operator tells them (assumed): {told}"


def _headline(found: Estimate) -> str:
    case = found.case
    return (
        f"[bold]{case.M}x{case.K}x{case.N}[/] {case.a} x {case.b} -> {case.c} on {case.device}: "
        f"[bold]{found.tops:.2f} TOPS[/], {found.time_us:.0f} us (modelled), bound: [bold]{found.bound}[/]"
    )


def _bars(found: Estimate | CostEstimate, added: Mapping[str, float]) -> Table:
    table = new_table(None, "", ">us", f"of {found.time_us:.0f} us")
    table.box = None
    for kind, parts in (("overlapping", found.parallel), ("added", added)):
        for name, time_us in sorted(parts.items(), key=lambda part: -part[1]):
            colour = "red" if name == found.bound else "cyan" if kind == "overlapping" else "yellow"
            table.add_row(f"{name} ({kind})", f"{time_us:.0f}", Text(bar(time_us / found.time_us), colour))
    return table


def _remarks(found: Estimate) -> list[str]:
    case, (low, high), (fast, slow) = found.case, found.tops_range, found.time_range_us
    rate = case.m * case.k * case.n / found.kernel.cycles
    lines = [
        f"range: {low:.1f} to {high:.1f} TOPS, {fast:.0f} to {slow:.0f} us held four in five unseen measurements",
        f"kernel: {found.kernel.cycles:.0f} cycles a step, {rate:.0f} MACs per cycle ({found.kernel.basis}); "
        f"cores alone would reach {found.core_tops:.2f} TOPS",
    ]
    for moved in case.dram_traffic():
        lines.append(
            f"{moved.operand}: {moved.size_bytes / 1e6:.1f} MB in runs of {moved.run_bytes:.0f} B, "
            f"{moved.stride_bytes:.0f} B apart"
        )
    if case.b_kept:
        lines.append(f"B: {case.b_kept:.0%} of a panel stays in memtiles while rows of A pass")
    if found.padding > 1:
        lines.append(f"padding: {found.padding:.2f} times the useful MACs")
    if found.late:
        lines.append(f"warning: {found.late}")
    if case.assumed:
        lines.append(f"assumed: {', '.join(case.assumed)}")
    return lines


def layers_report(found: Layers) -> RenderableType:
    """Where a whole model's time goes, and what fusions that were not made would save."""
    elsewhere = ("instead, ms",) if any(part.instead for part in found.parts) else ()
    table = new_table(None, "operator", "where", "=problem", ">times", ">ms", ">dispatch", "bound", *elsewhere)
    for part in found.parts:
        times = str(part.count) if part.count > 1 or part.where == "NPU" else ""
        waits = f"{part.dispatch_ms:.1f}" if part.where == "NPU" else ""
        instead = (part.instead for _ in elsewhere)
        table.add_row(part.operator, part.where, part.problem, times, f"{part.ms:.1f}", waits, part.bound, *instead)
    return Group(Text.from_markup(_layers_headline(found)), table, *(Text(line) for line in _layers_remarks(found)))


def _layers_headline(found: Layers) -> str:
    low, high = found.range_ms
    return (
        f"[bold]{found.model.name}[/], {found.tokens} tokens: [bold]{found.ms():.0f} ms[/] (modelled; {low:.0f} to "
        f"{high:.0f}), {1e3 * found.tokens / found.ms():.0f} tokens per second"
    )


def _layers_remarks(found: Layers) -> list[str]:
    npu, cpu = found.ms("NPU"), found.ms("CPU")
    lines = [
        f"NPU {npu:.1f} ms, of it {found.submissions} dispatches {sum(part.dispatch_ms for part in found.parts):.1f}; "
        f"CPU {cpu:.1f} ms"
    ]
    if found.changes:
        low, high = (found.changes * ms for ms in SWITCH_MS)
        counted = f"counted with {found.switch_ms:g} ms each" if found.switch_ms else "not counted (--switch)"
        lines.append(
            f"{found.changes} changes of the array's configuration between designs, {counted}; contexts that take "
            f"turns need {low:.0f} to {high:.0f} ms for so many (measured by others), one configuration for all none"
        )
    if found.overlapped_ms is not None:
        lines.append(f"two micro-batches that overlap both: {found.overlapped_ms:.0f} ms")
    host, joules = found.host, found.joules
    lines.append(
        f"energy {joules[0]:.1f} to {joules[1]:.1f} J (modelled: {host.watts[0]:g} to {host.watts[1]:g} W of a "
        f"{host.name}, {host.power_source})"
    )
    if not found.model.cpu:
        lines.append("the model's other operators on the CPU: nobody published their times, so they are not in here")
    for name, saved in found.savings.items():
        parts = ", ".join(found.model.fusions[name])
        lines.append(f"--fused {name} ({parts} as one GEMM) would save {saved:.1f} ms")
    return lines
