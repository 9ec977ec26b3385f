"""An explanation for the screen: sentences, and tables whose rows are bounded; what is alike is told once."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bdforge.array.explain.buffer_rings import BufferRing
from bdforge.array.explain.image_explanation import ConfigurationSummary, Explanation, Place, ProgramSummary
from bdforge.array.explain.program_cores import cores_text
from bdforge.array.explain.zeros_run import RunVerdict
from bdforge.array.show.array_use import places, ranges
from bdforge.common.messages import clip, listed
from bdforge.common.screen import new_table
from bdforge.core.isa.program_work import BundleWork
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES

_ROWS, _PROGRAMS = 32, 8
"""Of a table, and programs with tables of their own; more are counted."""
_NAMED = 4
_VERDICTS = {"ends": "ends", "hangs": "HANGS", "fails": "fails", "unknown": "may or may not end"}


def explanation_parts(found: Explanation, name: str) -> Iterator[RenderableType]:
    """All that is told of a file called `name`."""
    device = f"{found.device.mlir}, {found.device.generation.name}" if found.device else "no array that its code tells"
    yield Text(f"{name}: {found.kind} for {device}")
    for number, configuration in enumerate(found.configurations):
        if len(found.configurations) > 1:
            yield Text(f"\nconfiguration {number}")
        yield from _configuration(configuration)
    yield from _sequence(found)
    yield Text("\n".join(_run_lines(found.run, found.missing)))


def _configuration(found: ConfigurationSummary) -> Iterator[RenderableType]:
    kinds: dict[str, list[Place]] = {}
    for place, tile in sorted(found.state.tiles.items()):
        kinds.setdefault(str(tile.kind), []).append(place)
    if kinds:
        used = ", ".join(f"{len(tiles)} x {kind} {places(tiles)}" for kind, tiles in kinds.items())
        yield Text(f"{found.writes} register writes; tiles: {used}")
    if found.idle:
        yield Text(f"enabled without a program, so standing still: {places(found.idle)}")
    for program in found.programs[:_PROGRAMS]:
        yield from _program(program)
    if (more := len(found.programs) - _PROGRAMS) > 0:
        yield Text(f"\nand {more} more programs; --json has them, too")
    yield from (table for table in (_rings(found), _routes(found)) if table.row_count)


def _program(found: ProgramSummary) -> Iterator[RenderableType]:
    share = f"{found.code_bytes} of {PROGRAM_MEMORY_BYTES} bytes of program memory"
    yield Text(f"\n{cores_text(found.found)}, one program, {found.generation}: {share}")
    yield from (table for table in (_functions(found), _loops(found)) if table.row_count)
    if forms := found.work.open_forms():
        told = listed((f"{form} at {_addresses(at)}" for form, at in forms.items()), "; ", _NAMED)
        yield Text(f"forms of which no source tells what they do: {told}")
    if found.unknown:
        told = listed((f"{at:#x} ({clip(why)})" for at, why in found.unknown.items()), ", ", _NAMED)
        yield Text(f"bytes that are no known bundle: {told}")


def _addresses(found: Sequence[int]) -> str:
    return listed((f"{at:#x}" for at in found), ", ", _NAMED)


def _functions(found: ProgramSummary) -> Table:
    table = new_table("functions, by one call", "at", ">code B", ">bundles", ">MACs", ">loads", ">stores", "what")
    rows = []
    for function in found.work.functions():
        work = function.work
        counts = _counts(work) if work else ("", "", "", "")
        told = _products(work) if work else f"the code does not tell {function.missing}"
        rows.append((found.name_of(function), str(function.code_bytes), *counts, told))
    return _filled(table, rows)


def _loops(found: ProgramSummary) -> Table:
    table = new_table(
        "loops, by one pass", "at", "kind", ">passes", ">bundles", ">MACs/bundle", ">loads", ">stores", "products"
    )
    rows = []
    for loop in found.work.loops:
        own = found.work.own[loop]
        passes = "?" if loop.trips is None else str(loop.trips)
        macs = f"{own.macs_per_bundle:.1f}" if own.macs else ""
        bundles, _, *moved = _counts(own)
        kind = "hardware" if loop.hardware else "jump"
        rows.append((f"{loop.start:#x}", kind, passes, bundles, macs, *moved, _products(own)))
    return _filled(table, rows)


def _counts(work: BundleWork) -> tuple[str, ...]:
    return tuple(str(number or "") for number in (work.bundles, work.macs, work.loads, work.stores))


def _products(work: BundleWork) -> str:
    """Products by what they are; without any, what memory sees."""
    found = [f"{count} x {product}" for product, count in sorted(work.products.items())]
    found += [f"{work.unknown} x unknown shape"] * bool(work.unknown)
    if not found and work.stores:
        return "copies or converts" if work.loads else "fills memory"
    return ", ".join(found)


def _rings(found: ConfigurationSummary) -> Table:
    """A row for each task that tiles of a kind have alike."""
    table = new_table("buffers, as tasks of BDs show them", "tiles", "channel", ">BDs", ">depth", "buffers", "locks")
    groups: dict[tuple[str, BufferRing], list[Place]] = {}
    for place, rings in found.rings.items():
        for ring in rings:
            groups.setdefault((str(found.state.tiles[place].kind), ring), []).append(place)
    order = sorted(groups.items(), key=lambda group: (group[0][0], group[1]))
    return _filled(table, [(f"{kind} {places(tiles)}", *_ring(ring)) for (kind, ring), tiles in order])


def _ring(ring: BufferRing) -> tuple[str, ...]:
    locks = f"{_locks(ring.acquires)} to {_locks(ring.releases)}" if ring.acquires or ring.releases else ""
    runs = "" if ring.endless else f", {ring.runs} runs" if ring.runs > 1 else ", once"
    packets = f", packets {ranges(ring.packets)}" if ring.packets else ""
    buffers = listed(ring.buffers, ", ", _NAMED)
    return ring.channel + packets + runs, str(len(ring.bds)), str(ring.depth), buffers, locks


def _locks(found: Sequence[int]) -> str:
    return ", ".join(map(str, found)) or "-"


def _routes(found: ConfigurationSummary) -> Table:
    table = new_table("routes", "from", "to", "kind", ">streams")
    rows = []
    for route in found.routes:
        lost = [f"lost: {listed(route.lost, '; ', _NAMED)}"] if route.lost else []
        rows.append((route.source, ", ".join([*route.sinks, *lost]), route.kind, str(route.streams)))
    return _filled(table, rows)


def _sequence(found: Explanation) -> Iterator[RenderableType]:
    table = new_table("arguments", ">number", ">bytes", ">read", ">written")
    numbers = ((use.number, use.end, use.read_bytes, use.written_bytes) for use in found.arguments)
    yield from _some(_filled(table, [tuple(map(str, row)) for row in numbers]))
    table = new_table("steps of the instruction sequence", ">step", "pushes", "writes", "awaits")
    rows = []
    for step in found.steps:
        span = f"{step.first}" if step.count == 1 else f"{step.first}-{step.first + step.count - 1}"
        counts = (
            ", ".join(f"{n} x {what}" for what, n in did) for did in (step.pushes, step.writes, step.awaits)
        )  # fmt: skip
        rows.append((span, *counts))
    yield from _some(_filled(table, rows))


def _some(table: Table) -> list[Table]:
    return [table] if table.row_count else []


def _filled(table: Table, rows: Sequence[Iterable[str]]) -> Table:
    for row in rows[:_ROWS]:
        table.add_row(*row)
    if len(rows) > _ROWS:
        table.add_row(*[""] * (len(table.columns) - 1), f"and {len(rows) - _ROWS} more")
    return table


def _run_lines(run: RunVerdict | None, missing: str) -> Iterator[str]:
    if run is None:
        yield f"hang verdict and time: {missing}"
        return
    yield f"hang verdict: it {_VERDICTS[run.verdict]} on the emulated array, on zeros in all arguments"
    if run.reason:
        yield run.reason
    if run.cores is not None:
        span = sorted({run.cores.least_bundles, run.cores.most_bundles})
        bundles = " to ".join(map(str, span))
        yield f"cores with a program: {run.cores.cores}, of {bundles} bundles each; MACs in all: {run.cores.macs}"
    if run.cycles is not None and run.seconds is not None:
        yield f"time (emulated): {run.seconds * 1e6:.1f} us, of them {run.cycles:.0f} array cycles behind the dispatch"
        busy = sorted((run.shares or {}).items(), key=lambda item: -item[1])
        bound = f"bound by {run.binding}" if run.binding else "nothing is busy for more than half of it: waits bind it"
        yield f"{bound}; busy: {', '.join(f'{name} {share:.0%}' for name, share in busy)}"
    yield from (f"warning: {warning}" for warning in run.warnings[:_NAMED])
