"""Images of a lowered device: CDO, PDI or xclbin, by the suffix of their file."""

from pathlib import Path

from bdforge.array.images.cdo import cdo
from bdforge.array.images.pdi import pdi
from bdforge.array.images.xclbin_write import xclbin
from bdforge.array.lower import StaticConfiguration
from bdforge.common.binary import ImageError
from bdforge.common.files import FileError, read_bytes
from bdforge.common.messages import clip_path
from bdforge.core.isa.elf import CoreSegment, core_segments
from bdforge.devices import Generation

SUFFIXES = (".cdo", ".pdi", ".xclbin")
_NAMED = 4


class NoCodeError(ImageError):
    """A configuration whose cores would run whatever program memory holds."""


def program_of(path: Path, generation: Generation) -> list[CoreSegment]:
    """The program in a core's ELF for a generation; ImageError for a file that is none, or for another one."""
    mine = generation.name.lower()
    try:
        segments, found, _ = core_segments(read_bytes(path))
    except FileError as error:
        said = str(error).removeprefix(f"{clip_path(path)}: cannot be read: ")  # whoever asks names the file
        raise ImageError(f"{said}; paths are relative to the design") from None
    if found not in (None, mine):
        raise ImageError(f"the program is for {found}, not for {mine}")
    return segments


def image(
    configuration: StaticConfiguration, suffix: str, *, columns: int | None = None, seconds: int = 0, bare: bool = False
) -> bytes:
    """The file of a suffix in SUFFIXES; the same bytes every time.

    `columns` of an xclbin's partition are the device's unless given, `seconds` since 1970 its time stamp. NoCodeError
    where cores have no machine code, unless `bare` asks for such an image: an xclbin then names what these cores call.
    ImageError for an unknown suffix.
    """
    if suffix not in SUFFIXES:
        raise ImageError(f"images are written as {', '.join(SUFFIXES)}, not {suffix or 'without a suffix'}")
    if configuration.bare and not bare:
        raise NoCodeError(_without_code(configuration))
    if suffix == ".cdo":
        return cdo(configuration.operations)
    content = pdi(cdo(part) for part in configuration.parts)
    if suffix == ".pdi":
        return content
    columns = columns or configuration.device.columns
    return xclbin(content, columns, seconds=seconds, host_kernels=configuration.bare)


def _without_code(configuration: StaticConfiguration) -> str:
    tiles = list(configuration.bare)
    more = f" and {len(tiles) - _NAMED} more" if len(tiles) > _NAMED else ""
    names = ", ".join(map(str, tiles[:_NAMED]))
    cores = f"core {names} has" if len(tiles) == 1 else f"cores {names}{more} have"
    return (
        f"device @{configuration.symbol}: {cores} no machine code (no elf_file), so this is no image for silicon, "
        "which would run whatever program memory holds; --without-code writes it all the same"
    )
