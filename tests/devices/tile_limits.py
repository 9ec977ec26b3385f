"""Limits of each kind of tile, with the places that enforce them."""

from collections.abc import Callable, Iterator

from bd_limits import BD_PLACES
from limit_table import Limit, Place, device_of, dma_program, read, reads

from bdforge.array.emulator import LockError, emulate
from bdforge.array.emulator.errors import EmulationError
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.mlir.allocate import AllocationError, allocate
from bdforge.devices.limits import CORE, MEMTILE, SHIM, TileLimits

NUMBERS = {  # from the register lists and the architecture manual, not from the module
    "SHIM": {
        "locks": 16, "lock_value_max": 63, "channels": 2, "bds": 16, "dims": 3, "wraps[0]": 1023, "wraps[1]": 1023,
        "step_max": 1048576, "length_max": 4294967295, "iteration_wrap_max": 64, "static_size": 512,
    },
    "MEMTILE": {
        "memory_bytes": 524288, "locks": 64, "lock_value_max": 63, "channels": 6, "bds": 48, "dims": 4,
        "wraps[0]": 1023, "wraps[1]": 1023, "wraps[2]": 1023, "step_max": 131072, "length_max": 131071,
        "iteration_wrap_max": 64, "static_size": 512, "pad_max[0]": 63, "pad_max[1]": 31, "pad_max[2]": 15,
    },
    "CORE": {
        "memory_bytes": 65536, "locks": 16, "lock_value_max": 63, "channels": 2, "bds": 16, "dims": 3, "wraps[0]": 255,
        "wraps[1]": 255, "step_max": 8192, "length_max": 16383, "iteration_wrap_max": 64, "static_size": 255,
    },
}  # fmt: skip
TILES = {"SHIM": (SHIM, "%s", 0), "MEMTILE": (MEMTILE, "%m", 1), "CORE": (CORE, "%c", 2)}


def tile_limits() -> Iterator[Limit]:
    """Every limit of every kind, most at several places."""
    for kind, numbers in NUMBERS.items():
        limits, tile, row = TILES[kind]
        for field, number in numbers.items():
            name, _, index = field.rstrip("]").partition("[")
            found = BD_PLACES[name](limits, tile, int(index or 0)) if name in BD_PLACES else PLACES[name](tile, row)
            yield from (Limit(f"devices.limits.{kind}.{field}", number, place) for place in found)


def _memory_bytes(tile: str, _row: int) -> Iterator[Place]:
    def case(at: str, less: int = 0) -> Callable[[int], object]:
        return lambda n: allocate(device_of(read(f"aie.buffer({tile}) {at} : memref<{n - less}xi8>")))

    yield Place(case(""), "beyond the tile's", AllocationError)
    yield Place(case("{address = 1024 : i32}", less=1024), "ends beyond the tile's", AllocationError)


def _locks(tile: str, _row: int) -> Iterator[Place]:
    yield Place(reads(f"aie.lock({tile}, {{n}})"), "the locks of", below=True)
    yield Place(
        lambda n: allocate(device_of(read("\n".join([f"aie.lock({tile})"] * n)))), "finds no free id", AllocationError
    )


def _lock_values(tile: str, row: int) -> Iterator[Place]:
    one = f"aie.device(npu2) {{ %t = aie.tile(0, {row})\n aie.lock(%t, 0) {{init = INIT : i32}} }}"
    yield Place(lambda n: emulate(one.replace("INIT", str(n))), "outside 0 to 63", EmulationError)
    yield Place(reads(f"%l = aie.lock({tile}, 0)\naie.runtime_sequence() {{ aiex.set_lock(%l, {{n}}) }}"), "0 to 63")
    if tile == "%c":
        yield Place(lambda n: EmulatedLock("l", CORE.lock_value_max, lambda _: None).set(n), "63", LockError)


def _channels(tile: str, row: int) -> Iterator[Place]:
    tiles = f"%t = aie.tile(0, {row})\n %u = aie.tile(1, {row})"
    text = f"aie.device(npu2) {{ {tiles}\n aie.flow(%t, DMA : CHANNEL, %u, DMA : 0) }}"
    yield Place(
        lambda n: emulate(text.replace("CHANNEL", str(n))), "has MM2S channels 0 to", EmulationError, below=True
    )
    bd = ["^b0:", "aie.dma_bd(%b : memref<64xi32>)", "aie.end"]
    yield Place(lambda n: read(dma_program(tile, n, bd)), "S2MM channels")


def _bds(tile: str, _row: int) -> Iterator[Place]:
    bd = "aie.dma_bd(%b : memref<64xi32>) {bd_id = {n} : i32}"
    yield Place(reads(dma_program(tile, 1, ["^b0:", bd, "aie.end"])), "bd_id = ", below=True)

    def ring(n: int) -> None:
        blocks = [f"^b{i}:\naie.dma_bd(%b : memref<64xi32>)\naie.next_bd ^b{(i + 1) % n}" for i in range(n)]
        read(dma_program(tile, 1, blocks))

    yield Place(ring, "BDs, but")


PLACES: dict[str, Callable[[str, int], Iterator[Place]]] = {
    "memory_bytes": _memory_bytes, "locks": _locks, "lock_value_max": _lock_values, "channels": _channels, "bds": _bds,
}  # fmt: skip
LIMITS_OF: dict[str, TileLimits] = {kind: limits for kind, (limits, *_) in TILES.items()}
