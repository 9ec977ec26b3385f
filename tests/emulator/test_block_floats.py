"""Block floats (!aiex.bfp): blocks travel whole, kernels and hosts see their bytes, and BDs count 9 bytes each."""

import shutil
import subprocess

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import ArgumentError, DmaError, Result
from bdforge.array.emulator.errors import LoadError
from bdforge.array.mlir import MlirError, parse
from bdforge.array.txn.lower import lower_module
from bdforge.devices.formats import decode, encode
from bdforge.devices.txn_format.operations import BlockWrite, Patch
from bdforge.runtime import load_kernels
from support.array_text import (
    Task,
    acquire,
    bd,
    buffer,
    core,
    dimensions,
    flow,
    lock,
    module,
    program,
    release,
    ring,
    tile,
)
from support.differences import same

BLOCK = '!aiex.bfp<"v8bfp16ebs8">'
VALUES = np.random.default_rng(5).standard_normal((16, 128), np.float32)
BLOCKS = encode(VALUES)  # (16, 16, 9)
BODY = "func.call @scale(%in, %out) : (memref<4x16xBLOCK>, memref<4x16xBLOCK>) -> ()"
SEQUENCE = """aie.runtime_sequence(%x: memref<16x16xBLOCK>, %y: memref<256xBLOCK>) {
    aiex.npu.dma_memcpy_nd(%y[0, 0, 0, 0][1, 1, 1, 256][0, 0, 0, 1]) {id = 1 : i64, metadata = @b} : memref<256xBLOCK>
    aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 0][4, 4, 4, 4][4, 64, 16, 1]) {id = 0 : i64, metadata = @a} : memref<16x16xBLOCK>
    aiex.npu.dma_wait {symbol = @b}
  }"""
DIMS = [(4, 16), (4, 4), (4, 1)]


def block(direction: str, name: str, first: str, last: str, dims: str = "") -> Task:
    moved = bd(name, "4x16", f"0, 64{dims}", element="BLOCK")
    return ring(direction, 0, acquire(f"{name}_{first}"), moved, release(f"{name}_{last}"))


def design(body: str = BODY, dims: list[tuple[int, int]] = DIMS) -> str:
    """Four rounds of 64 blocks through a memtile and a core, which makes `out` of `in`."""
    held = [("hop", "01", 0), ("in", "02", 0), ("out", "02", 2)]
    return module(
        "npu2_1col", *(tile(0, row) for row in range(3)),
        *(buffer(name, at, "4x16", element="BLOCK") for name, at, _ in held),
        *(lock(f"{name}_free", at, number, 1) for name, at, number in held),
        *(lock(f"{name}_full", at, number + 1) for name, at, number in held),
        flow("00 DMA : 0", "01 DMA : 0"), flow("01 DMA : 0", "02 DMA : 0"), flow("02 DMA : 0", "00 DMA : 0"),
        "aie.shim_dma_allocation @a (%t00, MM2S, 0)", "aie.shim_dma_allocation @b (%t00, S2MM, 0)",
        "func.func private @scale(memref<4x16xBLOCK>, memref<4x16xBLOCK>)",
        core(
            "02", acquire("in_full"), acquire("out_free"), "%c4 = arith.constant 4 : index", body, release("in_free"),
            release("out_full"), times=4,
        ),
        program(
            "01", block("S2MM", "hop", "free", "full"), block("MM2S", "hop", "full", "free", f", {dimensions(dims)}")
        ),
        program("02", block("S2MM", "in", "free", "full"), block("MM2S", "out", "full", "free")), SEQUENCE,
    ).replace("BLOCK", BLOCK)  # fmt: skip


def scale(source: np.ndarray, target: np.ndarray) -> None:
    """Doubles every value: one more in the exponent."""
    assert source.shape == target.shape == (4, 16, 9)
    assert source.dtype == np.uint8
    target[...] = source
    target[..., 0] += np.uint8(1)


def run(text: str, kernels=None, **options) -> tuple[np.ndarray, Result]:
    result = np.zeros((256, 9), np.uint8)
    return result, bdforge.emulate(text, [BLOCKS.copy(), result], kernels=kernels, **options)


def expected() -> np.ndarray:
    """The transfer takes columns of four blocks, four rows at a time: what arrives, block by block."""
    columns = BLOCKS.reshape(4, 4, 4, 4, 9)  # rows by four, row, columns by four, block
    return columns.transpose(2, 0, 1, 3, 4).reshape(256, 9)


@pytest.mark.parametrize("options", [{}, {"schedule": "random"}, {"poison": True}], ids=str)
def test_blocks_go_through_memtile_core_and_a_python_kernel(options):
    result, done = run(design(), {"scale": scale}, **options)
    same(decode(result), 2 * decode(expected()))
    assert done.buffers["out"].shape == (4, 16, 9)
    same(done.buffers["out"].reshape(-1, 9), result[-64:])


