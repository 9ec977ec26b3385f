"""Designs of a user's own: a template writes the MLIR, with numbers and access patterns that a spec gives it.

kind = "template"
array = "npu2_1col"            # the aie.device
template = "mine.mlir.j2"      # in templates/ of the project, or in bdforge's
kernels = ["mine.cc"]          # in kernels/ of the project, or in bdforge's
golden = "tests/test_mine.py"  # compares a run with what it should be

[values]                       # names of the template; macros of kernels, in capitals
rows = 64

With a document's `[sequence]` of any size, its `[[operand]]`s and `[[problems]]` beside them it is a design that hosts
run at any size; `reference` says what its outputs must be. A template whose name does not end with .j2 is taken as it
is.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Annotated, Any, Literal

import jinja2
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bd_patterns import Pattern, PatternError, require_legal
from bdforge.common.files import FileError, read_toml
from bdforge.common.messages import InputError, clip, clip_path, form_fault, listed
from bdforge.design.document import Surrounding
from bdforge.design.render import environment
from bdforge.design.sandbox import limited, rendered
from bdforge.devices import MLIR_DEVICES, Device, TileKind
from bdforge.devices.registers import TILE_REGISTERS, address

KIND = "template"
_KINDS = {str(kind): kind for kind in TileKind}
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


def _below(name: str) -> str:
    if ".." in name.split("/"):
        raise ValueError("a file stays in its folder: no part is ..")
    return name


_File = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_./ -]*$", max_length=256), AfterValidator(_below)]
_Number = Annotated[int, Field(strict=True, ge=-(1 << 31), lt=1 << 31)]


class TemplateError(InputError):
    """A spec or template of a user's own that cannot be used; the message has the file, and a template's line."""


class TemplateSpec(BaseModel):
    """What a TOML file with `kind = "template"` says."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: Literal["template"]
    array: str
    template: _File
    kernels: list[_File] = Field(default_factory=list)
    golden: _File | None = None
    values: dict[_Name, _Number] = Field(default_factory=dict)
    reference: str = ""
    sequence: dict[str, Any] | None = None
    operand: list[Any] = Field(default_factory=list)
    problems: list[Any] = Field(default_factory=list)

    @property
    def defines(self) -> list[str]:
        """Macros with which the kernels are compiled."""
        return [f"{name.upper()}={value}" for name, value in self.values.items()]

    def fits(self, device: Device) -> bool:
        """Whether a product has the array: npu2_1col is a column of npu2."""
        return self.array.partition("_")[0] == device.mlir


def is_template(path: Path | str) -> bool:
    """Whether a file is a spec for a template of fixed size, without `[sequence]`; not if it cannot be read, which
    whoever needs it says."""
    try:
        found = read_toml(path, TemplateError)
        return found.get("kind") == KIND and "sequence" not in found
    except TemplateError:
        return False


def load_template_spec(path: Path | str) -> TemplateSpec:
    """Read a spec; TemplateError lists every fault, one to a line."""
    return template_spec(read_toml(path, TemplateError), clip_path(path))


def template_spec(tables: Mapping[str, Any], where: str) -> TemplateSpec:
    """The spec that a file's tables are; TemplateError lists every fault, `where` heads each."""
    try:
        spec = TemplateSpec.model_validate(tables)
    except ValidationError as error:
        faults = (f"{where}: {form_fault(e, '.'.join(map(clip, e['loc'])))}" for e in error.errors())
        raise TemplateError(listed(faults, "\n")) from None
    if spec.array not in MLIR_DEVICES:
        raise TemplateError(f"{where}: array: {clip(spec.array)} is no aie.device; there is {', '.join(MLIR_DEVICES)}")
    return spec


