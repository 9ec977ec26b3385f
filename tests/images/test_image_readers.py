"""Readers of images: what writers made comes back, and broken files end with a named error."""

import random

import pytest

from bdforge.array.images.cdo import cdo, commands, joined, operations
from bdforge.array.images.image_build import image
from bdforge.array.images.read import KernelEntry, read_image
from bdforge.common.binary import ImageError
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Write
from support.cdo_vectors import VECTORS
from support.images import IMAGES

WHOLE = VECTORS["npu2_whole"].configuration()
FILES = {suffix: image(WHOLE, suffix, bare=True) for suffix in (".cdo", ".pdi", ".xclbin")}
FILES |= {name: IMAGES[name] for name in ("full_elf_small", "xclbin_small")}


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("name", VECTORS)
def test_a_cdo_gives_the_operations_it_was_made_of(name):
    found = VECTORS[name].configuration()
    assert tuple(operations(cdo(found.operations))) == found.operations
    plain = [Write(op.address, op.words[0]) if isinstance(op, BlockWrite) and len(op.words) == 1 else op
             for op in found.operations]  # fmt: skip
    assert list(operations(joined(cdo(part) for part in found.parts))) == plain


def test_random_operations_come_back():
    rng = random.Random(5)
    made = []
    for _ in range(300):
        address, value = rng.getrandbits(32) & ~3, rng.getrandbits(32)
        words = tuple(rng.getrandbits(32) for _ in range(rng.choice((2, 3, 5, 253, 254, 300))))
        made.append(rng.choice((Write(address, value), MaskWrite(address, value, rng.getrandbits(32)),
                                BlockWrite(address, words))))  # fmt: skip
    assert list(operations(cdo(made))) == made
    assert list(operations(joined([cdo(made)]))) == made


def test_an_xclbin_says_what_is_around_its_configuration():
    container = read_image(IMAGES["xclbin_small"]).container
    assert container is not None
    assert container.columns == (8,)
    assert container.kernels == (KernelEntry("MLIR_AIE:MLIRAIE", 0x901),)
    assert container.seconds == 0x6B02178A
    assert ("AIE_PARTITION", 1144) in container.section_kinds


def test_commands_that_no_configuration_needs_are_refused_by_code():
    data = bytearray(FILES[".cdo"])
    (first, *_) = (command for command in commands(bytes(data)) if command.code == 0x107)
    data[first.offset : first.offset + 2] = (0x10F).to_bytes(2, "little")
    with pytest.raises(ImageError, match=f"CDO command 0x10f at {first.offset:#x}"):
        read_image(bytes(data))
