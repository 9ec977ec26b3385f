"""Designs as others write them: a core that does one thing or another by an opcode, in views of the same bytes."""

import re

import numpy as np
import pytest

import bdforge
from bdforge.array.core_bodies.core_program import core_program
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from support.differences import same

NEGATE = """%x = memref.load %as_words[%i] : memref<16xi32>
          %y = arith.subi %zero, %x : i32
          memref.store %y, %as_words[%i] : memref<16xi32>"""
HALVES = """%h = arith.constant 2 : index
          %w = arith.muli %i, %h : index
          %x = memref.load %as_shorts[%w] : memref<32xi16>
          %y = arith.addi %x, %step : i16
          memref.store %y, %as_shorts[%w] : memref<32xi16>"""
SWITCH = f"""scf.index_switch %op
        case 1 {{
          {NEGATE}
          scf.yield
        }}
        case 2 {{
          {HALVES}
        }}
        default {{
        }}"""
IFS = f"""%is_one = arith.cmpi eq, %op_word, %one_word : i32
        scf.if %is_one {{
          {NEGATE}
        }} else {{
          %two_word = arith.constant 2 : i32
          %is_two = arith.cmpi eq, %op_word, %two_word : i32
          scf.if %is_two {{
          {HALVES}
          }}
        }}"""
DESIGN = """module {{
  aie.device(npu2_1col) {{
    %shim = aie.tile(0, 0)
    %tile = aie.tile(0, 2)
    %rtp = aie.buffer(%tile) {{sym_name = "rtp"}} : memref<2xi32>
    %pool = aie.buffer(%tile) {{sym_name = "pool"}} : memref<128xi8>
    %go = aie.lock(%tile) {{init = 0 : i32, sym_name = "go"}}
    %free = aie.lock(%tile) {{init = 1 : i32, sym_name = "free"}}
    %full = aie.lock(%tile) {{init = 0 : i32, sym_name = "full"}}
    %done = aie.lock(%tile) {{init = 0 : i32, sym_name = "done"}}
    aie.flow(%shim, DMA : 0, %tile, DMA : 0)
    aie.flow(%tile, DMA : 0, %shim, DMA : 0)
    aie.shim_dma_allocation @in (%shim, MM2S, 0)
    aie.shim_dma_allocation @out (%shim, S2MM, 0)
    %mem = aie.mem(%tile) {{
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^out, ^end)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%pool : memref<128xi8>, 32, 64)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^in
    ^out:
      aie.use_lock(%done, AcquireGreaterEqual, 1)
      aie.dma_bd(%pool : memref<128xi8>, 32, 64)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^out
    ^end:
      aie.end
    }}
    %core = aie.core(%tile) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %forever = arith.constant 4294967295 : index
      %zero = arith.constant 0 : i32
      %one_word = arith.constant 1 : i32
      %as_words = memref.view %pool[%c32][] : memref<128xi8> to memref<16xi32>
      %as_shorts = memref.view %pool[%c32][] : memref<128xi8> to memref<32xi16>
      scf.for %run = %c0 to %forever step %c1 {{
        aie.use_lock(%go, AcquireGreaterEqual, 1)
        aie.use_lock(%full, AcquireGreaterEqual, 1)
        %op_word = memref.load %rtp[%c0] : memref<2xi32>
        %op = arith.index_cast %op_word : i32 to index
        %step_word = memref.load %rtp[%c1] : memref<2xi32>
        %step = arith.trunci %step_word : i32 to i16
        scf.for %i = %c0 to %c16 step %c1 {{
          {}
        }}
        aie.use_lock(%done, Release, 1)
      }}
      aie.end
    }}
    aie.runtime_sequence(%a : memref<48xi32>, %b : memref<48xi32>) {{
{}
    }}
  }}
}}
"""
PART = "[0, 0, 0, {at}][1, 1, 1, 16][0, 0, 0, 1]) {{metadata = "
RUN = f"""      aiex.npu.rtp_write(@rtp, 0, {{opcode}})
      aiex.npu.rtp_write(@rtp, 1, 300)
      aiex.set_lock(%go, 1)
      aiex.npu.dma_memcpy_nd(%a{PART}@in, id = 0 : i64}}}} : memref<48xi32>
      aiex.npu.dma_memcpy_nd(%b{PART}@out, id = 1 : i64, issue_token = true}}}} : memref<48xi32>
      aiex.npu.dma_wait {{{{symbol = @out}}}}"""
OPCODES = (2, 1, 7)
TEXTS = {
    name: DESIGN.format(body, "\n".join(RUN.format(opcode=op, at=16 * n) for n, op in enumerate(OPCODES)))
    for name, body in {"index_switch": SWITCH, "if": IFS}.items()
}


def wanted(data: np.ndarray) -> np.ndarray:
    """The first sixteen words with 300 more in their lower halves, the next ones negated, the last as they are."""
    found = data.copy()
    found[:16].view(np.int16)[::2] += 300
    found[16:32] *= -1
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("machine_code", [False, True], ids=["interpreted", "machine code"])
@pytest.mark.parametrize("name", TEXTS)
def test_an_opcode_tells_what_is_done_with_the_bytes(name: str, machine_code: bool, seed: int, tmp_path):
    text, elfs = TEXTS[name], {}
    if machine_code:
        (core,) = (op for op in parse(text).walk() if isinstance(op, CoreOp))
        (tmp_path / "core.elf").write_bytes(core_program(core, {}).elf)
        elfs[0, 2] = tmp_path / "core.elf"
    data, found = np.random.default_rng(seed).integers(-(2**15), 2**15, 48, np.int32), np.zeros(48, np.int32)
    bdforge.emulate(text, [data, found], elfs=elfs, schedule="random", seed=seed, poison=not machine_code)
    same(found, wanted(data))


@pytest.mark.parametrize("name", TEXTS)
def test_such_a_design_is_legal_converted_and_shown_but_no_document(name: str, tmp_path, run, refused):
    assert verify_design(TEXTS[name], name).faults == ()
    (tmp_path / "theirs.mlir").write_text(TEXTS[name])
    converted, shown = run("convert", "theirs.mlir", "--dialect", "march"), run("show", "theirs.mlir")
    assert (converted[0], re.sub(r"\s", "", converted[1])) == (0, re.sub(r"\s", "", TEXTS[name]))
    assert re.search(r"core \(0, 2\) +0x420 +0x460 +64 +%as_words +%pool", shown[1])
    assert len(refused("plan theirs.mlir", "theirs.mlir").splitlines()) == 1