def test_a_memtile_transposes_whole_blocks():
    result, _ = run(design(dims=[(4, 4), (4, 16), (4, 1)]), {"scale": scale})
    wanted = expected().reshape(4, 4, 4, 4, 9).swapaxes(1, 2).reshape(256, 9)
    same(decode(result), 2 * decode(wanted))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_compiled_kernel_gets_the_address_of_its_blocks(tmp_path):
    (tmp_path / "scale.c").write_text(
        "void scale(const unsigned char *in, unsigned char *out) {\n"
        "  for (int i = 0; i < 64 * 9; i++) out[i] = in[i] + (i % 9 == 0);\n}\n"
    )
    library = tmp_path / "scale.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "scale.c"], check=True)
    result, _ = run(design(), load_kernels(library))
    same(decode(result), 2 * decode(expected()))


MOVES = """%row = memref.subview %in[1, 0] [1, 16] [1, 1] :
    memref<4x16xBLOCK> to memref<16xBLOCK, strided<[1], offset: 16>>
  memref.copy %in, %out : memref<4x16xBLOCK> to memref<4x16xBLOCK>
  %one = memref.load %row[%c4] : memref<16xBLOCK, strided<[1], offset: 16>>
  memref.store %one, %out[%c0, %c1] : memref<4x16xBLOCK>"""


@pytest.mark.parametrize("poison", [False, True])
def test_cores_move_blocks_whole(poison):
    result, _ = run(design(MOVES), poison=poison)
    wanted = expected().reshape(4, 4, 16, 9).copy()
    wanted[:, 0, 1] = wanted[:, 1, 4]
    same(result, wanted.reshape(256, 9))


def test_a_transfer_counts_nine_bytes_a_block():
    """Four rows of 8 blocks, 16 apart, from block 4 on: words of 4 bytes, wraps 18, strides 36 - 1."""
    text = f"""aie.device(npu2_1col) {{
      %s = aie.tile(0, 0)
      aie.shim_dma_allocation @a (%s, MM2S, 0)
      aie.runtime_sequence(%x: memref<256x{BLOCK}>) {{
        aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 4][1, 1, 4, 8][0, 0, 16, 1])
          {{id = 0 : i64, metadata = @a}} : memref<256x{BLOCK}>
      }} }}"""
    operations = lower_module(parse(text))[1]
    words = next(op.words for op in operations if isinstance(op, BlockWrite))
    assert words[0] == 4 * 18
    assert words[3] >> 20 == 18
    assert words[4] & 0xFFFFF == 36 - 1
    assert next(op for op in operations if isinstance(op, Patch)).plus == 36


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[1, 1, 1, 256][0, 0, 0, 1]", "[1, 1, 1, 255][0, 0, 0, 1]", "2295 bytes"),
        ("[4, 4, 4, 4][4, 64, 16, 1]", "[4, 4, 4, 4][4, 64, 15, 1]", "135"),
        ("aie.device(npu2_1col)", "aie.device(npu1_1col)", "block floats are of AIE2P"),
        (", 0, 64)\naie.use_lock(%hop_full", ", 0, 63)\naie.use_lock(%hop_full", "567 bytes"),
    ],
)
def test_what_is_no_whole_word_or_no_format_is_refused(old, new, message):
    text = design()
    assert old in text
    with pytest.raises((MlirError, LoadError, DmaError), match=message):
        run(text.replace(old, new), {"scale": scale})


def test_transfers_of_blocks_are_refused_where_cores_have_none():
    text = f"""aie.device(npu1_1col) {{
      %s = aie.tile(0, 0)
      aie.shim_dma_allocation @a (%s, MM2S, 0)
      aie.runtime_sequence(%x: memref<256x{BLOCK}>) {{
        TRANSFER
      }} }}"""
    memcpy = f"""aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 0][1, 1, 1, 8][0, 0, 0, 1])
          {{id = 0 : i64, metadata = @a}} : memref<256x{BLOCK}>"""
    task = f"%t = aiex.dma_configure_task(%s, MM2S, 0) {{ aie.dma_bd(%x : memref<256x{BLOCK}>, 0, 8) aie.end }}"
    for transfer in (memcpy, task):
        with pytest.raises(MlirError, match="which npu1_1col has not: block floats are of AIE2P"):
            parse(text.replace("TRANSFER", transfer))


@pytest.mark.parametrize(
    "array", [np.zeros(256 * 9, np.int8), np.zeros((256, 8), np.uint8), np.zeros(256 * 9 // 4, np.float32)]
)
def test_arrays_that_hold_no_blocks_are_refused(array):
    with pytest.raises(ArgumentError, match=r"argument y must be a uint8 array of 256 blocks of 9 bytes, 2304 in all"):
        bdforge.emulate(design(), [BLOCKS.copy(), array], kernels={"scale": scale})
