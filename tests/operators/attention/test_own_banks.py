"""How long cores of attention wait for banks of their own: the whole program alone, so no DMA's accesses are in it."""

import pytest

from bdforge.array.core_bodies.core_program import core_program, core_symbols
from bdforge.array.mlir import parsed
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.core.codegen.kernels import assembled
from bdforge.core.exact.alone import Alone, run_alone
from bdforge.core.isa import load
from bdforge.core.isa.elf import core_segments
from bdforge.devices import device_named
from bdforge.operators import Plan, plan, render, spec_from

MOST = 0.01
TOKEN = {"few_queries": True, "array": {"rows": 1}}


def alone(made: Plan, queries: int, keys: int) -> Alone:
    """A round of a design's first core, as it is told of a problem."""
    core = next(op for op in parsed(render(made, [])).walk() if isinstance(op, CoreOp))
    kernels = {name: assembled(name, "aie2p", made.kernels.defines) for name in made.kernels.symbols}
    ((segment,), _, names) = core_segments(core_program(core, kernels).elf)
    symbols = core_symbols(core.tile.device_op, core.tile.column, core.tile.row)
    told = {symbols["rtp"] + 4 * i: value for i, value in enumerate((1, queries, keys))}
    functions = {address: name for address, name in names.items() if name in kernels}
    return run_alone(load("aie2p"), segment.data, functions, told, {symbols["go"]: 1})


@pytest.mark.slow
@pytest.mark.parametrize(("heads", "kv_heads", "dim", "more", "queries"), [
    (32, 8, 64, {}, 512), (20, 5, 128, {}, 512), (8, 4, 256, {}, 512),
    (20, 5, 128, TOKEN, 1), (14, 2, 64, TOKEN, 1), (8, 1, 256, TOKEN, 1),
])  # fmt: skip
def test_cores_hardly_wait_for_their_own_banks(heads: int, kv_heads: int, dim: int, more: dict, queries: int):
    spec = spec_from({"kind": "attention", "heads": heads, "kv_heads": kv_heads, "head_dim": dim, **more}, "attention")
    ran = alone(plan(spec, device_named("strix_halo")), queries, 1024)
    assert ran.cycles > 5_000
    assert sum(ran.stalls.values()) < MOST * ran.cycles, ran.stalls
