"""Writers of images against files of the real tools, byte by byte."""

import hashlib
import json
import re
import struct
from dataclasses import replace

import numpy as np
import pytest

from bdforge.array.images.cdo import cdo, commands
from bdforge.array.images.image_build import NoCodeError, image
from bdforge.array.images.pdi import pdi
from bdforge.array.images.xclbin import SectionKind, host_kernels_of, pdis, sections
from bdforge.array.images.xclbin_mark import marked as mark
from bdforge.array.images.xclbin_write import XclbinSection, xclbin
from bdforge.common.binary import ImageError
from bdforge.devices.txn_format.operations import BlockWrite, Noop, Write
from support.cdo_vectors import PARTS, VECTORS
from support.differences import same
from support.images import IMAGES

PDI_UUID = bytes.fromhex("00112233445566778899aabbccddeeff")
UUID, SECONDS = bytes.fromhex("168f6f9e10d2de07f62df2d1f9f6c3b5"), 0x6B02178A


def words(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint32)


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize(("count", "head"), [(2, 3), (252, 3), (253, 3), (254, 4), (1000, 4)])
def test_nops_before_a_block_are_aie_translates(count: int, head: int, before: int):
    """For a head of 3 words, or 4 from a payload of 256 on: of exactly 255, the block's data lie one word further."""
    file = cdo([*(Write(4 * i, i) for i in range(before)), BlockWrite(0x2220408, tuple(range(count)))])
    (block,) = (command.offset // 4 for command in commands(file) if command.code == 0x105)
    assert (block + head) % 4 == 0, f"a block of {count} words, so a payload of {count + 2}, begins at word {block}"


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("name", VECTORS)
def test_cdo_files_have_the_same_bytes(name):
    vector = VECTORS[name]
    for part, operations in zip(PARTS, vector.configuration().parts, strict=True):
        same(words(cdo(operations)), words(vector.file(part)), f"words of {part}")


def test_pdis_have_the_same_bytes():
    """Joined by bootgen 2022.2 and by mlir-aie's bootgen, which agree."""
    recorded = {"npu2_core_elf": IMAGES["pdi_core"], "npu2_locks": pdis(IMAGES["xclbin_small"])[0]}
    for name, expected in recorded.items():
        parts = VECTORS[name].configuration().parts
        same(words(pdi(cdo(part) for part in parts)), words(expected), f"words of {name}")


def parts(data: bytes) -> dict[str, object]:
    """Sections of an xclbin by their kind, and the copy in JSON behind them: what differs is told by its name."""
    copied = data[data.index(b"MIRROR_DATA_START") + 17 : data.index(b"XCLBIN_MIRROR_DATA_END")]
    pairs = json.loads(copied, object_pairs_hook=list)  # a key of it repeats
    found = {f"{number}: {SectionKind(kind).name}": content for number, (kind, content) in enumerate(sections(data))}
    return {**found, "header": words(data[:456]), **{f"copy {i}: {key}": value for i, (key, value) in enumerate(pairs)}}


def test_an_xclbin_has_the_same_bytes():
    (content,) = pdis(IMAGES["xclbin_small"])
    made = xclbin(content, 8, SECONDS, buffers=3, pdi_uuid=PDI_UUID, uuid=UUID)
    same(parts(made), parts(IMAGES["xclbin_small"]))
    assert made == IMAGES["xclbin_small"]


def test_uuids_follow_from_the_content():
    (content,) = pdis(IMAGES["xclbin_small"])
    first = xclbin(content, 8)
    assert first == xclbin(content, 8)
    others = [xclbin(content, 4), xclbin(IMAGES["pdi_core"], 8), xclbin(content, 8, seconds=1)]
    assert len({data[416:432] for data in (first, *others)}) == 4
    assert pdis(first) == [content]
    assert [kind for kind, _ in sections(first)] == [kind for kind, _ in sections(IMAGES["xclbin_small"])]


def test_an_xclbin_for_the_emulated_array_alone_says_so_and_why():
    (content,) = pdis(IMAGES["xclbin_small"])
    functions = {(7, 5): ("zero", "mm"), (0, 2): ()}
    marked = xclbin(content, 8, host_kernels=functions)
    assert host_kernels_of(marked) == functions
    assert (marked, pdis(marked)) == (xclbin(content, 8, host_kernels=dict(reversed(functions.items()))), [content])
    assert host_kernels_of(xclbin(content, 8)) == {}
    for other in (b"", b"{}", b'{"bdforge_host_kernels": [[0, 2]]}', b"\xff" * 99):
        strange = [XclbinSection(SectionKind.USER_METADATA, "", other)]
        assert host_kernels_of(xclbin(content, 8, marks=strange)) == {}
        both = [*strange, XclbinSection(SectionKind.USER_METADATA, "", mark(functions))]
        found = host_kernels_of(xclbin(content, 8, marks=both))
        assert found == functions, f"somebody else's {other!r} hides the mark behind it"


def test_a_pdis_uuid_is_a_hash_of_it():
    """Runtimes tell configurations apart by it: it stands at the beginning of the PDI's record."""
    for content in (pdis(IMAGES["xclbin_small"])[0], IMAGES["pdi_core"]):
        (partition,) = (section for kind, section in sections(xclbin(content, 8)) if kind == SectionKind.AIE_PARTITION)
        count, table = struct.unpack_from("<II", partition, 120)
        assert (count, partition[table : table + 16]) == (1, hashlib.sha256(content).digest()[:16])


def test_what_waits_is_no_image():
    with pytest.raises(ImageError, match="an image cannot hold a Noop"):
        cdo([Noop()])


def test_cores_without_code_make_no_image():
    found = VECTORS["npu2_locks"].configuration()
    with pytest.raises(NoCodeError, match=r"core \(0, 2\) has no machine code"):
        image(found, ".pdi")
    for count, named in ((4, "(0, 2), (0, 3), (0, 4), (0, 5) have"), (5, "(0, 5) and 1 more have")):
        bare = replace(found, bare={(i // 4, 2 + i % 4): () for i in range(count)})
        with pytest.raises(NoCodeError, match=rf"cores .*{re.escape(named)} no machine code"):
            image(bare, ".pdi")
    assert image(found, ".pdi", bare=True) == pdis(IMAGES["xclbin_small"])[0]
