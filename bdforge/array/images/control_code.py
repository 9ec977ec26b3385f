"""Control code of full ELFs: a sequence behind the load of its configuration, and the addresses that XRT puts in."""

from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.txn_format.codec import decode, encode
from bdforge.devices.txn_format.containers import stream_bytes
from bdforge.devices.txn_format.operations import BlockWrite, LoadPdi, Patch

XRT_DRAM = 0x8000_0000
"""What XRT adds to the addresses that it puts into control code: where arrays see DRAM (XRT 2.25)."""


def sequence_words(elf: bytes, name: str) -> bytes:
    """Words of a full ELF's sequence, without the load; TxnError where the file holds none of that name."""
    return without_load(stream_bytes(elf, name))


def without_load(words: bytes) -> bytes:
    """A full ELF's control code without the configuration that it starts with."""
    stream = decode(words)
    if not stream.operations or not isinstance(stream.operations[0], LoadPdi):
        return words
    return encode(stream.operations[1:], stream.header).tobytes()


def placed_arguments(words: bytes) -> list[int]:
    """Addresses of the arguments, which XRT has added to the words of the BDs that the patches are for."""
    registers: dict[int, int] = {}
    found: dict[int, int] = {}
    for operation in decode(words).operations:
        if isinstance(operation, BlockWrite):
            addresses = range(
                operation.address, operation.address + GRANULE_BYTES * len(operation.words), GRANULE_BYTES
            )
            registers |= dict(zip(addresses, operation.words, strict=True))
        elif isinstance(operation, Patch):
            low, high = (registers.get(operation.register + word, 0) for word in (0, GRANULE_BYTES))
            found[operation.argument] = (low | (high & 0xFFFF) << 32) - operation.plus - XRT_DRAM
    anything = next(iter(found.values()), 0)  # for arguments that no BD uses
    return [found.get(i, anything) for i in range(max(found, default=-1) + 1)]
