"""Ports and legal connections of stream switches, written down a second time from the register lists."""

_CORE = {"Core": 1, "DMA": 2, "TileControl": 1, "FIFO": 1}
MASTERS = {
    "core": {**_CORE, "South": 4, "West": 4, "North": 6, "East": 4},
    "memtile": {"DMA": 6, "TileControl": 1, "South": 4, "North": 6},
    "shim": {"TileControl": 1, "FIFO": 1, "South": 6, "West": 4, "North": 6, "East": 4},
}
SLAVES = {
    "core": {**_CORE, "South": 6, "West": 4, "North": 4, "East": 4, "Trace": 2},
    "memtile": {"DMA": 6, "TileControl": 1, "South": 6, "North": 4, "Trace": 1},
    "shim": {"TileControl": 1, "FIFO": 1, "South": 8, "West": 4, "North": 4, "East": 4, "Trace": 1},
}


def kind(row: int) -> str:
    """What stands in a row."""
    return {0: "shim", 1: "memtile"}.get(row, "core")


def legal(row: int, slave: tuple[str, int], master: tuple[str, int]) -> bool:
    """Whether a switch joins two ports, by the table of legal connections."""
    here, (enters, i), (leaves, o) = kind(row), slave, master
    if i >= SLAVES[here].get(enters, 0) or o >= MASTERS[here].get(leaves, 0):
        return False
    if enters == "Trace":
        allowed = {"core": {"FIFO", "South"}, "memtile": {"South"}, "shim": {"FIFO", "South"}}[here]
        special = {"core": {("DMA", 0)}, "memtile": {("DMA", 5)}, "shim": {("West", 0), ("East", 0)}}[here]
        return leaves in allowed or master in special
    if enters == leaves and enters in ("Core", "TileControl"):
        return False
    if enters == "TileControl" and leaves == "DMA":
        return here == "memtile" and o == 5
    if here == "memtile" and {enters, leaves} <= {"North", "South"}:
        return i == o
    return enters != leaves or i == o or (here == "shim" and enters == "South")
