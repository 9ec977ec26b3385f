"""A column of three tiles without static DMA programs: all of its work comes from the runtime sequence.

Completion tokens of all three have a way to the controller.
"""

from collections.abc import Iterable, Mapping

from bdforge.array.mlir.register_ops import WRITEBD_FIELDS

COLUMN = """module {{
  aie.device({device}) {{
    %s = aie.tile({column}, 0)
    %m = aie.tile({column}, 1)
    %c = aie.tile({column}, 2)
    %mb = aie.buffer(%m) {{sym_name = "mb", address = 4096 : i32}} : memref<64xi32>
    %cb = aie.buffer(%c) {{sym_name = "cb", address = 2048 : i32}} : memref<16xi32>
    %ml = aie.lock(%m, 3) {{sym_name = "ml", init = 2 : i32}}
    %cl = aie.lock(%c, 5) {{sym_name = "cl", init = 1 : i32}}
    aie.flow(%s, DMA : 0, %m, DMA : 0)
    aie.flow(%m, DMA : 0, %s, DMA : 0)
    aie.flow(%m, DMA : 1, %c, DMA : 0)
    aie.flow(%c, DMA : 0, %m, DMA : 1)
    aie.shim_dma_allocation @in (%s, MM2S, 0)
    aie.shim_dma_allocation @out (%s, S2MM, 0)
{extra}
    aie.runtime_sequence @sequence(%a: memref<64xi32>, %b: memref<64xi32>) {{
{sequence}
    }}
    aie.packet_flow(26) {{
      aie.packet_source<%m, TileControl : 0>
      aie.packet_dest<%s, South : 0>
    }} {{keep_pkt_header = true}}
    aie.packet_flow(27) {{
      aie.packet_source<%c, TileControl : 0>
      aie.packet_dest<%s, South : 0>
    }} {{keep_pkt_header = true}}
  }}
}}
"""


def column(*lines: str, device: str = "npu2", at: int = 0, extra: str = "") -> str:
    """The design with these lines as its sequence, in column `at`; `extra` goes into the device."""
    return COLUMN.format(device=device, column=at, extra=extra, sequence="\n".join(f"      {line}" for line in lines))


def writebd(tile: tuple[int, int], bd: int, length: int, offset: int = 0, **fields: int) -> str:
    """`aiex.npu.writebd` with every field that is not given 0."""
    given = {"column": tile[0], "row": tile[1], "bd_id": bd, "buffer_length": length, "buffer_offset": offset}
    return attributed("aiex.npu.writebd", dict.fromkeys(WRITEBD_FIELDS, 0) | given | {"valid_bd": 1} | fields)


def attributed(operation: str, values: Mapping[str, int], kind: str = "i32") -> str:
    """An operation that consists of integer attributes."""
    return f"{operation} {{{', '.join(f'{name} = {value} : {kind}' for name, value in values.items())}}}"


def push(tile: tuple[int, int], channel: str, bd: int, token: bool = False, repeat: int = 0) -> str:
    """`aiex.npu.push_queue` on a channel such as "MM2S : 0"."""
    options = f"issue_token = {str(token).lower()}, repeat_count = {repeat} : i32, bd_id = {bd} : i32"
    return f"aiex.npu.push_queue({tile[0]}, {tile[1]}, {channel}) {{{options}}}"


def sync(tile: tuple[int, int], direction: int, channel: int = 0, columns: int = 1) -> str:
    """`aiex.npu.sync` on one tile, or on those of several columns; direction 0 is S2MM."""
    values = {"column": tile[0], "row": tile[1], "direction": direction, "channel": channel, "column_num": columns}
    return attributed("aiex.npu.sync", values | {"row_num": 1})


def patch(register: int, argument: int, plus: int = 0) -> str:
    """`aiex.npu.address_patch`."""
    options = f"addr = {register} : ui32, arg_idx = {argument} : i32, arg_plus = {plus} : i32"
    return f"aiex.npu.address_patch {{{options}}}"


def write32(address: int, value: int, mask: int | None = None, where: str = "") -> str:
    """`aiex.npu.write32` or, with a mask, `maskwrite32`; `where` adds attributes."""
    name = "write32" if mask is None else "maskwrite32"
    masked = "" if mask is None else f", mask = {mask} : ui32"
    return f"aiex.npu.{name} {{address = {address} : ui32, value = {value} : ui32{masked}{where}}}"


def global_words(name: str, words: Iterable[int]) -> str:
    """A memref.global that `npu.blockwrite` can store."""
    values = list(words)
    return f'memref.global "private" constant @{name} : memref<{len(values)}xi32> = dense<{values}>'


def blockwrite(name: str, count: int, address: int, where: str = "") -> list[str]:
    """Lines that store such a global from an address on."""
    kind = f"memref<{count}xi32>"
    return [
        f"%{name} = memref.get_global @{name} : {kind}",
        f"aiex.npu.blockwrite(%{name}) {{address = {address} : ui32{where}}} : {kind}",
    ]


def copy_through_memtile(tile: int = 0, words: int = 64) -> list[str]:
    """A whole copy of argument 0 to argument 1 by way of the memtile, raw registers only."""
    shim, mem = (tile, 0), (tile, 1)
    own = 0x20000 + 4096 // 4  # words: the memtile's own window, then the buffer's address
    bd = (tile << 25) + 0x1D000
    return [
        writebd(mem, 0, words, own), writebd(mem, 1, words, own),
        push(mem, "S2MM : 0", 0, token=True),
        writebd(shim, 4, words), patch(bd + 4 * 0x20 + 4, 0), push(shim, "MM2S : 0", 4),
        sync(mem, 0),
        writebd(shim, 7, words), patch(bd + 7 * 0x20 + 4, 1), push(shim, "S2MM : 0", 7, token=True),
        push(mem, "MM2S : 0", 1), sync(shim, 0),
    ]  # fmt: skip
