"""What `bdforge show --json` prints: a design's tiles, buffers, locks, streams and BDs, placed as lowering does."""

from typing import Any

from pydantic import Field
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir.allocate import allocate, buffer_bytes
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.memory_ops import BufferOp
from bdforge.array.routing import Net
from bdforge.array.show.array_use import DesignUse, TileUse, devices_of, use_of
from bdforge.array.show.page.transfers import transfers
from bdforge.cli.json_object import JsonObject

Place = tuple[int, int]


class ShownBuffer(JsonObject):
    """A buffer of a tile."""

    name: str = Field(description='as the text calls it, or ""')
    address: int = Field(description="first byte, in the tile's memory")
    size_bytes: int = Field(description="its length")
    type: str = Field(description="its memref")

    @classmethod
    def of(cls, op: BufferOp, address: int) -> "ShownBuffer":
        """Of a buffer that was given an address."""
        return cls(name=op.symbol or "", address=address, size_bytes=buffer_bytes(op), type=str(op.type))


class ShownLock(JsonObject):
    """A lock of a tile."""

    number: int = Field(description="its number there")
    name: str = Field(description='as the text calls it, or ""')
    init: int = Field(description="its first value")


class ShownTile(JsonObject):
    """A tile that the text names."""

    at: Place = Field(description="column and row")
    kind: str = Field(description="shim, memtile or core")
    memory_bytes: int = Field(description="what its memory holds; 0 where it has none")
    stack_bytes: int = Field(description="of a core's program, from byte 0 on")
    kernels: list[str] = Field(description="functions that its core calls")
    buffers: list[ShownBuffer] = Field(description="by address")
    locks: list[ShownLock] = Field(description="by number")

    @classmethod
    def of(cls, use: TileUse, addresses: dict[BufferOp, int]) -> "ShownTile":
        """Of what a design puts on a tile."""
        buffers = sorted((ShownBuffer.of(op, addresses[op]) for op in use.buffers), key=lambda one: one.address)
        return cls(
            at=(use.column, use.row), kind=str(use.kind), memory_bytes=use.limits.memory_bytes,
            stack_bytes=0 if use.core is None else use.core.stack_size,
            kernels=[] if use.core is None else [*use.core.callees], buffers=buffers,
            locks=[ShownLock(number=i, name=op.symbol or "", init=op.init) for i, op in use.locks],
        )  # fmt: skip


class ShownPort(JsonObject):
    """Where a stream begins or ends."""

    at: Place = Field(description="column and row")
    port: str = Field(description='as flows name it, such as "DMA : 0"')

    @classmethod
    def of(cls, tile: TileOp, bundle: object, channel: int) -> "ShownPort":
        """Of a tile's port."""
        return cls(at=(tile.column, tile.row), port=f"{bundle} : {channel}")


class ShownStream(JsonObject):
    """A flow, or packets of an id, on the way that routing found."""

    source: ShownPort = Field(description="who sends")
    targets: list[ShownPort] = Field(description="who receives: all of them the same")
    packet: int | None = Field(description="the id of packets; null of a flow")
    hops: int = Field(description="switches on the longest way")

    @classmethod
    def of(cls, net: Net, use: DesignUse) -> "ShownStream":
        """Of a routed net."""
        return cls(
            source=ShownPort.of(net.start.tile, net.start.bundle, net.start.channel),
            targets=[ShownPort.of(end.tile, end.bundle, end.channel) for end in net.ends.values()],
            packet=net.packet_id, hops=max(path.hops for path in use.routing.paths(net)),
        )  # fmt: skip


class ShownBd(JsonObject):
    """A buffer descriptor, static or of a runtime sequence; offsets, sizes and strides are in elements."""

    at: Place = Field(description="column and row of its tile")
    channel: str = Field(description='such as "MM2S 0"')
    number: int | None = Field(description="its number; null where lowering chooses it")
    sequence: str = Field(description='the runtime sequence that writes it; "" of a static one')
    buffer: str = Field(description="what it walks: a tile's buffer, or the sequence's argument")
    element: str = Field(description="type of an element")
    offset: int = Field(description="the first element")
    length: int = Field(description="elements that it moves")
    sizes: list[int] = Field(description="outermost first; empty where it walks on and on")
    strides: list[int] = Field(description="as sizes")
    padding: list[tuple[int, int]] = Field(description="zeros before and behind each dimension, if any")
    packet: tuple[int, int] | None = Field(description="type and id of the header that it sends")
    acquire: list[str] = Field(description="locks that it waits for: name, action, value")
    release: list[str] = Field(description="locks that it gives: name, action, value")
    line: int = Field(description="of the MLIR")

    @classmethod
    def of(cls, found: dict[str, Any]) -> "ShownBd":
        """Of a transfer as the page has it."""
        names = {name: name for name in cls.model_fields} | {"at": "tile", "padding": "pads"}
        return cls(**{name: found[key] for name, key in names.items()})


class ShownDevice(JsonObject):
    """An `aie.device`."""

    name: str = Field(description="its symbol")
    array: str = Field(description="npu1, npu2 or some columns of one")
    tiles: list[ShownTile] = Field(description="by column and row")
    streams: list[ShownStream] = Field(description="in the order of the text")
    cascades: list[tuple[Place, Place]] = Field(description="from core to core")
    bds: list[ShownBd] = Field(description="static ones, then those of runtime sequences with constants")

    @classmethod
    def of(cls, device: DeviceOp) -> "ShownDevice":
        """Of a device; AllocationError and RoutingError where it does not fit."""
        use, addresses = use_of(device), allocate(device).buffers
        return cls(
            name=device.symbol, array=device.device_name, cascades=use.cascades,
            tiles=[ShownTile.of(tile, addresses) for tile in use.tiles.values()],
            streams=[ShownStream.of(net, use) for net in use.routing.nets],
            bds=[ShownBd.of(found) for found in transfers(device)],
        )  # fmt: skip


class ShownDesign(JsonObject):
    """`bdforge show` of a design: what lies where, and how it moves."""

    design: str = Field(description="the file as it was named")
    devices: list[ShownDevice] = Field(description="in the order of the text, or the one of `--module`")

    @classmethod
    def of(cls, design: str, module: ModuleOp, name: str | None) -> "ShownDesign":
        """Of all devices of a module, or of one by name."""
        found = [one for one in devices_of(module) if name in (None, one.symbol)]
        return cls(design=design, devices=[*map(ShownDevice.of, found)])


OUTPUTS: tuple[type[JsonObject], ...] = (
    ShownDesign, ShownDevice, ShownTile, ShownBuffer, ShownLock, ShownStream, ShownPort, ShownBd,
)  # fmt: skip
"""Objects in the order of docs/json.md."""