@dataclass(frozen=True, slots=True)
class Bds:
    """What templates make patterns with: `bd("memtile", 32, [4, 16], [16, 1])`."""

    device: Device

    def __call__(self, on: str, bits: int, sizes: list[int], strides: list[int], offset: int = 0) -> Pattern:
        """A pattern of elements of so many bits that a BD of this kind of tile holds; PatternError has every reason.

        A shim's is a transfer of a runtime sequence, the others stand in the text for good.
        """
        if on not in _KINDS:
            raise PatternError(f"{clip(on)} is no kind of tile; there is {', '.join(_KINDS)}")
        pattern, kind = Pattern(tuple(sizes), tuple(strides), offset), _KINDS[on]
        require_legal(pattern, self.device.generation.limits(kind), bits, static=kind is not TileKind.SHIM)
        return pattern


def render_template(spec: TemplateSpec, *folders: Path) -> str:
    """The MLIR that a template writes, looked for in `folders`, then as all are; TemplateError says what is wrong.

    It gets the values by name, `array`, and `bd` (see `Bds`); a name that it lacks is an error.
    """
    try:
        if not spec.template.endswith(".j2"):
            found = environment(folders)
            assert found.loader is not None
            return found.loader.get_source(found, spec.template)[0]
        with limited():
            template = environment(folders).get_template(spec.template)
            return rendered(template, {**spec.values, "array": spec.array, "bd": Bds(MLIR_DEVICES[spec.array])})
    except jinja2.TemplateNotFound as error:
        raise TemplateError(
            f"{clip(error.name or '')}: no template of the project or of bdforge has this name"
        ) from None
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{clip_path(error.filename or spec.template)}:{error.lineno}: {error.message}") from None
    except FileError as error:
        raise TemplateError(str(error)) from None
    except Exception as error:  # what a template calls raises whatever it does of what it is given
        place = _place(sys.exc_info()[2], spec.template)
        plain = isinstance(error, jinja2.TemplateError | ArithmeticError | TypeError | ValueError)
        raise TemplateError(f"{place}: {error if plain else f'{type(error).__name__}: {error}'}") from None


_TILE = re.compile(r"%(\w+)\s*=\s*aie\.tile\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_CHANNEL = re.compile(r"aie\.shim_dma_allocation\s+@(\w+)\s*\(\s*%(\w+)\s*,\s*(S2MM|MM2S)\s*,\s*(\d+)\s*\)")
_HELD = re.compile(r"aie\.(buffer|lock)\(\s*%(\w+)\s*(?:,\s*(\d+))?\s*\)\s*\{([^}]*)\}")
_SYMBOL, _ADDRESS = re.compile(r'sym_name\s*=\s*"(\w+)"'), re.compile(r"address\s*=\s*(\d+)")


def named_in(text: str, array: str) -> Surrounding:
    """What a text for an array names: allocated channels, buffers with an address and locks with a number."""
    found, device = Surrounding(), MLIR_DEVICES[array]
    text = re.sub(r"//.*", "", text)
    tiles = {name: (int(column), int(row)) for name, column, row in _TILE.findall(text)}
    for name, tile, direction, channel in _CHANNEL.findall(text):
        if tile in tiles:
            found.channels[name] = direction, int(channel), tiles[tile][0]
    for what, tile, number, attributes in _HELD.findall(text):
        name, at = _SYMBOL.search(attributes), _ADDRESS.search(attributes)
        if tile not in tiles or not name:
            continue
        if what == "buffer" and at:
            found.buffers[name[1]] = address(*tiles[tile], int(at[1]))
        elif what == "lock" and number:
            registers = TILE_REGISTERS[device.kind(*tiles[tile])]
            found.locks[name[1]] = address(*tiles[tile], registers.lock_offset(int(number)))
    return found


def _place(trace: TracebackType | None, template: str) -> str:
    """File and line of the template where it went wrong: Jinja's tracebacks name them."""
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(trace)]
    own: list[Any] = [place for place in places if place[0].endswith(".j2")]
    return f"{clip_path(own[-1][0])}:{own[-1][1]}" if own else template
