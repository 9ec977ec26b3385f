"""How one iteration of a matrix kernel brings its tiles of A and B into registers.

Which instructions a kernel uses follows from its source under `kernels/` and from the AIE API's lowering of each call.
Loads of A and B issue in either unit, unit B first: that leaves unit A, the only one that loads accumulators, to C.
"""

from bdforge.devices import AIE2, AIE2P, Generation
from bdforge.perf.kernels.kinds import Product
from bdforge.perf.kernels.loop import Operation
from bdforge.perf.kernels.scheduled_forms import TimedForm, timed_form

HALVES = ("low", "high")
"""Parts of a register or of the temporary accumulator of a conversion."""


def plain_loads(p: Product) -> list[Operation]:
    """One vector load for each register of each operand tile."""
    return _plain(p, "a", p.rows) + _plain(p, "b", p.columns)


def _plain(p: Product, side: str, count: int) -> list[Operation]:
    """Loads of one operand's tiles; a transposed tile takes a shuffle for each of its registers of 512 bits."""
    parts = p.parts[side == "b"]
    turned = side in p.transposed
    operations = []
    for index in range(count):
        names = tuple(f"{side}{index}{part}" for part in parts)
        raw = tuple(f"raw {name}" for name in names) if turned else names
        operations += [load(p.generation, name) for name in raw]
        if turned:
            sources = (("s1", raw[0]), ("s2", raw[-1]))
            operations.append(Operation((shuffle(p.generation),), sources, names))
    return operations


def nibbles(p: Product) -> list[Operation]:
    """B in 4 bits, unpacked to int8 by the load of each tile."""
    unpack = timed_form(AIE2P, "VLDB_UNPACK_dmw_ldb_unpack_pstm_nrm_imm_unpackSign1")
    return _plain(p, "a", p.rows) + [Operation((unpack,), (), (f"b{j}",)) for j in range(p.columns)]


def masked_codes(p: Product) -> list[Operation]:
    """B in 2 bits, four column blocks to a byte: masked in place, then less the bias (`kernels/include/ternary.h`)."""
    mask, bias = timed_form(p.generation, "VBAND"), timed_form(p.generation, "VADD_8")
    parts = p.parts[1]
    operations = [*_plain(p, "a", p.rows), *(load(p.generation, f"packed{q}") for q in parts)]
    for j in range(p.columns):
        codes, weights = (tuple(f"{kind}{j}{q}" for q in parts) for kind in ("code", "b"))
        packed = tuple(("s1", f"packed{q}") for q in parts)
        masks, biases = (tuple(("s2", f"{kind}{j}{q}") for q in parts) for kind in ("mask", "bias"))
        operations.append(Operation((mask,), (*packed, *masks), codes))
        operations.append(Operation((bias,), (*(("s1", code) for code in codes), *biases), weights))
    return operations


def by_block_floats(p: Product) -> list[Operation]:
    """bf16 tiles converted to bfp16, both sides; the product takes B transposed, so a row-major B is turned first."""
    return _converted(p, "a", p.rows, "a" in p.transposed) + _converted(p, "b", p.columns, "b" not in p.transposed)


def mixed(p: Product) -> list[Operation]:
    """A bf16, converted; B bfp16 as it lies."""
    return _converted(p, "a", p.rows, "a" in p.transposed) + _popped(p, "b", p.columns)


def _converted(p: Product, side: str, count: int, turned: bool) -> list[Operation]:
    """bf16 to bfp16 through the temporary accumulator: widened on the load path, or in the move slot after shuffles."""
    operations: list[Operation] = []
    narrow = timed_form(AIE2P, "VCONV_bfp16ebs8_fp32")
    for tile in (p.operand(side, index, step) for index in range(count) for step in range(p.run)):
        operations += _turned(tile) if turned else _widened()
        operations.append(Operation((narrow,), tuple(("src", h) for h in p.temporaries), (tile,)))
    return operations


def _widened() -> list[Operation]:
    load = timed_form(AIE2P, "VLDA_CONV_fp32_bf16_dmx_lda_ups_bf_pstm_nrm_imm")
    return [Operation((load,), (), (half,)) for half in HALVES]


def _turned(tile: str) -> list[Operation]:
    widen = timed_form(AIE2P, "VCONV_fp32_bf16_mv_ups_xbf")
    sources = (("s1", f"raw {tile} low"), ("s2", f"raw {tile} high"))
    return [
        *(load(AIE2P, f"raw {tile} {half}") for half in HALVES),
        *(Operation((shuffle(AIE2P),), sources, (f"turned {tile} {half}",)) for half in HALVES),
        *(Operation((widen,), (("src", f"turned {tile} {half}"),), (half,)) for half in HALVES),
    ]


def pops(p: Product) -> list[Operation]:
    """bfp16 tiles of 72 bytes through the load FIFOs."""
    return _popped(p, "a", p.rows) + _popped(p, "b", p.columns)


def _popped(p: Product, side: str, count: int) -> list[Operation]:
    """A stream for each row of A or column of B: a fill opens it, then a pop for each step of K.

    Each unit has one FIFO, so streams take turns; that a stream's pops follow its fill in the same unit is left out.
    """
    fills = (timed_form(AIE2P, "VLDB_FILL_512"), timed_form(AIE2P, "VLDA_FILL_512"))
    pops = (timed_form(AIE2P, "VLDB_POP_512_normal_pop"), timed_form(AIE2P, "VLDA_POP_512_normal_pop"))
    operations = []
    for index in range(count):
        operations.append(Operation(fills))
        operations += [Operation(pops, (), (p.operand(side, index, step),)) for step in range(p.run)]
    return operations


def load(generation: Generation, value: str) -> Operation:
    if generation == AIE2:
        names = ("VLDB_dmw_ldb_ag_pstm_nrm_imm", "VLDA_dmw_lda_w_ag_pstm_nrm_imm")
    else:
        names = ("VLDB_dmx_ldb_x_pstm_nrm_imm", "VLDA_dmx_lda_x_pstm_nrm_imm")
    return Operation(tuple(timed_form(generation, name) for name in names), (), (value,))


def shuffle(generation: Generation) -> TimedForm:
    return timed_form(generation, "VSHUFFLE" if generation == AIE2 else "VSHUFFLE_vec_shuffle_x")
