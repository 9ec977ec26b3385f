"""Pictures as PNG or SVG files, by matplotlib, which is the optional extra `plot`.

Callers give the exception type of their package.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bdforge.common.files import new_file, whole
from bdforge.common.messages import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")


def new_picture(path: Path, force: bool, error: type[InputError]) -> Path:
    """`path` if a picture can be made there, as `new_file`; `error` for a name that no picture has, and without
    matplotlib."""
    with drawing(error):
        if find_spec("matplotlib") is None:
            raise ImportError
    if path.suffix not in SUFFIXES:
        raise error(f"{path}: pictures are written as {' or '.join(SUFFIXES)}; choose such a name")
    return new_file(path, force)


@contextmanager
def drawing(error: type[InputError]) -> Iterator[None]:
    """Around imports of matplotlib: `error` where it is missing, or cannot begin with what its variables say."""
    try:
        yield
    except ImportError:
        raise error("pictures need matplotlib, which is not installed; pip install 'bdforge[plot]'") from None
    except ValueError as fault:
        raise error(f"matplotlib cannot be imported: {fault}; see MPLBACKEND and matplotlibrc") from None


@contextmanager
def fonts() -> Iterator[None]:
    """Around drawing: the same fonts and names on every machine."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "bdforge", "font.family": "DejaVu Sans"}):
        yield


def save_figure(figure: "Figure", path: Path, error: type[InputError], **options: Any) -> None:
    """Write a figure, whole or not at all, as the suffix says; the same bytes every time."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with fonts(), whole(path, error) as file:
        figure.savefig(file, format=path.suffix[1:], metadata=metadata, **options)
