"""Block floats out of float sums, after the last step of K."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import aligned_copy, tile_options

from bdforge.devices.formats import encode
from support.differences import same
from support.micro_tiles import micro_tiled

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


@pytest.mark.parametrize(("tile", "macros"), [((8, 8, 8), ()), ((24, 8, 40), ("-DRELU",))], ids=("small", "clipped"))
@pytest.mark.parametrize("name", ["bf16", "f32"])
def test_finish_makes_blocks_along_n_and_touches_nothing_else(kernel_library, name, tile, macros):
    (m, _, n), dtype, rng = tile, DTYPES[name], np.random.default_rng(5)
    c = (rng.normal(size=(m, n)) * 2.0 ** rng.integers(-40, 40, (m, n))).astype(dtype)
    c[0, :8] = 0
    library = kernel_library("aie2p", (f"finish_{name}_bfp16",), tile, *macros)
    buffer = aligned_copy(np.append(micro_tiled(c, 8, 8, False), np.full(64, 7, dtype)), dtype)
    library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
    library.call(f"finish_{name}_bfp16", buffer)
    c = np.maximum(c, dtype(0)) if macros else c
    blocks = encode(c.astype(np.float32)).reshape(m // 8, 8, n // 8, 9).swapaxes(1, 2)
    same(buffer.view(np.uint8)[: blocks.size], blocks.ravel())
    same(buffer[m * n :], 7)


@pytest.mark.parametrize(
    ("macro", "sentence"),
    [("-DC_TRANSPOSED", "blocks of C lie along N"), ("-DSCALE", "SCALE and BIAS are for finish_f32_bf16")],
)
def test_what_blocks_cannot_be_made_of_does_not_compile(refusal, macro, sentence):
    assert sentence in refusal("aie2p", "finish_f32_bfp16", *tile_options(8, 8, 8), macro)
