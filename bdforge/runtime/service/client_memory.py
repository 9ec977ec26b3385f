"""Memory that a client shares, by the addresses that its device knows it under."""

import os
from bisect import bisect_right, insort
from mmap import PAGESIZE, mmap
from pathlib import Path

import numpy as np

from bdforge.array.images.control_code import placed_arguments, sequence_words, without_load
from bdforge.common.files import FileError, read_bytes
from bdforge.runtime.service.wire import RunForm, RunRequest, WireError


class SharedMemory:
    """Buffers, which stay mapped while the array uses them."""

    def __init__(self) -> None:
        self._buffers: dict[int, np.ndarray] = {}
        self._addresses: list[int] = []

    def add(self, address: int, size: int, offset: int, files: list[int]) -> None:
        """Map a client's buffer; WireError where its file does not hold as much."""
        if not files or offset % PAGESIZE or not 0 < size <= os.fstat(files[0]).st_size - offset:
            raise WireError("a BUFFER without that much memory")
        self._put(address, np.frombuffer(mmap(files[0], size, offset=offset), np.uint8))

    def add_sequence(self, address: int, elf: Path, name: str) -> None:
        """The words of a full ELF's sequence, without the configuration that they start with; InputError where the file
        holds none of that name."""
        self._put(address, np.frombuffer(sequence_words(read_bytes(elf, FileError), name), np.uint8))

    def _put(self, address: int, memory: np.ndarray) -> None:
        self.drop(address)
        self._buffers[address] = memory
        insort(self._addresses, address)

    def drop(self, address: int) -> None:
        """Forget a buffer, if it is there."""
        if self._buffers.pop(address, None) is not None:
            self._addresses.remove(address)

    def at(self, address: int, size: int = 0) -> np.ndarray:
        """The bytes from an address to the end of its buffer; WireError where no buffer has `size` bytes of it."""
        size, before = max(size, 1), bisect_right(self._addresses, address)
        start = self._addresses[before - 1] if before else 0
        if not before or len(self._buffers[start]) - (address - start) < size:
            raise WireError(f"a run names {size} bytes at {address:#x}, where no buffer holds them")
        return self._buffers[start][address - start :]

    def stream(self, run: RunRequest) -> tuple[bytes, list[np.ndarray]]:
        """Instruction words of a run, and its arguments."""
        words, addresses = self.at(run.address, run.size)[: run.size or None].tobytes(), run.arguments
        if run.form is RunForm.CONTROL_CODE:
            words, addresses = without_load(words), placed_arguments(words)
        return words, [self.at(address) for address in addresses]
