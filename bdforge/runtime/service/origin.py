"""Which build the configuration of a hardware context comes from.

A driver is given a PDI and nothing else. What cores run that hold no machine code, and the text that faults are told
in, stand in the manifest beside the image that the program has read the PDI from.
"""

import hashlib
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from bdforge.files import read_bytes, read_json
from bdforge.messages import listed, path_word
from bdforge.runtime.design import BuildError

MANIFEST = "manifest.json"
PDI_BYTES_MOST = 64 << 20


def manifest_of(pdi: int, images: Sequence[str]) -> Path:
    """The manifest of the first image that holds the PDI in file `pdi`; BuildError says why there is none."""
    content = _content(pdi)
    holding = [path for path in map(Path, images) if path.is_file() and content in read_bytes(path, BuildError)]
    if not holding:
        seen = listed(path_word(image) for image in images) or "none"
        raise BuildError(
            f"the hardware context's configuration ({len(content)} bytes) is in no xclbin or ELF that the program has "
            f"opened ({seen}); open the file by its name, with {MANIFEST} beside it"
        )
    for image in holding:
        if _is_listed(image):
            return image.parent / MANIFEST
    raise BuildError(
        f"{path_word(holding[0])}: no {MANIFEST} beside it lists this file, so the emulated array does not know what "
        "its cores run; keep it in the folder that it was built in"
    )


def _content(pdi: int) -> bytes:
    size = os.fstat(pdi).st_size
    if not 0 < size <= PDI_BYTES_MOST:
        raise BuildError(f"the hardware context's configuration has {size} bytes; it takes 1 to {PDI_BYTES_MOST}")
    with mmap.mmap(pdi, size, prot=mmap.PROT_READ) as mapped:
        return bytes(mapped)


def _is_listed(image: Path) -> bool:
    """Whether the manifest beside an image is of the same build."""
    manifest = image.parent / MANIFEST
    if not manifest.is_file():
        return False
    facts = read_json(manifest, BuildError)
    files = facts.get("files") if isinstance(facts, dict) else None
    hashed = hashlib.sha256(read_bytes(image, BuildError)).hexdigest()
    entries = files.values() if isinstance(files, dict) else ()
    return any(isinstance(entry, dict) and entry.get("sha256") == hashed for entry in entries)
