"""An array with something of each kind, and sequences in it as they are lowered."""

from bdforge.array.mlir import parse
from bdforge.array.txn.lower import lower_module
from bdforge.array.txn.target import REFUSING, ControllerIds, Policy

ARRAY = """module {
  aie.device(npu2) {
    %s0 = aie.tile(0, 0)
    %s1 = aie.tile(1, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 5>}
    %m0 = aie.tile(0, 1)
    %m1 = aie.tile(1, 1)
    %c0 = aie.tile(0, 2)
    %mb = aie.buffer(%m0) {sym_name = "mb", address = 4096 : i32} : memref<1024xi32>
    %odd = aie.buffer(%m0) {sym_name = "odd", address = 65538 : i32} : memref<64xi8>
    %far = aie.buffer(%m1) {sym_name = "far"} : memref<1024xi32>
    %cb = aie.buffer(%c0) {sym_name = "cb", address = 2048 : i32} : memref<256xi16>
    %ml = aie.lock(%m0, 3) {sym_name = "ml"}
    %mk = aie.lock(%m0, 4)
    %cl = aie.lock(%c0, 9)
    %ck = aie.lock(%c0, 2)
    aie.shim_dma_allocation @in (%s0, MM2S, 1)
    aie.shim_dma_allocation @tagged (%s0, MM2S, 0, <pkt_type = 2, pkt_id = 6>)
    aie.shim_dma_allocation @out (%s1, S2MM, 0)
    memref.global "private" constant @words : memref<3xi32> = dense<[1, -2, 4294967295]>
    aie.bd_chain @copy(%v: memref<64xi32>) {
      aie.dma_bd(%v : memref<64xi32>, 0, 32)
      aie.next_bd ^second
    ^second:
      aie.dma_bd(%v : memref<64xi32>, 32, 32)
      aie.end
    }
    aie.runtime_sequence(%x: memref<64xi32>, %n: i32, %y: memref<8x16xi32>, %z: memref<4096xi8>) {
"""
FIRST_LINE = ARRAY.count("\n") + 1
END = "    }\n  }\n}\n"


def design(*lines: str, device: str = "npu2") -> str:
    return ARRAY.replace("npu2", device) + "".join(f"      {line}\n" for line in lines) + END


def lowered(
    *lines: str, device: str = "npu2", controller_ids: ControllerIds = ControllerIds.TEXT, policy: Policy = REFUSING
) -> list:
    module = parse(design(*lines, device=device), "design.mlir")
    return lower_module(module, policy=policy, controller_ids=controller_ids)[1]


def task(bd: str, tile: str = "%s0", channel: str = "MM2S, 0", options: str = "", start: bool = True) -> list[str]:
    end = [] if start is False else ["aiex.dma_start_task(%t)"]
    return [f"%t = aiex.dma_configure_task({tile}, {channel}) {{", bd, "aie.end", f"}} {options}", *end]
