"""From a design to MLIR text. Templates only place what is decided here."""

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from bdforge.design.check import check
from bdforge.design.lowering import Kernels, core_program
from bdforge.design.model import Design
from bdforge.design.operations import Op, dma_program
from bdforge.design.reasons import DesignError

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


def render(design: Design, template: Path | None = None, **values: Any) -> str:
    """The MLIR text of a design, or what a template of your own makes of it.

    A template gets `design`, its `dmas` and `cores` as operations, its `kernels` by name, and `values`; it may import
    the macros of `templates/`. DesignError lists the reasons why no array holds the design; a name that a template
    lacks, or an error in it, is an error of Jinja.
    """
    if reasons := check(design):
        raise DesignError(design.name, reasons)
    names = [design.device, *(s.name for tile in design.tiles for s in (tile, *tile.buffers, *tile.locks))]
    cores: list[Op] = []
    kernels: Kernels = {}
    for tile in design.tiles:
        if tile.core:
            program, called = core_program(tile, tile.core, names)
            cores.append(program)
            kernels = called | kernels
    dmas = [dma_program(tile) for tile in design.tiles if tile.channels]
    found = _environment(template.parent if template else TEMPLATES).get_template(
        template.name if template else "design.mlir.j2"
    )
    text = found.render(design=design, dmas=dmas, cores=cores, kernels=kernels, **values)
    return text if text.endswith("\n") else text + "\n"


@cache
def _environment(folder: Path) -> jinja2.Environment:
    loader = jinja2.FileSystemLoader([folder, TEMPLATES])
    return jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
