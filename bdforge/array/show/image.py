"""Pictures of a design as PNG or SVG files."""

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.show.array_use import DesignUse, devices_of, use_of
from bdforge.common.messages import InputError
from bdforge.common.pictures import drawing, fonts, new_picture, save_figure


class ShowError(InputError):
    """A design or output file that cannot be shown or written; the message says what to do."""


def picture(module: ModuleOp, path: Path, *, device: str | None = None, force: bool = False, title: str = "") -> None:
    """Draw the array of a module's device to `path`, in the format that its suffix names; the same bytes every time.

    `device` picks one by name where there are several. Existing files are kept unless `force`. ShowError for
    other suffixes and without matplotlib; AllocationError and RoutingError where the design does not fit.
    """
    new_picture(path, force, ShowError)
    save(use_of(chosen_device(module, device)), path, title)


def save(use: DesignUse, path: Path, title: str = "") -> None:
    """Draw one device to `path`, whole or not at all, in the format that its suffix names."""
    with drawing(ShowError):
        from bdforge.array.show.draw import figure_of
    with fonts():
        figure = figure_of(use, _title(use, title))
    save_figure(figure, path, ShowError)


def chosen_device(module: ModuleOp, name: str | None) -> DeviceOp:
    """The module's device with that name, or its only one; ShowError if there is no such."""
    devices = devices_of(module)
    names = ", ".join(f"@{device.symbol}" for device in devices) or "none"
    fitting = [device for device in devices if name in (None, device.symbol)]
    if not fitting:
        wanted = f"device @{name}" if name else "aie.device"
        raise ShowError(f"there is no {wanted} to draw; the module has {names}")
    if len(fitting) > 1:
        raise ShowError(f"the module has several devices ({names}); name the one to draw")
    return fitting[0]


def _title(use: DesignUse, title: str) -> str:
    device, busiest = use.device, use.routing.busiest
    text = f"{title + ': ' if title else ''}@{device.symbol} on {device.device_name}"
    streams = len(use.routing.nets)
    text += f"\n{streams} stream{'s' * (streams != 1)}"
    if busiest is not None:
        kind = device.device.kind(busiest.column, busiest.row)
        text += f"; busiest switch: {kind} ({busiest.column}, {busiest.row}), {busiest.share:.0%} of its ports"
    return text
