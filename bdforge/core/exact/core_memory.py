"""Data memory as a core sees it: four windows of 64 KB, south, west, north and own; addresses and their walks.

Addresses have 20 bits, and all sums of them wrap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bdforge.core.isa.errors import AccessError
from bdforge.core.isa.meaning import AddressWalk, Meaning, MemoryAccess
from bdforge.core.isa.meaning.fifo import fifo_step

WINDOW_BYTES = 0x10000
FIRST = 0x40000
NAMES = ("south", "west", "north", "own")
END = FIRST + len(NAMES) * WINDOW_BYTES
BANK_BYTES = 0x4000
"""A bank serves one access in a cycle (four banks of 16 KB in each memory)."""
BANKS = len(NAMES) * WINDOW_BYTES // BANK_BYTES


ADDRESS_BITS = 20
_MASK = (1 << ADDRESS_BITS) - 1
_GATHERED, _GATHERED_WORD = 4, (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class DataMemory:
    """The memories that a core reaches, in the order of their windows; None where there is no core tile.

    `written` says of each byte whether anybody wrote it, or is None: then nobody asks.
    """

    windows: Sequence[np.ndarray | None]
    written: Sequence[np.ndarray | None] = (None, None, None, None)

    def load(self, address: int, size_bytes: int) -> int:
        """Bytes as a number, little endian; AccessError outside, misaligned, or where nobody wrote (poison mode)."""
        memory, start, written = self._place(address, size_bytes, "loads")
        if written is not None and not written[start : start + size_bytes].all():
            raise AccessError(f"loads {size_bytes} bytes at {address:#x}, which nobody has written")
        return int.from_bytes(memory[start : start + size_bytes].tobytes(), "little")

    def load_line(self, address: int, size_bytes: int) -> int:
        """As `load`, of bytes of which not all are used: nobody asks who wrote them."""
        memory, start, _ = self._place(address, size_bytes, "loads")
        return int.from_bytes(memory[start : start + size_bytes].tobytes(), "little")

    def check_written(self, address: int, size_bytes: int) -> None:
        """AccessError where nobody wrote some of the bytes (poison mode)."""
        for at in range(address, address + size_bytes):
            window, start = divmod(at - FIRST, WINDOW_BYTES)
            written = self.written[window] if FIRST <= at < END else None
            if written is not None and not written[start]:
                raise AccessError(f"loads {size_bytes} bytes at {address:#x}, which nobody has written")

    def gather(self, access: MemoryAccess, addresses: int) -> tuple[int, list[int]]:
        """Four words of 64 bits, of which the low ones are elements, and the banks that give them.

        A table holds each half line of an elements' table twice, in both halves of a line: even words come from the
        first half, odd ones from the second. What lies behind the element is what follows in that half, around its end.
        """
        found, halves, size = 0, list[int](), access.size_bytes
        for i in range(_GATHERED):
            at = addresses >> 32 * (access.first + i) & _MASK & ~(access.amount // 4 - 1)
            half = (at & ~(2 * size - 1)) + size * (i & 1)
            first = (at & 2 * size - 1) >> 1
            line = self.load_line(half, size)
            self.check_written(half + first, access.amount // 8)
            found |= ((line | line << 8 * size) >> 8 * first & _GATHERED_WORD) << 64 * i
            halves.append(half // BANK_BYTES)
        pairs = (dict.fromkeys(halves[i : i + 2]) for i in range(0, _GATHERED, 2))  # an access each, of one bank
        return found, [bank for pair in pairs for bank in pair]

    def store(self, address: int, size_bytes: int, value: int, aligned: bool = True) -> None:
        """Store the low bytes of a number; AccessError outside or misaligned."""
        memory, start, written = self._place(address, size_bytes, "stores", aligned)
        value &= (1 << 8 * size_bytes) - 1
        memory[start : start + size_bytes] = np.frombuffer(value.to_bytes(size_bytes, "little"), np.uint8)
        if written is not None:
            written[start : start + size_bytes] = True

    def fill(self, address: int, data: bytes) -> bool:
        """Copy bytes of any length and alignment; False, and nothing is copied, where they do not all fit."""
        first, last = (place - FIRST for place in (address, address + len(data) - 1))
        if first < 0 or address + len(data) > END or first // WINDOW_BYTES != last // WINDOW_BYTES:
            return False
        memory, written = self.windows[first // WINDOW_BYTES], self.written[first // WINDOW_BYTES]
        if memory is None:
            return False
        start = first % WINDOW_BYTES
        memory[start : start + len(data)] = np.frombuffer(data, np.uint8)
        if written is not None:
            written[start : start + len(data)] = True
        return True

    def _place(
        self, address: int, size_bytes: int, verb: str, aligned: bool = True
    ) -> tuple[np.ndarray, int, np.ndarray | None]:
        what = f"{verb} {size_bytes} bytes at {address:#x}"
        if aligned and address % size_bytes:
            raise AccessError(f"{what}, which is no multiple of {size_bytes}")
        if not FIRST <= address < END:
            raise AccessError(f"{what}; data memory is from {FIRST:#x} to {END - 1:#x}")
        window, start = divmod(address - FIRST, WINDOW_BYTES)
        if (memory := self.windows[window]) is None:
            raise AccessError(f"{what}, but there is no core's memory to the {NAMES[window]}")
        return memory, start, self.written[window]


def walked(meaning: Meaning, values: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """(address, what becomes of pointer and counters) of a form's address operands."""
    base, access = values.get("ptr", values.get("sp", 0)), meaning.access
    if access is None or not access.counter:
        return _walked(meaning, values, base)
    address, behind, count = fifo_step(access, base, values[access.counter])
    if meaning.walk is AddressWalk.NONE:
        return address, {"ptr_out": behind, f"{access.counter}_out": count}
    return address, _walked(meaning, values, behind)[1] | {f"{access.counter}_out": 0}


