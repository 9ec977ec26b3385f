"""What a client wants on its array, and from which files it comes.

A program of bdforge's hosts names a built design. The driver of a hardware context is given a PDI and nothing else;
from that the array boots. Only cores that have no machine code need more: bodies and kernels of the host, which the
build has beside the image. Such an image is marked, and found among those that the program has opened.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bdforge.array.emulator.core_machine import empty_design
from bdforge.array.emulator.resident_design import Resident
from bdforge.array.images.xclbin import MAGIC, HostKernels, host_kernels_of
from bdforge.common.binary import ImageError
from bdforge.common.files import read_bytes, read_json
from bdforge.common.messages import clip_path, listed
from bdforge.devices import DeviceError, device_named, mlir_device_named
from bdforge.runtime.built_design import BuildError, BuiltDesign

MANIFEST = "manifest.json"
PDI_BYTES_MOST = 64 << 20


@dataclass(frozen=True)
class Built:
    """A built design by its manifest."""

    manifest: Path

    def __str__(self) -> str:
        return clip_path(self.manifest)

    @property
    def key(self) -> tuple:
        """The manifest's content, and which files that names."""
        try:
            content = read_bytes(self.manifest)
            files = [Path(self.manifest.parent, entry["path"]) for entry in json.loads(content)["files"].values()]
            states = [(str(file), file.stat()) for file in files if file.is_file()]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return (str(self.manifest),)  # loading it says what is wrong
        stamps = tuple((name, state.st_ino, state.st_size, state.st_mtime_ns) for name, state in states)
        return str(self.manifest), hashlib.sha256(content).digest(), stamps

    def load(self) -> Resident:
        """Boots from the build's own image, where there is one, else from the text."""
        design = BuiltDesign.load(self.manifest.parent)
        resident = design.resident()
        facts = design.manifest
        try:
            product, array = device_named(facts.device), mlir_device_named(facts.mlir_device)
        except DeviceError as error:
            raise BuildError(f"{self.manifest}: {error}; build the design again") from None
        if resident.device != array.mlir or product.generation is not array.generation:
            raise BuildError(
                f"{self.manifest}: is for {facts.device} ({facts.mlir_device}), but {design.mlir_file} is for "
                f"{resident.device}; they come from different builds, build the design again"
            )
        return resident


@dataclass(frozen=True)
class Configured:
    """The configuration of a hardware context on an array, called as in MLIR; `image` and `host_kernels` where it is
    that of an image whose cores need kernels of the host."""

    array: str
    pdi: bytes
    image: Path | None = None
    host_kernels: HostKernels | None = None

    def __str__(self) -> str:
        return "the hardware context's configuration" if self.image is None else clip_path(self.image)

    @property
    def key(self) -> tuple:
        """The configuration, and the build that it needs besides."""
        build = () if self.image is None else Built(self.image.parent / MANIFEST).key
        return self.array, hashlib.sha256(self.pdi).digest(), build

    def load(self) -> Resident:
        """Boots from the PDI."""
        if self.image is None:
            return Resident(empty_design(self.array, None), {}, image=self.pdi)
        if not _is_listed(self.image):
            raise BuildError(_without_kernels(self.image, self.host_kernels or {}))
        design = BuiltDesign.load(self.image.parent)
        resident = design.resident(self.pdi)
        if resident.device != self.array:
            raise BuildError(
                f"{clip_path(self.image)}: the hardware context is an array {self.array}, but {design.mlir_file} is "
                f"for {resident.device}; build the design again"
            )
        return resident


Wanted = Built | Configured
"""What is to be loaded. `key` tells it from everything else, as long as its files stay as they are; as text it is what
messages begin with. `load` raises BuildError for files that are missing or of different builds, EmulationError or Fault
for what the array does not take."""


def configured(array: str, pdi: int, images: Sequence[str]) -> Configured:
    """What the PDI in file `pdi` configures; `images` are the files that it may come from.

    BuildError for an unknown array, a file of another size, and images that cannot be read.
    """
    try:
        mlir_device_named(array)
    except DeviceError as error:
        raise BuildError(f"a hardware context: {error}") from None
    content = _content(pdi)
    found = Configured(array, content)
    for path in map(Path, images):
        data = read_bytes(path, BuildError) if path.is_file() else b""
        if data.startswith(MAGIC) and content in data and (functions := _mark(path, data)):
            found = Configured(array, content, path, functions)
            if _is_listed(path):
                break
    return found


def _mark(path: Path, data: bytes) -> HostKernels:
    try:
        return host_kernels_of(data)
    except ImageError as error:
        raise BuildError(f"{clip_path(path)}: {error}") from None


def _without_kernels(image: Path, host_kernels: HostKernels) -> str:
    names = dict.fromkeys(name for functions in host_kernels.values() for name in functions)
    return (
        f"{clip_path(image)}: its cores {listed(host_kernels)} have no machine code but kernels of the host "
        f"({listed(names) or 'none'}), and no {MANIFEST} beside the file lists it; keep it in the folder that it was "
        "built in"
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
