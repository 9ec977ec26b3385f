"""Passes over rows that come in chunks, on AIE2P: `rmsnorm_{statistics,results}_bf16`,
`layernorm_{sum,squares,largest,results}_bf16`, `softmax_{largest,sum,results}_bf16`, of the parts of whole rows'
kernels, with the bits of `kernels/aie2p`.

Lanes of sums, and behind them the largest numbers, stay in a core's memory from chunk to chunk; a row's first chunk
takes nothing from there. A chunk of each operand lies behind that of the one before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.kernels import layer_codes, layer_norm
from bdforge.core.codegen.kernels.chunk_state import LATER, Ops, later, loaded, stored
from bdforge.core.codegen.kernels.kernel_options import ROUNDINGS, Maker, Options
from bdforge.core.codegen.kernels.lane_block import LANES, VECTOR_BYTES, behind, restored, saved
from bdforge.core.codegen.kernels.row_codes import code_setup
from bdforge.core.codegen.kernels.row_floats import NormRow, results, row_sums, statistics
from bdforge.core.codegen.kernels.softmax_floats import begun, largest, over_sum, powers, softmax_row
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, set_control, set_register
from bdforge.core.codegen.pipeline.product import FLOAT_CONF

_SUMS = "bmll4", "bmlh4"
_LARGEST = "x9", "x10"


def _summed(row: NormRow) -> list[FunctionPart]:
    """Where rows are sums: theirs to p2, and so to p5; w waits in p6, the number of the chunk in m1."""
    if not row.residual:
        return []
    waiting = [AssemblyOp(f"mov {to}") for to in ("m1, r0", "p6, p1", "p5, p2")]
    return [row_sums(row, [*waiting, *behind("p1", "p0", row.bytes)])]


def _begun(row: NormRow) -> Ops:
    """Pointers p0 = a row's elements, p1 = w."""
    if row.residual:
        yield from (AssemblyOp(f"mov {to}") for to in ("r0, m1", "p0, p5", "p1, p6"))
    elif row.codes:
        yield from saved()
    yield from later()


def _kept(row: NormRow) -> tuple[str, ...]:
    return (*_SUMS, *_LARGEST) if row.codes else _SUMS


def _statistics(row: NormRow) -> Iterator[FunctionPart]:
    part = statistics(row, "p4")
    yield from _summed(row)
    yield replace(part, setup=[*_begun(row), *part.setup, *loaded("p3", *_kept(row))])
    yield stored("p3", *_kept(row))


def _results(row: NormRow) -> Iterator[FunctionPart]:
    part = results(row)
    place = behind("p2", "p5", row.bytes) if row.residual else ()
    yield from _summed(row)
    if row.codes:
        ready = [*code_setup(), *loaded("p3", *_kept(row), masked=False), *behind("p3", "p2", row.elements)]
    else:
        ready = [*_ready(), *loaded("p3", *_kept(row), masked=False), AssemblyOp("mov p3, p0")]
    yield replace(part, setup=[*_begun(row), *place, *ready, *part.setup])


def _layer_sum(row: NormRow) -> Iterator[FunctionPart]:
    yield from _summed(row)
    yield replace(layer_norm.totals(row), setup=[*_begun(row), *layer_norm.begun(), *loaded("p3", *_SUMS)])
    yield stored("p3", *_SUMS)


def _less_mean(row: NormRow) -> Iterator[FunctionPart]:
    yield from _summed(row)
    yield layer_norm.less_mean(row, [*_begun(row), *layer_norm.begun(), *loaded("p3", *_SUMS, masked=False)])


def _layer_squares(row: NormRow) -> Iterator[FunctionPart]:
    yield from _less_mean(row)
    before = loaded("p3", *_SUMS, first=2)
    if row.codes:
        part = layer_codes.squares(row)
        yield replace(part, setup=[*layer_codes.begun(), *part.setup, *before])
    else:
        yield replace(layer_norm.squares(row), setup=[*before, AssemblyOp("mov p4, p0")])
    yield stored("p3", *_SUMS, first=2)


def _deviation(row: NormRow) -> Iterator[FunctionPart]:
    """b is behind w."""
    yield from _less_mean(row)
    sums, shift = loaded("p3", *_SUMS, first=2, masked=False), behind("p5", "p1", 2 * row.elements)
    placed = [AssemblyOp("mov p2, p5")] if row.residual else []
    yield layer_codes.deviation(row, [*layer_codes.begun(), *sums, *placed, *shift])


def _layer_largest(row: NormRow) -> Iterator[FunctionPart]:
    yield from _deviation(row)
    yield layer_codes.largest(row, [*loaded("p3", *_LARGEST, first=4)])
    yield stored("p3", *_LARGEST, first=4)


