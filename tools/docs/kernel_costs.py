"""docs/kernel_costs.md, made from the schedules."""

from collections.abc import Iterable
from statistics import fmean

from bdforge.core.codegen.kernels import assembled
from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.devices.types import TYPES
from bdforge.operators.gemm.kernels import KERNELS
from bdforge.perf.kernels.kernel_cost import KernelCost, kernel_cost
from bdforge.perf.kernels.loop_texts import PASSES
from tools.docs.counted import TILE, counted
from tools.fit.kernel_rates import Comparison, comparisons, shares

_LOOKED_UP = 64, 72, 64
"""A tile of which the tables, C and twice A and B fit a core."""

_HEAD = """# What our kernels cost, modelled

For whoever chooses tiles or types: cycles of every kernel, by what binds its loop.

Made by `python -m tools.docs kernel_costs`; a test keeps it current. Cycles are *modelled* from the slots and latencies
of each core's instructions (`bdforge/core/isa/data`), nothing is fitted; those of passes over C that this project
assembles are *counted*. Not in them: stalls at memory banks and the call itself.

Passes over C (`finish_*`) are costed without bias and ReLU, which takes an instruction of the move slot for a vector of
results. Scales of rows and columns (`finish_i32_bf16`, `finish_f32_bf16` with SCALE) are two float32 products, each of
nine products of bfloat16 parts and four subtractions that find the parts; five more operations make float32 of int32:
26 or 31 of the MAC slot for 32 lanes (AIE2: 16). Parts that find no register are spilled, as load and store slots have
room.

Kernels that read bfp16 take two steps of K in an iteration, if k / 8 is even: a stream of tiles that lie one after
another is opened for two of them, one line into a load FIFO, and each is popped. Else it is opened for each.

- **II**: cycles of an iteration of the compiled inner loop, which is software pipelined: its busiest slot.
- **sequential**: a block of accumulators is stored before the next one is loaded, as in a compiled loop nest.
- **ideal**: what the generator of machine code expects of the kernel that this project assembles, before it has a
  schedule; where there is none, all but the first block overlap with C's traffic of others.
- **slots**: the busiest slot of the compiled loops alone; no order of the same instructions is faster.
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

- No compiled kernel beats the ideal, and none of either kind beats the slots. The hand-written bfp16 kernel is faster
  than the one that is assembled: there float32 sums of a block wait for the stores of the block before.
- The sequential schedule tells the rates of compiled int8 kernels, 3 % off on average without any fit: their loss is
  C's loads, stores and pipeline fill for each block, with little overlap. The share of the ideal falls with k.
- The bf16 x bfp16 kernel of Wang et al. runs faster than sequential where k is small: it overlaps blocks.
- mm_i8_i2_i32 fills the move slot and the MAC slot alike, so unpacking is hidden, but nothing more fits into the move
  slot: an A stored column by column makes it the bound (6 cycles for 4 products).
- bfp16 kernels use six of eight load slots for four products, so C's loads find little room beside them. Streams that
  stay open would take four, but a core has two load FIFOs for four sequences of tiles. Assembled ones load C into
  vector registers, and widen it in the move slot, which is free; they are faster than all compiled ones here.
- bf16 on AIE2P is bound by the move slot, which transposes and widens B for the conversion to bfp16; B given column by
  column shifts the bound to load unit A. bfp16 weights remove it.
"""

_LOOKUPS = """
## Ternary weights: products or tables of sums

T-MAC and its like look sums up instead of multiplying: three ternary weights are a code of 27, and what a code makes of
three columns of A is stored once for all columns of B. `lut_i8_i2_i32` does so for 64 rows on AIE2P, with numpy's sums;
it and `mm_i8_i2_i32` are *counted* by issue on a tile of {m} × {k} × {n}, its tables in banks of their
own. No design runs it.

| kernel | issue | MACs/cycle |
|---|---|---|
| mm_i8_i2_i32 | {products} | {product_rate:.0f} |
| lut_i8_i2_i32 | {lookups} | {lookup_rate:.0f} |

- Where CPUs shuffle by data, AIE2P cannot: modes of VSHUFFLE are set for all lanes, VSEL chooses among two. Its gather
  (VLDB.4x64) brings four elements of four sums a cycle, 48 MACs at most. A load of a whole vector brings 32 sums of
  int16, so A's rows stand in lanes, and one code serves all.
- Two load units bring 192 MACs a cycle at most, whatever else is done. 512, which products do, would take codes of
  eight weights, tables of 6,561 entries.
- Codes and C take loads too: 14 cycles for 64 rows, a column and 24 of k, 110 MACs a cycle if tables cost nothing, and
  the schedule has no cycle more. Tables are 27 stores for 32 rows and three of k, a cycle each: 74 MACs a cycle with 64
  columns. The rest fills and drains six loops.
- Codes of two weights would make tables cheaper (9 stores) and lookups dearer, those of four the other way round (81):
  63 and 60 by the same count.
"""


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for generation in (AIE2P, AIE2):
        lines += _kernels(generation)
    lines += [_PUBLISHED, *_comparison_rows(), *_efficiency_rows(), _READING.rstrip(), _lookups().rstrip()]
    return "\n".join(lines) + "\n"


