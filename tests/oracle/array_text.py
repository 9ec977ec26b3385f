"""Prints array designs as the MLIR that a person would write: custom form, static DMA blocks, shim tasks."""

from dataclasses import replace

from oracle.array_design import (
    ELEMENT_BYTES,
    WORD_BYTES,
    Await,
    Bd,
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
    SetLock,
    Start,
    WaitToken,
    WriteWords,
    statements,
)
from oracle.core_text import CoreText, memref, type_of, use_text
from support.array_text import Task, buffer, flow, lock, module, packet_flow, program, tile
from support.register_designs import blockwrite, global_words, patch, push, sync, write32, writebd

SHIM_BD_ADDRESS, BD_BYTES = 0x1D000, 0x20  # register map of AM025


def mlir(design: Design) -> str:
    """The whole module."""
    lines = [tile(t.column, t.row) for t in design.tiles()]
    lines += [kernel_line(design, call) for call in kernel_calls(design)]
    lines += [buffer(b.name, b.tile.at, b.elements, b.values, b.element, b.address) for b in design.buffers]
    lines += [lock(one.name, one.tile.at, one.id, one.init) for one in design.locks]
    lines += [line for flow in design.flows for line in flow_lines(flow)]
    lines += [
        program(t.at, *(task(design, one.port, chain) for one in programs for chain in one.tasks))
        for t, programs in design.programs_by_tile()
        if any(one.tasks for one in programs)
    ]
    for core in design.cores:
        lines += CoreText(design, core).lines()
    return module(design.device, *lines, *sequence_lines(design))


def kernel_calls(design: Design) -> list[Call]:
    return [s for core in design.cores for s in statements(core.body) if isinstance(s, Call)]


def kernel_line(design: Design, call: Call) -> str:
    return f"func.func private @{call.kernel}({type_of(design, call.source)}, {type_of(design, call.target)}, i32)"


def end_text(port: Port) -> str:
    return f"{port.tile.at} DMA : {port.channel}"


def flow_lines(way: Flow) -> list[str]:
    source, *sinks = map(end_text, (way.source, *way.sinks))
    if way.packet_id is None:
        return [flow(source, sink) for sink in sinks]
    return [packet_flow(way.packet_id, source, *sinks, keep=way.keep_header)]


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


def task(design: Design, port: Port, chain: Chain) -> Task:
    bds = ["\n".join(bd_block(design, bd)) for bd in chain.bds]
    return Task(port.direction, port.channel, bds, chain.loops, chain.runs - 1)


def sequence_lines(design: Design) -> list[str]:
    if not design.arguments and not design.sequence:
        return []
    shim = {p for f in design.flows for p in (f.source, *f.sinks) if p.tile.kind == "shim"}
    lines = [
        f"aie.shim_dma_allocation @{p.allocation} (%{p.tile.name}, {p.direction}, {p.channel})" for p in sorted(shim)
    ]
    blocks = [op for op in design.sequence if isinstance(op, WriteWords) and op.form.startswith("block")]
    lines += [global_words(f"data{number}", op.values) for number, op in enumerate(blocks)]
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
            return [sync((port.tile.column, port.tile.row), int(port.direction == "MM2S"), port.channel)]
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
    fields = {
        "d0_size": words, "d1_size": s1, "d0_stride": max(0, steps[2]), "d1_stride": max(0, steps[1]),
        "d2_stride": max(0, steps[0]), "iteration_size": runs - 1 if moves else 0,
        "iteration_stride": step if moves else 0,
    }  # fmt: skip
    if op.packet is not None:
        fields |= {"enable_packet": 1, "packet_type": op.packet[0], "packet_id": op.packet[1]}
    shim = op.port.tile.column, 0
    address = op.port.tile.column << 25 | SHIM_BD_ADDRESS + op.id * BD_BYTES + WORD_BYTES
    argument = [a.name for a in design.arguments].index(op.argument)
    token = op.token or op.port.direction == "S2MM"
    return [
        writebd(shim, op.id, words * s1 * s2, **fields), patch(address, argument, start),
        push(shim, f"{op.port.direction} : {op.port.channel}", op.id, token, runs - 1),
    ]  # fmt: skip


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
    tile = f", column = {buffer.tile.column} : i32, row = {buffer.tile.row} : i32"
    byte = (buffer.address or 0) + 4 * op.index
    value, in_buffer = unsigned(op.values[0]), f", buffer = @{op.buffer}"
    match op.form:
        case "rtp":
            return [f"aiex.npu.rtp_write(@{op.buffer}, {op.index}, {op.values[0]})"]
        case "buffer":
            return [write32(op.index, value, where=in_buffer)]
        case "tile":
            return [write32(byte, value, where=tile)]
        case "full":
            return [write32(buffer.tile.column << 25 | buffer.tile.row << 20 | byte, value)]
        case "mask":
            return [write32(op.index, value, 65535, in_buffer)]
        case "block":
            return blockwrite(f"data{block}", len(op.values), op.index, in_buffer)
        case "block_tile":
            return blockwrite(f"data{block}", len(op.values), byte, tile)
    raise ValueError(op.form)
