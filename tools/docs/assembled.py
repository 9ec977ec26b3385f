"""docs/assembled.md: what cores of machine code take, made from the tables of `counted`."""

from collections.abc import Iterator

from bdforge.perf.tune.choice_reasons import LIFTS
from tools.docs.counted import (
    CHOICES,
    DESIGNS,
    OURS,
    Choice,
    Counted,
    Reached,
    counted_rows,
    read_table,
)
from tools.docs.markdown import prose, section, table

_LONG = 0.1  # share of ends that a design should not have
_OPENING = """# Cores of machine code, counted

For whoever builds without AMD's compilers: what cores of machine code that bdforge assembles cost, counted.

"""


def page() -> str:
    """The whole page."""
    ours = [row for row in counted_rows() if row.source == OURS]
    head = _OPENING + prose(
        "Made by `python -m tools.docs assembled` from what `python -m tools.docs counted` finds (minutes); a test",
        "keeps both current. Kernels and core programs that this project assembles run on the exact core model, so",
        "their cycles are *counted*: every bundle, and every stall at a bank that the core itself uses twice in a",
        "cycle, with buffers where plans put them. Never checked on silicon.",
    )
    parts = _kernels(ours), _steps(ours), _choices(), _block_floats(), _designs(read_table(Reached, DESIGNS))
    return "\n".join((head, *parts))


def _kernels(rows: list[Counted]) -> str:
    lines = [
        (
            row.generation, row.symbol, f"{row.m} x {row.k} x {row.n}{f' in {row.rho}' if row.rho > 1 else ''}",
            f"{row.issue:.0f}", f"{row.stalls:.0f}", *_rates(row),
        )
        for row in {(row.generation, row.symbol, row.k, row.rho): row for row in rows}.values()
    ]  # fmt: skip
    return section(
        "Kernels",
        prose(
            "Cycles of one call on a tile, or of one of the calls that make it: of issue, and stalls at own banks.",
            "MACs per cycle are of the whole call, by issue and with stalls. What C++ kernels are modelled at, and",
            "what was published, stands beside them in [kernel_costs.md](kernel_costs.md).",
        ),
        table(("", "kernel", "tile", "issue", "stalls", "MACs/cycle", "with stalls"), lines),
    )


def _rates(row: Counted) -> tuple[str, str]:
    return (f"{row.macs / row.issue:.0f}", f"{row.rate:.0f}") if row.macs else ("", "")


def _steps(rows: list[Counted]) -> str:
    lines = [
        (
            row.symbol, f"{row.m} x {row.k} x {row.n}", str(row.rho), f"{row.around:.0f}",
            f"{row.rho * (row.issue + row.stalls):.0f}", f"{_share(row):.1%}",
        )
        for row in rows
        if row.macs and (row.generation, row.types) == ("aie2p", "int8 int2 int32 int32")
    ]  # fmt: skip
    return section(
        "Around the kernel",
        prose(
            "What a step of K takes besides its kernel, as assembled: two pairs of locks, whose port is busy for",
            "four cycles each, a call and a branch with their five slots, the choice of ping or pong among them. In",
            "rho parts A has locks, a call and a branch for each.",
        ),
        table(("kernel", "tile", "rho", "around a step", "kernel", "share in the kernel"), lines),
    )


def _choices() -> str:
    lines = [
        (
            row.symbol, f"{row.m} x {row.k} x {row.n}{f' in {row.rho}' if row.rho > 1 else ''}",
            row.options or "none: as chosen", str(row.issue), f"{row.m // row.rho * row.k * row.n / row.issue:.0f}",
        )
        for row in read_table(Choice, CHOICES)
    ]  # fmt: skip
    return section(
        "Choices",
        prose(
            "Cycles of a call by issue. Ternary weights are unpacked in place, by a mask and a bias, both in the move",
            "slot: blocks of 2 x 2 micro-tiles take all four of its cycles in a step of k, blocks of 4 x 1 two of",
            "four, so that masks of the next field come in between. Where four rows are there, no other way can be",
            "better: products have every cycle. Calls of two rows leave no room for masks, nor for the JNZ at the end",
            "of a loop, which takes that slot too: three to five cycles more for each block. Hardware loops",
            "(`LOOPS=hardware`, `scons loops=hardware`) have no branch; codes of a byte's top field in two's",
            "complement (`B_TOP_SIGNED`) need no bias, so that one block of four leaves room. Both help 2 x 1 blocks",
            "alone, which load A twice as often as 2 x 2 ones: in the flagship's plan they would wait 220 cycles more",
            "for banks, so neither is chosen. Hosts pack biased codes. Where a tile has no room for a shape, another",
            "one is taken. Blocks of 4 x 1 load A in every cycle, so that an access to C waits wherever both are in",
            "one bank. Plans tell kernels how much operands share banks (`MEETS`); of shapes and schedules the one is",
            "taken that takes least with these waits, which here, without a plan, are none. The move slot is why 64 x",
            "192 x 160 in four calls is not faster: 96 masks and biases, four broadcasts and a JNZ make 101 cycles of",
            "each of ten blocks, and with filling and draining some 1,040 of a call whose set-up were free: 473 MACs a",
            "cycle. So the tuned design has two calls of 64 x 128 x 160.",
        ),
        table(("kernel", "tile", "options", "issue", "MACs/cycle"), lines),
    )


