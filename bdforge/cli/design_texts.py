"""The MLIR that commands read: a text as it is, or what any other producer's file makes."""

from os.path import isdir
from pathlib import Path
from typing import Annotated

import typer
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir import parse
from bdforge.cli.options import DEFAULT_PRODUCT, completing
from bdforge.cli.plan import planned
from bdforge.common.files import read_text
from bdforge.design.document import STDIN, design_of
from bdforge.design.render import render as render_design
from bdforge.design.template import is_template, load_template_spec, render_template
from bdforge.devices import DEVICES
from bdforge.operators import document_at, document_name, render

DesignFile = Annotated[
    Path,
    typer.Argument(
        help="MLIR text; or a design's spec or document (.toml, .py, - on standard input), or its built folder."
    ),
]
SpecProduct = Annotated[
    str | None,
    typer.Option(
        "--device",
        help=f"Product that a spec is planned for: {', '.join(DEVICES)}.",
        autocompletion=completing(DEVICES),
    ),
]


def is_made(design: Path) -> bool:
    """Whether a file, or a built design's folder, says a design in another form than MLIR."""
    return design.suffix in (".toml", ".py") or str(design) == STDIN or isdir(design)


def named_text(
    design: Path, device: str | None = None, shape: list[str] | None = None, runs: bool = False
) -> tuple[str, str]:
    """MLIR, and what messages call it; InputErrors for what cannot be read, planned or rendered.

    `device` and the sizes of `shape` are those of `render`, for what is no MLIR yet. `runs` needs a sequence in it.
    """
    if is_made(design):
        text = rendered(design, device or DEFAULT_PRODUCT, shape)
        if runs and not shape and "runtime_sequence" not in text:
            raise typer.BadParameter(
                f"{design} has no sequence of fixed sizes: give those of a run, such as 64x64", param_hint="--shape"
            )
        return text, f"{design}'s MLIR"
    if device or shape:
        raise typer.BadParameter(f"{design} is MLIR: --device and --shape are for specs, whose MLIR they decide")
    return read_text(design), str(design)


def module_of(design: Path, device: str | None = None, shape: list[str] | None = None, runs: bool = False) -> ModuleOp:
    """The parsed text of any producer's file."""
    return parse(*named_text(design, device, shape, runs))


def rendered(
    design: Path, device: str, shape: list[str] | None = None, wait: str | None = None, in_flight: int | None = None
) -> str:
    """The MLIR of a spec, document, template's file, Python's `DESIGN` or built design's folder, with sequences of the
    sizes of `shape`."""
    as_is = not (shape or wait or in_flight is not None or isdir(design))
    if as_is and (text := _as_written(design)) is not None:
        return text
    return render(*planned(design, device, shape, wait, in_flight))


def _as_written(design: Path) -> str | None:
    """The MLIR of a document, `DESIGN` or template as they are; None where it follows from a sequence of any size."""
    if (content := document_at(design)) is not None:
        return render_design(design_of(content, document_name(design)))
    if is_template(design):
        return render_template(load_template_spec(design), design.parent.parent / "templates")
    return None
