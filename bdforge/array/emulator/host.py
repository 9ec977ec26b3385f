"""Host memory as the shim DMAs see it: the runtime sequence's arguments at addresses of their own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.errors import ArgumentError, DmaError, UnpatchedError
from bdforge.devices.limits import GRANULE_BYTES

FIRST_ADDRESS = 1 << 32
GUARD_BYTES = 1 << 20
SPARE_BYTES = GUARD_BYTES // 2


@dataclass(slots=True, eq=False)
class HostBuffer:
    """One argument: the user's array as 32-bit words.

    The array is used in place; only when its size is not a whole number of words is it copied, and the memory's
    `write_back` returns the bytes.
    """

    name: str
    array: np.ndarray
    address: int
    words: np.ndarray
    copied: bool

    @property
    def last_word_end(self) -> int:
        """First address behind the words that hold the user's bytes."""
        return self.address + -(-self.array.nbytes // GRANULE_BYTES) * GRANULE_BYTES


class HostBuffers:
    """All host buffers of a run, in argument order, and by address those that the text names itself.

    `beyond`, if given, gets the error of a transfer beyond an argument and may let it pass: then each argument is
    followed by SPARE_BYTES of zeros, which such transfers read and write.
    """

    def __init__(self, arrays: Sequence[tuple[str, np.ndarray]] = (), beyond: Callable[[DmaError], None] | None = None):
        self.buffers: list[HostBuffer] = []
        self.external: dict[int, HostBuffer] = {}
        self._beyond = beyond
        for name, array in arrays:
            self.buffers.append(_host_buffer(name, array, self._free(), 0 if beyond is None else SPARE_BYTES))

    @classmethod
    def unmoved(cls, sizes: Iterable[tuple[str, int]]) -> "HostBuffers":
        """Arguments by name and bytes, for what only asks where they are: no memory is behind them."""
        host = cls()
        for name, size in sizes:
            array = np.broadcast_to(np.uint8(0), size)
            host.buffers.append(HostBuffer(name, array, host._free(), np.zeros(0, np.uint32), copied=False))
        return host

    def _free(self) -> int:
        """Address of the next argument."""
        if not self.buffers:
            return FIRST_ADDRESS
        last = self.buffers[-1]
        return last.address + -(-(last.array.nbytes + GUARD_BYTES) // GUARD_BYTES) * GUARD_BYTES

    def add_external(self, name: str, size_bytes: int, address: int) -> np.ndarray | None:
        """Bytes of the text's own host memory, zeros at first; None where other bytes have addresses of it."""
        found = self.external.get(address)
        if found is not None and found.name == name and found.array.nbytes == size_bytes:
            return found.array
        if any(address < b.address + b.array.nbytes and b.address < address + size_bytes for b in self._all()):
            return None
        array = np.zeros(size_bytes, np.uint8)
        self.external[address] = _host_buffer(name, array, address, 0)
        return array

    def _all(self) -> Iterator[HostBuffer]:
        return chain(self.buffers, self.external.values())

    def address_of(self, argument: int) -> int:
        """Base address of an argument; ArgumentError when the sequence has no such argument."""
        if not 0 <= argument < len(self.buffers):
            raise ArgumentError(f"argument {argument} is patched in, but the run was given {len(self.buffers)} arrays")
        return self.buffers[argument].address

    def holding(self, address: int) -> HostBuffer | None:
        """The buffer with a byte at `address`, or in what transfers beyond it may reach."""
        for buffer in self._all():
            if buffer.address <= address < buffer.address + buffer.array.nbytes + SPARE_BYTES:
                return buffer
        return None

    def locate(self, base: int, order: Order, writing: bool, where: str) -> tuple[np.ndarray, int]:
        """Words and index of address `base` (bytes), with all of `order` inside one buffer."""
        low, high = base + order.low * GRANULE_BYTES, base + (order.high + 1) * GRANULE_BYTES
        if (buffer := self.holding(base)) is None:
            at = f"host address {base:#x}, which belongs to no argument"
            raise UnpatchedError(f"{where} reads or writes {at}; patch it")
        if low < buffer.address or high > buffer.last_word_end:
            error = DmaError(
                f"{where} touches bytes {low - buffer.address} to {high - buffer.address - 1} of argument "
                f"{buffer.name}, which has {buffer.array.nbytes}"
            )
            if self._beyond is None or low < buffer.address or high > buffer.address + buffer.words.nbytes:
                if self._beyond is None:
                    error.add_note("[dma-bounds; for an array larger than its argument's type: argument-size]")
                raise error
            self._beyond(error)
        if writing and not buffer.array.flags.writeable:
            raise DmaError(f"{where} writes to argument {buffer.name}, which is read-only")
        return buffer.words, (base - buffer.address) // GRANULE_BYTES

    def write_back(self) -> None:
        """Finish: copied arguments get their results."""
        for buffer in self._all():
            if buffer.copied and buffer.array.flags.writeable:
                raw = buffer.words.view(np.uint8)[: buffer.array.nbytes]
                buffer.array.reshape(-1).view(np.uint8)[:] = raw


def _host_buffer(name: str, array: np.ndarray, address: int, spare_bytes: int) -> HostBuffer:
    flat = array.reshape(-1).view(np.uint8)
    if not spare_bytes and not array.nbytes % GRANULE_BYTES and array.ctypes.data % GRANULE_BYTES == 0:
        return HostBuffer(name, array, address, flat.view(np.uint32), copied=False)
    words = np.zeros(-(-(array.nbytes + spare_bytes) // GRANULE_BYTES), np.uint32)
    words.view(np.uint8)[: array.nbytes] = flat
    return HostBuffer(name, array, address, words, copied=True)