def _block_floats() -> str:
    return section(
        "Block floats",
        prose(
            "Tiles of bfp16 have 72 bytes and come through load FIFOs: an operation opens a stream, and each tile is",
            "one more. Plain loads would take nine lines for eight tiles, fewer; but then blocks of nine bytes are to",
            "be taken apart, of which shuffles, whose strides are powers of two, know nothing: eight shifts for a",
            "tile, where the move slot has one cycle. Blocks are 2 x 2 tiles, four sequences of tiles for two FIFOs.",
            "So a stream is opened for two tiles of a sequence, which takes 12 of 16 load slots for eight products;",
            "where k / 8 is odd, for one, and takes all. What these kernels rest on is known from others' that ran on",
            "XDNA2, not from silicon of ours: pointers of FIFOs count bytes within a line, and one that a pop steps",
            "begins with an empty FIFO ([isa_forms.md](isa_forms.md) has the confidence of each form). Operands lie",
            "at multiples of 64 bytes, as plans put them. Float32 sums wait: their stores take 16 cycles of a block,",
            "in which few of the next products may begin.",
        ),
    )


def _share(row: Counted) -> float:
    kernel = row.rho * (row.issue + row.stalls)
    return kernel / (kernel + row.around)


def _designs(rows: list[Reached]) -> str:
    return section(
        "Designs in time",
        prose(
            "TOPS of the designs with every core running its machine code on the emulated array in time (*emulated*;",
            "`bdforge estimate --kernel assembled` models them), dispatch of 158 us included. The first row of each",
            "has the DRAM that was measured on one Strix Halo, both ways at once; the others a range in which an",
            "owner's may lie. Ends are what zeroing and finishing C takes of a tile's cycles. Stalls are the share of",
            "time that cores wait for their own banks, and (expected, not in the time) for banks that a DMA uses.",
        ),
        table(
            ("design", "problem", "DRAM GB/s", "modelled", "emulated", "target", "bound", "ends", "stalls", "by DMA"),
            [_design(row) for row in rows],
        ),
        prose(
            "gemm_i8_i2_tuned is what `bdforge tune` finds for BitNet's layers with compiled kernels,",
            "gemm_i8_i2_tuned_asm a finalist of `--kernel assembled`, which takes less for their whole problems than",
            "the first, 64 x 64 x 160. C takes 40 KB of a core's 64, so that it shares banks with A or B. In a call",
            "64 deep it is loaded or stored in nearly every cycle, and cores waited 8.9% of the time; a call 128 deep",
            "has half of that for each product, and blocks that leave A's bank alone in every other cycle.",
        ),
        prose("What would lift a bound:", "; ".join(_lifts(rows)) + "."),
    )


def _design(row: Reached) -> tuple[str, ...]:
    tops = row.tops(row.emulated_us)
    return (
        row.design, f"{row.M}x{row.K}x{row.N}", f"{row.dram_gb_s:.4g}", f"{row.tops(row.modelled_us):.1f}",
        f"{tops:.1f}", f"{row.target:.0f}{'' if tops >= row.target else ': missed'}", row.bound, f"{row.ends:.1%}",
        f"{row.stalls:.1%}", f"{row.dma_stalls:.1%}",
    )  # fmt: skip


def _lifts(rows: list[Reached]) -> Iterator[str]:
    for bound in dict.fromkeys(row.bound for row in rows):
        yield f"of {bound}, {LIFTS[bound]}"
    if any(row.ends > _LONG for row in rows):
        yield "where ends are long, parts of scales that are cut once for a tile of C, not for each 8 x 8 of it"
