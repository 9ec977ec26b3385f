"""A design as data for the page: tiles with memory, locks, channels and kernels, streams on their routes, transfers."""

from typing import Any, Literal

from xdsl.dialects import func
from xdsl.ir import SSAValue

from bdforge.array.mlir import location
from bdforge.array.mlir.allocate import allocate, buffer_bytes
from bdforge.array.mlir.device_ops import TileOp
from bdforge.array.mlir.memory_ops import BufferOp
from bdforge.array.routing import Net
from bdforge.array.show.array_use import Coordinates, DesignUse, TileUse
from bdforge.array.show.memory_map import FREE, STACK, TileMemory
from bdforge.array.show.page.transfers import transfers
from bdforge.array.show.scene import Scene, extent, role_label, scene_of

Data = dict[str, Any]
_INCHES = 1.0  # of a tile; the page scales


def design_data(use: DesignUse) -> Data:
    """What the page shows of a device; routes as in the picture: tiles are squares of side 1, row 0 below."""
    scene, device = scene_of(use, _INCHES), use.device
    columns, rows = extent(use)
    addresses = allocate(device).buffers
    lines = {(op.column, op.row): location(op).line for op in device.walk() if isinstance(op, TileOp)}
    return {
        "name": device.symbol, "array": device.device_name, "line": location(device).line,
        "columns": [columns.start, columns.stop], "rows": [rows.start, rows.stop],
        "panel": list(scene.layout.panel), "portsRight": scene.layout.ports_right,
        "tiles": [_tile(tile, scene, addresses, lines[at]) for at, tile in use.tiles.items()],
        "kinds": {f"{c},{r}": str(device.device.kind(c, r)) for c in columns for r in rows},
        "streams": [_stream(net, scene) for net in use.routing.nets],
        "legend": _legend(scene), "cascades": use.cascades, "transfers": transfers(device),
    }  # fmt: skip


def _tile(use: TileUse, scene: Scene, addresses: dict[BufferOp, int], line: int) -> Data:
    at = (use.column, use.row)
    return {
        "at": at, "kind": str(use.kind), "line": line,
        "memory": None if use.memory is None else _memory(use, use.memory, addresses),
        "locks": [[i, f"{op.symbol or ''}", op.init, location(op).line] for i, op in use.locks],
        "lockMost": use.limits.lock_value_max, "bds": [use.static_bds, len(use.runtime_bds), use.limits.bds],
        "channels": sorted([str(d), c, use.names.get((d, c), "")] for d, c in use.channels),
        "core": None if use.core is None else {
            "line": location(use.core).line, "kernels": list(use.core.callees), "stack": use.core.stack_size,
            "elf": use.core.elf_file or use.core.link_with or "", "calls": _calls(use.core, addresses),
        },
        "ports": [[*port, scene.ports[at].get(port)] for port in scene.slots(at)],
    }  # fmt: skip


def _memory(use: TileUse, memory: TileMemory, addresses: dict[BufferOp, int]) -> Data:
    """Spans without those that are free; of a buffer with its type and line."""
    ops = {addresses[op]: op for op in use.buffers if op in addresses}
    spans = [span for span in memory.spans if span.what != FREE]
    return {
        "limit": memory.limit_bytes, "used": memory.used_bytes,
        "spans": [
            [span.start, span.end, span.what.removeprefix("@"), *_typed(span.what != STACK and ops[span.start])]
            for span in spans
        ],
    }  # fmt: skip


def _typed(op: BufferOp | Literal[False]) -> tuple[str, int | None]:
    return (str(op.type), location(op).line) if op else ("", None)


def _calls(core: Any, addresses: dict[BufferOp, int]) -> list[Data]:
    """Calls of a core's body: the function, its line, and tile and byte address of each buffer it gets."""
    return [
        {
            "name": op.callee.string_value(), "line": location(op).line,
            "buffers": [
                [*held.tile.place, addresses[held], buffer_bytes(held)]
                for held in map(_buffer, op.operands) if held in addresses
            ],
        }
        for op in core.walk() if isinstance(op, func.CallOp)
    ]  # fmt: skip


def _buffer(value: SSAValue) -> BufferOp | None:
    return value.owner if isinstance(value.owner, BufferOp) else None


def _stream(net: Net, scene: Scene) -> Data:
    way = scene.use.routing.connections(net)
    return {
        "color": list(scene.colors).index(scene.roles[net]), "packet": net.packet_id,
        "from": [*_place(net.start.tile), f"{net.start.bundle} : {net.start.channel}"],
        "to": [[*_place(end.tile), f"{end.bundle} : {end.channel}"] for end in net.ends.values()],
        "lines": sorted({location(op).line for op in net.flows}),
        "hops": max(path.hops for path in scene.use.routing.paths(net)),
        "ways": [[[round(x, 4), round(y, 4)] for x, y in scene.way(step)] for step in way],
    }  # fmt: skip


def _legend(scene: Scene) -> list[list[str]]:
    nets = {role: [net for net, own in scene.roles.items() if own == role] for role in scene.colors}
    return [[color, role_label(role, nets[role])] for role, color in scene.colors.items()]


def _place(tile: TileOp) -> Coordinates:
    return tile.column, tile.row