def _lookups() -> str:
    m, k, n = _LOOKED_UP
    tile = (f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}")
    products, lookups = (
        assembled(name, "aie2p", tile).cycles or 0 for name in ("mm_i8_i2_i32", "lut_i8_i2_i32")
    )  # fmt: skip
    rates = {"product_rate": m * k * n / products, "lookup_rate": m * k * n / lookups}
    return _LOOKUPS.format(m=m, k=k, n=n, products=products, lookups=lookups, **rates)


def _kernels(generation: Generation) -> Iterable[str]:
    m, k, n = TILE
    matrix = [(k.multiply, "") for k in KERNELS.values() if k.generation == generation]
    passes = known_passes(generation)
    costs = [
        (f"{symbol}, {option}" if option else symbol,
         kernel_cost(symbol, m, k, n, generation=generation, options=[option]))
        for symbol, option in (*matrix, *passes)
    ]  # fmt: skip
    yield f"## {generation.name}, one call on a tile of {m} × {k} × {n}\n"
    yield (
        "| kernel | II | slots per iteration | bound | sequential | ideal | basis | slots | MACs/cycle "
        "| assembled | MACs/cycle |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    yield from (_kernel_row(name, cost) for name, cost in costs)
    yield ""


def known_passes(generation: Generation) -> list[tuple[str, str]]:
    """Passes over C with a cost, each with the option with which it costs that: assembled ones and `PASSES`."""
    types = [TYPES[name].code for name in ("int8", "int16", "int32", "bf16", "f32")]
    names = ["unscale_i32", *(f"finish_i32_{c}" for c in types[:4]), "finish_f32_bf16", *(f"zero_{c}" for c in types)]
    names += ["finish_bf16_bfp16", "finish_f32_bfp16", "zero_bfp16"] if generation == AIE2P else []
    described = [(symbol, option) for name, symbol, option in PASSES if name == generation.name]
    passes = [*((name, "") for name in names), ("gate_i32_bf16", "FUNCTION=relu2")]
    counted = [each for each in passes if each not in described]
    return counted + described


def _kernel_row(name: str, cost: KernelCost) -> str:
    use = " ".join(f"{slot} {count}" for slot, count in cost.slot_use.items() if count)
    rate = f"{cost.macs_per_cycle:.0f}" if cost.macs else ""
    interval = (cost.interval, use, cost.bound) if cost.slot_use else ("", "", "")
    return (
        f"| {name} | {' | '.join(map(str, interval))} | {cost.sequential_cycles} | {cost.cycles} | {cost.basis} "
        f"| {cost.slot_cycles} | {rate} | {' | '.join(_assembled(name, cost))} |"
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
        f"| {row.efficiency('ideal'):.2f} | {row.efficiency('sequential'):.2f} "
        f"| {f'{found.rate:.0f}' if found else ''} |"
    )


def _efficiency_rows() -> Iterable[str]:
    yield "\n## Share of the schedules that compiled kernels reach\n"
    yield "Mean and range over the published tiles of the same types; other types take what the nearest ones reach.\n"
    yield "| generation | types of A, B and C | tiles | of ideal | of sequential |"
    yield "|---|---|---|---|---|"
    for key in dict.fromkeys((r.published.generation.name, *r.published.types) for r in comparisons()):
        if ideal := shares(key, "ideal"):
            figures = " | ".join(map(_range, (ideal, shares(key, "sequential"))))
            yield f"| {key[0]} | {', '.join(key[1:])} | {len(ideal)} | {figures} |"


def _range(found: list[float]) -> str:
    return f"{fmean(found):.2f} ({min(found):.2f} to {max(found):.2f})"
