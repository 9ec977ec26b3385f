"""What `bdforge show` prints and draws of a file: tables, and a picture."""

from pathlib import Path

from bdforge.array.images.read import is_image, read_image
from bdforge.array.mlir import parse
from bdforge.array.show.array_use import devices_of, use_of
from bdforge.array.show.container import image_tables
from bdforge.array.show.design_report import design_tables, tables
from bdforge.array.show.image import ShowError, chosen_device, save
from bdforge.common.files import TEXT_BYTES_MAX, decoded, read_bytes
from bdforge.common.pictures import new_picture
from bdforge.common.screen import as_text


def command(
    design: Path, out: Path | None = None, device: str | None = None, force: bool = False, width: int = 120,
    made: tuple[str, str] | None = None,
) -> str:  # fmt: skip
    """What `bdforge show` prints for the file `design`: MLIR, or an image (xclbin, PDI, CDO, full ELF).

    `made` is the MLIR of a file in another form, and its name. With `out`, MLIR is also drawn as PNG or SVG, by suffix.
    Tables take `width` characters at most. MlirError (with AllocationError and RoutingError) for the design, ImageError
    and StateError for an image, ShowError for files and for drawing.
    """
    data = b"" if made else read_bytes(design, ShowError, TEXT_BYTES_MAX)
    if is_image(data):
        if out is not None or device is not None:
            raise ShowError(f"{design} is an image: it is shown in tables, and holds no device with a name")
        return as_text(image_tables(read_image(data)), width)
    module = parse(*(made or (decoded(data, design, ShowError), str(design))))
    if device is not None:
        chosen_device(module, device)
    if out is None:
        return as_text(tables(module), width)
    new_picture(out, force, ShowError)
    chosen = chosen_device(module, device)
    uses = {op: use_of(op) for op in devices_of(module)}
    save(uses[chosen], out, design.name)
    text = as_text((part for use in uses.values() for part in design_tables(use)), width)
    return f"{text}\nwrote {out}\n"
