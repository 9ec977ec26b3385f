"""docs/kernel_costs.md, made from the schedules."""

from collections.abc import Iterable

from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.perf.kernels.loop_schedule import KernelCost, kernel_cost
from bdforge.perf.kernels.loops import ELEMENT_KERNELS, MATRIX_KERNELS
from bdforge.perf.kernels.published import Comparison, comparisons, compiled_efficiency
from tools.docs.counted import TILE, counted

_HEAD = """# What our kernels cost, modelled

Made by `python -m tools.docs kernel_costs`; a test keeps it current. All cycles are *modelled* from the slots, units,
latencies and registers of each core's instructions (`bdforge/core/isa/data`; of AIE2's units little is known); nothing
is fitted. Not counted: stalls on memory banks and the call itself.

Passes over C (`finish_*`) are costed without bias and ReLU, which takes an instruction of the move slot for a vector of
results. Scales of rows and columns (`finish_i32_bf16`, `finish_f32_bf16` with SCALE) are two float32 products, each of
nine products of bfloat16 parts and four subtractions that find the parts; five more operations make float32 of int32:
26 or 31 of the MAC slot for 32 lanes (AIE2: 16). Parts that find no register are spilled, as load and store slots have
room.

Kernels that read bfp16 take two steps of K in an iteration, if k / 8 is even: a stream of tiles that lie one after
another is opened for two of them, one line into a load FIFO, and each is popped. Else it is opened for each.

- **II**: initiation interval of the software-pipelined inner loop, with its least value by slots and by latencies.
- **ideal**: inner loops whole, C's loads and stores, epilogue and next prologue overlapped between blocks.
- **sequential**: a block of accumulators is stored before the next one is loaded, as in a compiled loop nest.
- **slots**: the busiest slot alone; no order of the same instructions is faster.
- **assembled**: the kernel that this project assembles, where there is one: cycles *counted* on the exact core model,
  by issue and stalls at own banks where a plan puts the buffers ([assembled.md](assembled.md)).
"""

_PUBLISHED = """
## Published rates against the schedules

MACs per cycle of one core. *ideal* and *sequential* are our schedules of the same tile with the blocks of mlir-aie's
kernels; the last columns are the share of each that the measured kernel reaches. Rows marked * are hand-written. `wang`
rows include the calls of a whole core, so the costs beside them do too. *assembled* is the counted rate of our machine
code on the same tile, stalls at own banks included.
"""

_READING = """
What the tables say:

- No compiled kernel beats the ideal schedule, and none of either kind beats the slots. The hand-written bfp16 kernel
  does beat our ideal: its tiles of C leave and enter one by one while the others go on, which we do not model.
- The sequential schedule tells the rates of compiled int8 kernels, 7 % off on average without any fit: their loss is
  C's loads, stores and pipeline fill for each block, with little overlap. The share of the ideal falls with k.
- The bf16 x bfp16 kernel of Wang et al. runs faster than sequential: it overlaps blocks.
- mm_i8_i2_i32 fills the move slot and the MAC slot alike, so unpacking is hidden, but nothing more fits into the move
  slot: an A stored column by column makes it the bound (6 cycles for 4 products).
- bfp16 kernels use six of eight load slots for four products, so C's loads find little room beside them. Streams that
  stay open would take four, but a core has two load FIFOs for four sequences of tiles.
- bf16 on AIE2P is bound by the move slot, which transposes and widens B for the conversion to bfp16; B given column by
  column shifts the bound to load unit A. bfp16 weights remove it.
"""


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for generation in (AIE2P, AIE2):
        lines += _kernels(generation)
    lines += [_PUBLISHED, *_comparison_rows(), *_efficiency_rows(), _READING.rstrip()]
    return "\n".join(lines) + "\n"


def _kernels(generation: Generation) -> Iterable[str]:
    m, k, n = TILE
    matrix = [(k.symbol, "") for k in MATRIX_KERNELS if k.generation == generation]
    passes = [(k.symbol, k.option) for k in ELEMENT_KERNELS if k.generation == generation]
    costs = [
        (f"{symbol}, {option}" if option else symbol,
         kernel_cost(symbol, m, k, n, generation=generation, options=[option]))
        for symbol, option in (*matrix, *passes)
    ]  # fmt: skip
    yield f"## {generation.name}, one call on a tile of {m} × {k} × {n}\n"
    yield (
        "| kernel | II (slots, latency) | slots per iteration | bound | ideal | sequential | slots | MACs/cycle "
        "| assembled | MACs/cycle |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    yield from (_kernel_row(name, cost) for name, cost in costs)
    yield ""


def _kernel_row(name: str, cost: KernelCost) -> str:
    use = " ".join(f"{slot} {count}" for slot, count in cost.slot_use.items() if count)
    rate = f"{cost.macs_per_cycle:.0f}" if cost.macs else ""
    return (
        f"| {name} | {cost.interval} ({cost.resource_interval}, {cost.recurrence_interval}) | {use} "
        f"| {cost.bound} | {cost.cycles} | {cost.sequential_cycles} | {cost.slot_cycles} | {rate} "
        f"| {' | '.join(_assembled(name, cost))} |"
    )


def _assembled(name: str, cost: KernelCost) -> tuple[str, str]:
    """Counted cycles and rate of the kernel of this name that this project assembles."""
    found = counted(cost.generation, name, (*TILE, 1))
    if found is None:
        return "", ""
    return f"{found.issue:.0f} + {found.stalls:.0f}", f"{found.rate:.0f}" if found.macs else ""


def _comparison_rows() -> Iterable[str]:
    yield (
        "| source | device | types | m × k × n | rho | published | ideal | sequential | of ideal | of sequential "
        "| assembled |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    yield from map(_comparison_row, comparisons())


def _comparison_row(row: Comparison) -> str:
    p, cost = row.published, row.cost
    found = counted(cost.generation, cost.symbol, (p.m, p.k, p.n, p.rho))
    return (
        f"| {p.source}{'' if p.compiled else ' *'} | {p.device} | {'-'.join(p.types)} | {p.m} × {p.k} × {p.n} "
        f"| {p.rho} | {p.macs_per_cycle} | {cost.macs_per_cycle:.1f} | {cost.macs / cost.sequential_cycles:.1f} "
        f"| {row.efficiency('overlapped'):.2f} | {row.efficiency('sequential'):.2f} "
        f"| {f'{found.rate:.0f}' if found else ''} |"
    )


def _efficiency_rows() -> Iterable[str]:
    yield "\n## Share of the schedules that compiled kernels reach\n"
    yield "Mean and range over the published tiles of the same types, or of the nearest ones that somebody measured.\n"
    yield "| generation | kernel | measured on | tiles | of ideal | of sequential |"
    yield "|---|---|---|---|---|---|"
    for kernel in MATRIX_KERNELS:
        types = kernel.a, kernel.b, kernel.c, kernel.generation
        ideal, plain = compiled_efficiency(*types, "overlapped"), compiled_efficiency(*types, "sequential")
        yield (
            f"| {kernel.generation.name} | {kernel.symbol} | {ideal.basis} | {ideal.tiles} "
            f"| {ideal.mean:.2f} ({ideal.low:.2f} to {ideal.high:.2f}) "
            f"| {plain.mean:.2f} ({plain.low:.2f} to {plain.high:.2f}) |"
        )