def _walked(meaning: Meaning, values: Mapping[str, int], base: int) -> tuple[int, dict[str, int]]:
    """From a pointer. A walk `d` holds m, dn, dj, dc in 20 bits each, the second dimension of 3D above the first."""
    offset = values.get(meaning.offset, 0)
    match meaning.walk:
        case AddressWalk.NONE:
            return 0, {}
        case AddressWalk.INDEX | AddressWalk.STACK:
            return base + offset & _MASK, {}
        case AddressWalk.STACK_STEP:
            return base, {"sp": base + offset & _MASK}
        case AddressWalk.POST:
            return base, {"ptr_out": base + offset & _MASK}
        case AddressWalk.WALK_2D:
            m, dn, dj, dc = _fields(offset)
            ends = dc == dn
            return base, {"ptr_out": base + (m if ends else dj) & _MASK, "dc": 0 if ends else dc + 1 & _MASK}
        case AddressWalk.WALK_3D:
            return base, _step_3d(base, _fields(offset), _fields(offset >> 4 * ADDRESS_BITS))


def _fields(walk: int) -> tuple[int, int, int, int]:
    m, dn, dj, dc = (walk >> ADDRESS_BITS * i & _MASK for i in range(4))
    return m, dn, dj, dc


def _step_3d(base: int, low: tuple[int, int, int, int], high: tuple[int, int, int, int]) -> dict[str, int]:
    m, dn, dj, dc = low
    _, dn_high, dj_high, dc_high = high
    if dc != dn:
        return {"ptr_out": base + dj & _MASK, "dcl": dc + 1 & _MASK, "dch": dc_high}
    if dc_high != dn_high:
        return {"ptr_out": base + dj_high & _MASK, "dcl": 0, "dch": dc_high + 1 & _MASK}
    return {"ptr_out": base + m & _MASK, "dcl": 0, "dch": 0}