def _layer_codes(row: NormRow) -> Iterator[FunctionPart]:
    """Codes are the last of what is made but for their scale, behind the sum if any."""
    part = layer_codes.codes(row)
    yield from _deviation(row)
    place = behind("p2", "p2", row.bytes) if row.residual else ()
    most = loaded("p3", *_LARGEST, first=4, masked=False)
    yield replace(part, setup=[*most, *place, *behind("p3", "p2", row.elements), *part.setup])


def _layer_results(row: NormRow) -> Iterator[FunctionPart]:
    """y is the last of what is made, behind the sum if any; b is behind w."""
    if row.codes:
        yield from _layer_codes(row)
        return
    part = layer_norm.shifted(row)
    yield from _less_mean(row)
    place = behind("p3", "p5", row.bytes) if row.residual else [AssemblyOp("mov p3, p2")]
    pointers = [*place, AssemblyOp("mov p5, p0"), *behind("p2", "p1", 2 * row.elements)]
    yield replace(part, setup=[*loaded("p3", *_SUMS, first=2, masked=False), *pointers, *part.setup])


def _ready() -> Ops:
    yield from (set_register("r0", FLOAT_CONF), *set_control("crRnd", ROUNDINGS["conv_even"]))
    yield from (AssemblyOp(f"vclr dm{i}") for i in range(5))


def _norm(parts: Callable[[NormRow], Iterable[FunctionPart]], name: str, generation: str, options: Options) -> Maker:
    row = NormRow.of(name, generation, options)

    def written() -> AssemblyKernel:
        last = [restored()] if row.residual or row.codes else []
        about = (
            f"{name}: a chunk of {row.elements} elements of {row.width}; p0 = given, p1 = held, p2 = made, p3 = state"
        )
        return _function(name, [*parts(row), *last], about, options)

    return written


def _function(name: str, parts: list[FunctionPart], about: str, options: Options) -> AssemblyKernel:
    return function(name, "aie2p", parts, f"{about}: {{cycles}} cycles (exact).", hardware=options.hardware_loops)


def _softmax_largest(vectors: int, factor: float) -> Iterator[FunctionPart]:
    part = largest(vectors, factor)
    found = [
        AssemblyOp(f"vlda x0, [p2, #{2 * VECTOR_BYTES}]"),
        AssemblyOp(f"mov r16, {LATER}"),
        AssemblyOp("vsel.16 x9, x9, x0, r16"),
    ]
    yield replace(part, setup=[*later(), *part.setup, *found])
    yield stored("p2", "x9", first=2)


def _softmax_sum(vectors: int, factor: float) -> Iterator[FunctionPart]:
    part = powers(vectors)
    before = [*later(), *begun(factor), AssemblyOp(f"vlda x9, [p2, #{2 * VECTOR_BYTES}]")]
    yield replace(part, setup=[*before, *part.setup, *loaded("p2", "bmll2", "bmlh2")])
    yield stored("p2", "bmll2", "bmlh2")


def _softmax_results(vectors: int, factor: float) -> Iterator[FunctionPart]:
    first, last = powers(vectors), over_sum(vectors)
    yield replace(first, setup=[*begun(factor), AssemblyOp(f"vlda x9, [p2, #{2 * VECTOR_BYTES}]"), *first.setup])
    yield replace(last, setup=[*loaded("p2", "bmll2", "bmlh2", masked=False), *last.setup])


def _softmax(
    parts: Callable[[int, float], Iterable[FunctionPart]], name: str, generation: str, options: Options
) -> Maker:
    elements, factor = softmax_row(name, generation, options)

    def written() -> AssemblyKernel:
        about = f"{name}: a chunk of {elements} elements; p0 = given, p1 = made, p2 = state"
        return _function(name, [*parts(elements // LANES, factor), restored()], about, options)

    return written


CHUNKS: Mapping[str, Callable[[str, str, Options], Maker]] = {
    "rmsnorm_statistics_bf16": partial(_norm, _statistics),
    "rmsnorm_results_bf16": partial(_norm, _results),
    "layernorm_sum_bf16": partial(_norm, _layer_sum),
    "layernorm_squares_bf16": partial(_norm, _layer_squares),
    "layernorm_largest_bf16": partial(_norm, _layer_largest),
    "layernorm_results_bf16": partial(_norm, _layer_results),
    "softmax_largest_bf16": partial(_softmax, _softmax_largest),
    "softmax_sum_bf16": partial(_softmax, _softmax_sum),
    "softmax_results_bf16": partial(_softmax, _softmax_results),
}
"""What writes kernels, by their names."""
