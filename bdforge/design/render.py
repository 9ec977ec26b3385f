"""From a design to MLIR text. Templates only place what is decided here."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

from bdforge.common.tree import tree
from bdforge.design.design_check import check
from bdforge.design.lowering import Kernels, core_program
from bdforge.design.model import Design
from bdforge.design.modes import declared, parts_of
from bdforge.design.op_tree import Op, dma_program
from bdforge.design.reasons import DesignError
from bdforge.design.sandbox import Sandbox, limited, rendered

TEMPLATES = tree() / "templates"
_OF_PROJECT: list[Path] = []


def render(design: Design, template: Path | None = None, **values: Any) -> str:
    """The MLIR text of a design, or what a template of your own makes of it.

    A template gets `design`, whose tiles' modes are one buffer of bytes each, its `dmas` and `cores` as operations,
    which `written` writes, its `kernels` by name, and `values`; it may import the macros of `templates/`. DesignError
    lists the reasons why no array holds the design; a name that a template lacks, or an error in it, is one of Jinja.
    """
    if reasons := check(design):
        raise DesignError(design.name, reasons)
    kernels: Kernels = {}
    parts, design = parts_of(design.tiles), declared(design)
    names = {named.name for tile in design.tiles for named in (tile, *tile.buffers, *tile.locks)} | parts.keys()
    cores = [core_program(tile, tile.core, names, kernels, parts)[0] for tile in design.tiles if tile.core]
    dmas = [dma_program(tile) for tile in design.tiles if tile.channels]
    given = {"design": design, "dmas": dmas, "cores": cores, "kernels": kernels}
    with limited():
        found = environment((template.parent,) if template else ())
        return rendered(found.get_template(template.name if template else "design.mlir.j2"), given | values)


def search_first(folder: Path) -> None:
    """From now on templates in `folder`, those of a project, come before bdforge's."""
    _OF_PROJECT[:] = [folder]
    environment.cache_clear()


@cache
def environment(folders: tuple[Path, ...] = ()) -> Sandbox:
    """Where templates are looked for, `limited`: in `folders`, in a project's, then among bdforge's."""
    found = Sandbox([*folders, *_OF_PROJECT, TEMPLATES])
    macros = found.get_template("ops.mlir.j2").module
    cast(dict, found.globals)["written"] = lambda op, indent="    ": "\n".join(_lines(macros, op, indent))
    return found


def _lines(macros: Any, op: Op, indent: str) -> Iterator[str]:
    """An operation by its macro, with what stands inside it; labels stand out."""
    line = indent + getattr(macros, op.macro)(*op.arguments)
    for number, region in enumerate(op.regions, start=1):
        yield line + " {"
        for inner in region:
            yield from _lines(macros, inner, indent if inner.macro == "label" else indent + "  ")
        line = f"{indent}}}" + (" else" if number < len(op.regions) else macros.after(op))
    yield line
