"""Prints array designs as the MLIR that a person would write: custom form, static DMA blocks, shim tasks."""

from dataclasses import replace

from oracle.array_design import (
    ELEMENT_BYTES,
    WORD_BYTES,
    Await,
    Bd,
    Buffer,
    Call,
    Chain,
    Configure,
    Design,
    Dim,
    Flow,
    Free,
    Memcpy,
    Operation,
    Port,
    Program,
    SetLock,
    Start,
    Tile,
    WaitToken,
    WriteWords,
    statements,
)
from oracle.core_text import CoreText, memref, type_of, use_text

SHIM_BD_ADDRESS, BD_BYTES = 0x1D000, 0x20  # register map of AM025
RAW_FIELDS = (
    "column", "row", "bd_id", "buffer_length", "buffer_offset", "enable_packet", "out_of_order_id", "packet_id",
    "packet_type", "d0_size", "d0_stride", "d1_size", "d1_stride", "d2_size", "d2_stride", "iteration_current",
    "iteration_size", "iteration_stride", "next_bd", "use_next_bd", "valid_bd", "lock_rel_val", "lock_rel_id",
    "lock_acq_enable", "lock_acq_val", "lock_acq_id", "d0_zero_before", "d1_zero_before", "d2_zero_before",
    "d0_zero_after", "d1_zero_after", "d2_zero_after",
)  # fmt: skip


def mlir(design: Design) -> str:
    """The whole module."""
    lines = [f"%{t.name} = aie.tile({t.column}, {t.row})" for t in design.tiles()]
    lines += [kernel_line(design, call) for call in kernel_calls(design)]
    lines += [buffer_line(b) for b in design.buffers]
    lines += [
        f'%{lock.name} = aie.lock(%{lock.tile.name}, {lock.id}) {{init = {lock.init} : i32, sym_name = "{lock.name}"}}'
        for lock in design.locks
    ]
    lines += [line for flow in design.flows for line in flow_lines(flow)]
    for tile, programs in design.programs_by_tile():
        lines += dma_lines(design, tile, programs)
    for core in design.cores:
        lines += CoreText(design, core).lines()
    lines += sequence_lines(design)
    body = "\n".join("    " + line for line in lines)
    return f"module {{\n  aie.device({design.device}) {{\n{body}\n  }}\n}}\n"


def kernel_calls(design: Design) -> list[Call]:
    return [s for core in design.cores for s in statements(core.body) if isinstance(s, Call)]


def kernel_line(design: Design, call: Call) -> str:
    return f"func.func private @{call.kernel}({type_of(design, call.source)}, {type_of(design, call.target)}, i32)"


def buffer_line(buffer: Buffer) -> str:
    address = f", address = {buffer.address} : i32" if buffer.address is not None else ""
    values = f" = dense<[{', '.join(map(str, buffer.values))}]>" if buffer.values is not None else ""
    kind = memref(buffer.elements, buffer.element)
    return f'%{buffer.name} = aie.buffer(%{buffer.tile.name}) {{sym_name = "{buffer.name}"{address}}} : {kind}{values}'


def end_text(port: Port) -> str:
    return f"%{port.tile.name}, DMA : {port.channel}"


def flow_lines(flow: Flow) -> list[str]:
    if flow.packet_id is None:
        return [f"aie.flow({end_text(flow.source)}, {end_text(sink)})" for sink in flow.sinks]
    ends = [f"aie.packet_source<{end_text(flow.source)}>"]
    ends += [f"aie.packet_dest<{end_text(sink)}>" for sink in flow.sinks]
    keep = " {keep_pkt_header = true}" if flow.keep_header else ""
    return [f"aie.packet_flow({flow.packet_id}) {{", *("  " + e for e in ends), f"}}{keep}"]


def bd_text(design: Design, bd: Bd) -> str:
    parts = [f"%{bd.memory} : {type_of(design, bd.memory)}", str(bd.offset), str(bd.length)]
    dims = [f"<size = {d.size}, stride = {d.stride}>" for d in bd.dims]
    if bd.iteration is not None:
        dims.insert(0, f"<size = {bd.iteration[0]}, stride = {bd.iteration[1]}>")
    if dims:
        parts.append(f"[{', '.join(dims)}]")
    if any(d.before or d.after for d in bd.dims):
        pads = (f"<const_pad_before = {d.before}, const_pad_after = {d.after}>" for d in bd.dims)
        parts.append(f"[{', '.join(pads)}]")
    fields = [f"bd_id = {bd.bd_id} : i32"] if bd.bd_id is not None else []
    if bd.packet is not None:
        fields.append(f"packet = #aie.packet_info<pkt_type = {bd.packet[0]}, pkt_id = {bd.packet[1]}>")
    attributes = f" {{{', '.join(fields)}}}" if fields else ""
    return f"aie.dma_bd({', '.join(parts)}){attributes}"


