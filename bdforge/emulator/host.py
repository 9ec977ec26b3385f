"""Host memory as the shim DMAs see it: the runtime sequence's arguments at addresses of their own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bdforge.emulator.bd import Order
from bdforge.emulator.errors import ArgumentError, DmaError

FIRST_ADDRESS = 1 << 32
GUARD_BYTES = 1 << 20
_WORD_BYTES = 4


@dataclass(slots=True, eq=False)
class HostBuffer:
    """One argument: the user's array as 32-bit words.

    The array is used in place; only when its size is not a whole number of words is it copied, and `write_back`
    returns the bytes.
    """

    name: str
    array: np.ndarray
    address: int
    words: np.ndarray
    copied: bool

    @property
    def end(self) -> int:
        """First address behind the user's bytes."""
        return self.address + self.array.nbytes

    def write_back(self) -> None:
        """Bring results of a copied array home."""
        if self.copied:
            raw = self.words.view(np.uint8)[: self.array.nbytes]
            self.array.reshape(-1).view(np.uint8)[:] = raw


class HostMemory:
    """All host buffers of a run, in argument order."""

    def __init__(self, arrays: Sequence[tuple[str, np.ndarray]] = ()):
        self.buffers: list[HostBuffer] = []
        address = FIRST_ADDRESS
        for name, array in arrays:
            self.buffers.append(_host_buffer(name, array, address))
            address += -(-(array.nbytes + GUARD_BYTES) // GUARD_BYTES) * GUARD_BYTES

    def address_of(self, argument: int) -> int:
        """Base address of an argument; ArgumentError when the sequence has no such argument."""
        if not 0 <= argument < len(self.buffers):
            raise ArgumentError(f"argument {argument} is patched in, but the run was given {len(self.buffers)} arrays")
        return self.buffers[argument].address

    def locate(self, base: int, order: Order, writing: bool, where: str) -> tuple[np.ndarray, int]:
        """Words and index of address `base` (bytes), with all of `order` inside one buffer."""
        low, high = base + order.low * _WORD_BYTES, base + (order.high + 1) * _WORD_BYTES
        for buffer in self.buffers:
            if buffer.address <= base < buffer.address + buffer.array.nbytes + GUARD_BYTES // 2:
                if low < buffer.address or high > buffer.address + buffer.words.nbytes:
                    raise DmaError(
                        f"{where} touches bytes {low - buffer.address} to {high - buffer.address - 1} of argument "
                        f"{buffer.name}, which has {buffer.array.nbytes}"
                    )
                if writing and not buffer.array.flags.writeable:
                    raise DmaError(f"{where} writes to argument {buffer.name}, which is read-only")
                return buffer.words, (base - buffer.address) // _WORD_BYTES
        raise DmaError(f"{where} reads or writes host address {base:#x}, which belongs to no argument; patch it")

    def write_back(self) -> None:
        """Finish: copied arguments get their results."""
        for buffer in self.buffers:
            buffer.write_back()


def _host_buffer(name: str, array: np.ndarray, address: int) -> HostBuffer:
    flat = array.reshape(-1).view(np.uint8)
    if not array.nbytes % _WORD_BYTES and array.ctypes.data % _WORD_BYTES == 0:
        return HostBuffer(name, array, address, flat.view(np.uint32), copied=False)
    words = np.zeros(-(-array.nbytes // _WORD_BYTES), np.uint32)
    words.view(np.uint8)[: array.nbytes] = flat
    return HostBuffer(name, array, address, words, copied=True)
