"""Colours of the picture, and how streams are grouped by role."""

from collections.abc import Sequence

from bdforge.devices import TileKind
from bdforge.routing import Net
from bdforge.show.model import ranges

TILE_COLORS = {TileKind.SHIM: "#fdf3e1", TileKind.MEMTILE: "#eaf2fb", TileKind.CORE: "#eef7ea"}
TILE_EDGES = {TileKind.SHIM: "#c9a869", TileKind.MEMTILE: "#86a8cf", TileKind.CORE: "#93bb84"}
BUFFER_COLORS = {TileKind.MEMTILE: ("#a9c6e8", "#c5d9f0"), TileKind.CORE: ("#b2d6a3", "#cbe4c0")}
STACK_COLOR, FREE_COLOR, IDLE_COLOR = "#cfcfcf", "#ffffff", "#b5b5b5"
TEXT_COLOR = "#333333"
CASCADE_COLOR = "#8a8a8a"

# Colours that people with any colour vision tell apart (Okabe and Ito), then darker ones.
STREAM_COLORS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6a3d9a", "#8c564b", "#222222",
                 "#b8860b", "#2f4f8f", "#7a0019")  # fmt: skip

Role = tuple[str, ...]


def roles_of(nets: Sequence[Net]) -> dict[Net, Role]:
    """Streams of one role share a colour: same kind of tile and port at the source, same kind of tiles at the ends.

    Where that gives more roles than colours, the source's port no longer counts.
    """
    fine = {net: (*_kinds(net), str(net.start.bundle), str(net.start.channel)) for net in nets}
    if len(set(fine.values())) <= len(STREAM_COLORS):
        return fine
    return {net: _kinds(net) for net in nets}


def _kinds(net: Net) -> Role:
    sinks = "/".join(sorted({str(end.tile.kind) for end in net.ends.values()}))
    return str(net.start.tile.kind), sinks, "circuit" if net.packet_id is None else "packets"


def role_label(role: Role, nets: Sequence[Net]) -> str:
    """Legend text of one role."""
    ends = sum(len(net.ends) for net in nets)
    kind, sinks, how, *port = role
    source = f"{kind} {_port(*port)}" if port else kind
    arrives = {(str(end.bundle), end.channel) for net in nets for end in net.ends.values()}
    bundles = sorted({bundle for bundle, _ in arrives})
    ports = ", ".join(f"{_port(b)} {ranges(c for bundle, c in arrives if bundle == b)}" for b in bundles)
    ids = "" if how == "circuit" else f", packets {ranges(net.packet_id for net in nets if net.packet_id is not None)}"
    count = f"{len(nets)} stream{'s' * (len(nets) != 1)}" + (f", {ends} ends" if ends > len(nets) else "")
    return f"{source} to {sinks} {ports.replace('MM2S', 'S2MM')} ({count}{ids})"


def _port(bundle: str, channel: str | None = None) -> str:
    name = "MM2S" if bundle == "DMA" else bundle
    return name if channel is None else f"{name} {channel}"