def bd_block(design: Design, bd: Bd) -> list[str]:
    lines = [use_text(bd.acquire)] if bd.acquire else []
    lines.append(bd_text(design, bd))
    return [*lines, use_text(bd.release)] if bd.release else lines


def dma_lines(design: Design, tile: Tile, programs: list[Program]) -> list[str]:
    """All tasks of a tile's channels as one region of blocks."""
    name = {"memtile": "memtile_dma", "core": "mem", "shim": "shim_dma"}[tile.kind]
    starts, blocks = [], []
    for program in programs:
        for chain in program.tasks:
            task = len(starts)
            after = f"^start{task + 1}"
            repeat = f", repeat_count = {chain.runs - 1}" if chain.runs > 1 else ""
            port = program.port
            starts.append(f"%s{task} = aie.dma_start({port.direction}, {port.channel}, ^bd{task}_0, {after}{repeat})")
            blocks += chain_blocks(design, chain, f"bd{task}")
    lines = [f"%{name}_{tile.name} = aie.{name}(%{tile.name}) {{"]
    for task, start in enumerate(starts):
        lines += [f"^start{task}:"] if task else []
        lines.append("  " + start)
    return [*lines, *blocks, f"^start{len(starts)}:", "  aie.end", "}"] if starts else []


def chain_blocks(design: Design, chain: Chain, label: str) -> list[str]:
    lines = []
    for index, bd in enumerate(chain.bds):
        last = index == len(chain.bds) - 1
        following = f"^{label}_{0 if last else index + 1}" if chain.loops or not last else f"^{label}_end"
        lines += [f"^{label}_{index}:", *("  " + line for line in bd_block(design, bd)), f"  aie.next_bd {following}"]
    return lines if chain.loops else [*lines, f"^{label}_end:", "  aie.end"]


def sequence_lines(design: Design) -> list[str]:
    if not design.arguments and not design.sequence:
        return []
    shim = {p for f in design.flows for p in (f.source, *f.sinks) if p.tile.kind == "shim"}
    lines = [
        f"aie.shim_dma_allocation @{p.allocation} (%{p.tile.name}, {p.direction}, {p.channel})" for p in sorted(shim)
    ]
    blocks = [op for op in design.sequence if isinstance(op, WriteWords) and op.form.startswith("block")]
    for number, op in enumerate(blocks):
        values = ", ".join(map(str, op.values))
        lines.append(
            f'memref.global "private" constant @data{number} : {memref(len(op.values), "i32")} = dense<[{values}]>'
        )
    arguments = ", ".join(f"%{a.name}: {memref(a.elements, a.element)}" for a in design.arguments)
    lines.append(f"aie.runtime_sequence @sequence({arguments}) {{")
    for op in design.sequence:
        lines += [
            "  " + line for line in operation_lines(design, op, next((i for i, b in enumerate(blocks) if b is op), 0))
        ]
    return [*lines, "}"]


def operation_lines(design: Design, op: Operation, block: int) -> list[str]:
    match op:
        case Memcpy():
            return raw_lines(design, op) if op.raw else [memcpy_text(design, op)]
        case Configure():
            return configure_lines(design, op)
        case Start(task):
            return [f"aiex.dma_start_task(%{task})"]
        case Await(task):
            return [f"aiex.dma_await_task(%{task})"]
        case Free(task):
            return [f"aiex.dma_free_task(%{task})"]
        case WaitToken(port, True):
            return [f"aiex.npu.dma_wait {{symbol = @{port.allocation}}}"]
        case WaitToken(port):
            fields = {
                "channel": port.channel,
                "column": port.tile.column,
                "column_num": 1,
                "direction": int(port.direction == "MM2S"),
                "row": port.tile.row,
                "row_num": 1,
            }
            return ["aiex.npu.sync {" + ", ".join(f"{k} = {v} : i32" for k, v in fields.items()) + "}"]
        case SetLock(lock, value):
            return [f"aiex.set_lock(%{lock}, {value})"]
        case WriteWords():
            return write_lines(design, op, block)


def memcpy_text(design: Design, op: Memcpy) -> str:
    lists = "".join(f"[{', '.join(map(str, entries))}]" for entries in (op.offsets, op.sizes, op.strides))
    packet = f", packet = <pkt_id = {op.packet[1]}, pkt_type = {op.packet[0]}>" if op.packet else ""
    fields = f"id = {op.id} : i64, metadata = @{op.port.allocation}" + (", issue_token = true" if op.token else "")
    kind = type_of(design, op.argument)
    return f"aiex.npu.dma_memcpy_nd(%{op.argument}{lists}{packet}) {{{fields}}} : {kind}"


