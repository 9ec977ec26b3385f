"""Buffers and locks that a region declares: they hold their first values as if the device declared them."""

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.array.emulator.verification import verify_design
from bdforge.array.lower import configuration
from bdforge.array.lower.array_state import ArrayState
from bdforge.array.mlir import MlirError
from support.decoded import device_of

TILES = "".join(f"%t0{row} = aie.tile(0, {row})\n" for row in range(4))
REGIONS = {
    "device": "{}",
    "core": "aie.core(%t02) {{ {} aie.end }}",
    "loop of a core": """aie.core(%t02) {{ %0 = arith.constant 0 : index  %1 = arith.constant 1 : index
                         scf.for %i = %0 to %1 step %1 {{ {} }} aie.end }}""",
    "mem": "aie.mem(%t02) {{ {} aie.end }}",
    "memtile_dma": "aie.memtile_dma(%t01) {{ {} aie.end }}",
    "shim_dma": "aie.shim_dma(%t00) {{ {} aie.end }}",
    "block of a BD": """aie.memtile_dma(%t01) {{ aie.dma_start(S2MM, 0, ^bd, ^end)
                        ^bd: {} %o = aie.buffer(%t01) {{address = 0 : i32}} : memref<4xi32>
                        aie.dma_bd(%o : memref<4xi32>) aie.next_bd ^end  ^end: aie.end }}""",
    "last block": """aie.memtile_dma(%t01) {{ %o = aie.buffer(%t01) {{address = 0 : i32}} : memref<4xi32>
                     aie.dma_start(S2MM, 0, ^bd, ^end)
                     ^bd: aie.dma_bd(%o : memref<4xi32>) aie.next_bd ^end  ^end: {} aie.end }}""",
    "region of an aie.dma": """aie.memtile_dma(%t01) {{ %k = aie.lock(%t01, 0)
                     %0 = aie.dma(S2MM, 0) [{{ {} %o = aie.buffer(%t01) {{address = 0 : i32}} : memref<4xi32>
                     aie.use_lock(%k, AcquireGreaterEqual) aie.dma_bd(%o : memref<4xi32>) aie.use_lock(%k, Release)
                     }}] aie.end }}""",
}
DECLARED = """%b = aie.buffer(%t0{0}) {{address = 4096 : i32}} : memref<2xi32> = dense<[7, 8]>
              %l = aie.lock(%t0{0}, 3) {{init = 2 : i32}}"""


@pytest.mark.parametrize("row", [1, 2])
@pytest.mark.parametrize("region", REGIONS)
def test_first_values_are_written_wherever_they_are_declared(region: str, row: int):
    text = f"aie.device(npu2) {{\n{TILES}{REGIONS[region].format(DECLARED.format(row))}\n}}"
    assert verify_design(text).faults == ()
    state = ArrayState(configuration(device_of(text), lambda *_: []).operations).tiles[0, row]
    assert state.locks[3] == 2
    assert list(state.memory.spans()) == [(4096, np.array([7, 8], np.int32).tobytes())]
    emulate(text, [])


STRUCTURE = {
    "flow": "aie.flow(%t00, DMA : 0, %t01, DMA : 0)",
    "packet_flow": "aie.packet_flow(1) { aie.packet_source<%t00, DMA : 0> aie.packet_dest<%t01, DMA : 0> }",
    "cascade_flow": "aie.cascade_flow(%t03, %t02)",
    "configure_cascade": "aie.configure_cascade(%t03, North, South)",
    "core": "%c = aie.core(%t03) { aie.end }",
    "mem": "%m = aie.mem(%t03) { aie.end }",
    "memtile_dma": "%m = aie.memtile_dma(%t01) { aie.end }",
    "shim_dma": "%m = aie.shim_dma(%t00) { aie.end }",
    "switchbox": "%s = aie.switchbox(%t03) { aie.connect<South : 0, North : 0> }",
    "shim_mux": "%s = aie.shim_mux(%t00) { aie.connect<DMA : 0, North : 3> }",
    "shim_dma_allocation": "aie.shim_dma_allocation @a(%t00, MM2S, 0)",
    "bd_chain": "aie.bd_chain @c(%b: memref<4xi32>) { aie.dma_bd(%b : memref<4xi32>) aie.end }",
    "runtime_sequence": "aie.runtime_sequence @s() { }",
}


@pytest.mark.parametrize("region", ["core", "memtile_dma"])
@pytest.mark.parametrize("kind", STRUCTURE)
def test_what_makes_the_array_stands_in_the_device_itself(kind: str, region: str):
    """mlir-aie's passes look for these in the device's block only: elsewhere they would be lost."""
    text = f"aie.device(npu2) {{{{\n{TILES}{{}}\n}}}}"
    assert verify_design(text.format(STRUCTURE[kind])).faults == ()
    with pytest.raises(MlirError, match=rf"aie\.{kind}: must stand directly in an aie\.device"):
        device_of(text.format(REGIONS[region].format(STRUCTURE[kind])))


def test_names_of_a_region_are_not_known_outside_of_it():
    """As for mlir-aie, which looks for symbols in the device's block."""
    text = f"""aie.device(npu2) {{\n{TILES}
        aie.mem(%t02) {{ %b = aie.buffer(%t02) {{sym_name = "b", address = 4096 : i32}} : memref<4xi32> aie.end }}
        aie.runtime_sequence() {{ aiex.npu.rtp_write(@b, 0, 1) }} }}"""
    (fault,) = verify_design(text).faults
    assert "@b is declared in a region" in fault
    with pytest.raises(MlirError, match="@b is declared in a region"):
        emulate(text, [])