def raw_lines(design: Design, op: Memcpy) -> list[str]:
    """A transfer as one BD, its address and a push, as mlir-aie lowers it; in words, steps minus 1."""
    runs, s2, s1, s0 = op.sizes
    step, *steps = (
        s * ELEMENT_BYTES[op.element] // WORD_BYTES - 1 if s > 1 or op.element == "i32" else 0 for s in op.strides
    )
    words = s0 * ELEMENT_BYTES[op.element] // WORD_BYTES
    start = sum(o * s for o, s in zip(op.offsets, op.strides, strict=True)) * ELEMENT_BYTES[op.element]
    moves = runs > 1 and op.strides[0] > 0
    given = {
        "column": op.port.tile.column, "bd_id": op.id, "buffer_length": words * s1 * s2,
        "d0_size": words, "d1_size": s1, "d0_stride": max(0, steps[2]), "d1_stride": max(0, steps[1]),
        "d2_stride": max(0, steps[0]), "iteration_size": runs - 1 if moves else 0,
        "iteration_stride": step if moves else 0, "valid_bd": 1,
    }  # fmt: skip
    if op.packet is not None:
        given |= {"enable_packet": 1, "packet_type": op.packet[0], "packet_id": op.packet[1]}
    fields = dict.fromkeys(RAW_FIELDS, 0) | given
    address = op.port.tile.column << 25 | SHIM_BD_ADDRESS + op.id * BD_BYTES + WORD_BYTES
    argument = [a.name for a in design.arguments].index(op.argument)
    token = str(op.token or op.port.direction == "S2MM").lower()
    queue = f"issue_token = {token}, repeat_count = {runs - 1} : i32, bd_id = {op.id} : i32"
    place = f"{op.port.tile.column}, 0, {op.port.direction} : {op.port.channel}"
    return [
        "aiex.npu.writebd {" + ", ".join(f"{name} = {value} : i32" for name, value in fields.items()) + "}",
        f"aiex.npu.address_patch {{addr = {address} : ui32, arg_idx = {argument} : i32, arg_plus = {start} : i32}}",
        f"aiex.npu.push_queue({place}) {{{queue}}}",
    ]


def configure_lines(design: Design, op: Configure) -> list[str]:
    port = op.port
    if op.by_name:
        head = f"%{op.task} = aiex.dma_configure_task_for @{port.allocation} {{"
    else:
        head = f"%{op.task} = aiex.dma_configure_task(%{port.tile.name}, {port.direction}, {port.channel}) {{"
    bds = [task_form(bd) for bd in op.chain.bds]
    ends = [f"aie.next_bd ^bb{i + 1}" for i in range(len(bds) - 1)]
    ends.append("aie.next_bd ^bb0" if op.chain.loops else "aie.end")
    lines = [head, "  aie.next_bd ^bb0"] if op.chain.loops else [head]
    for index, (bd, end) in enumerate(zip(bds, ends, strict=True)):
        lines += [f"^bb{index}:"] if index or op.chain.loops else []
        lines += ["  " + line for line in (*bd_block(design, bd), end)]
    fields = ["issue_token = true"] if op.token else []
    fields += [f"repeat_count = {op.chain.runs - 1} : i32"] if op.chain.runs > 1 else []
    return [*lines, "}" + (f" {{{', '.join(fields)}}}" if fields else "")]


def task_form(bd: Bd) -> Bd:
    """The same walk in a form whose innermost stride mlir-aie keeps: it drops one that only sizes of 1 surround."""
    if not bd.dims or bd.dims[-1].stride == 1 or any(d.size > 1 for d in bd.dims[:-1]):
        return bd
    return replace(bd, dims=(bd.dims[-1], Dim(1, 1), Dim(1, 1)))


def unsigned(value: int) -> int:
    return value % (1 << 32)


def write_lines(design: Design, op: WriteWords, block: int) -> list[str]:
    buffer = design.buffer(op.buffer)
    tile = f"column = {buffer.tile.column} : i32, row = {buffer.tile.row} : i32"
    byte = (buffer.address or 0) + 4 * op.index
    whole = buffer.tile.column << 25 | buffer.tile.row << 20 | byte
    value = op.values[0]
    word = f"address = {op.index} : ui32, buffer = @{op.buffer}"
    match op.form:
        case "rtp":
            return [f"aiex.npu.rtp_write(@{op.buffer}, {op.index}, {value})"]
        case "buffer":
            return [f"aiex.npu.write32 {{{word}, value = {unsigned(value)} : ui32}}"]
        case "tile":
            return [f"aiex.npu.write32 {{address = {byte} : ui32, {tile}, value = {unsigned(value)} : ui32}}"]
        case "full":
            return [f"aiex.npu.write32 {{address = {whole} : ui32, value = {unsigned(value)} : ui32}}"]
        case "mask":
            return [f"aiex.npu.maskwrite32 {{{word}, mask = 65535 : ui32, value = {unsigned(value)} : ui32}}"]
        case "block" | "block_tile":
            kind = memref(len(op.values), "i32")
            place = word if op.form == "block" else f"address = {byte} : ui32, {tile}"
            return [
                f"%block{block} = memref.get_global @data{block} : {kind}",
                f"aiex.npu.blockwrite(%block{block}) {{{place}}} : {kind}",
            ]
    raise ValueError(op.form)
