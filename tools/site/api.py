"""Pages of the Python API, of docstrings: what is public, and what authors of designs and operators import."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import isclass, isroutine

import bdforge
from tools.docs.markdown import prose
from tools.site.parts import subpages

_GIVEN = tuple(f"bdforge.runtime.{name}" for name in ("Loaded", "Prepared", "PackedOperands", "Pending"))
"""What public functions return, and what that returns."""
_FOR_AUTHORS = {
    "bdforge.design": "designs by hand: tiles, buffers, locks, BDs, flows, programs of cores",
    "bdforge.design.sequences": "what the shims do for problems of any size",
    "bdforge.operators": "operators of your own, in [packages](../docs/extending.md#an-operator) of your own",
    "bd_patterns": "access patterns of DMAs: sizes and strides",
}
_PUBLIC = prose(
    "Public are the names in `bdforge.__all__` and the methods of what they give; [what stays the",
    "same](../CONTRIBUTING.md#what-stays-the-same) says for how long.",
)
_OTHERS = prose(
    "Designs and operators of your own are written with the packages below. They are typed and described, and may",
    "change with any version.",
)


def pages() -> dict[str, str]:
    """Text of the pages by path below `reference`: what is public, and a page for each package for authors."""
    public = [f"bdforge.{name}" for name in bdforge.__all__]
    packages = "\n".join(f"- [`{name}`](api/{name}.md): {use}" for name, use in _FOR_AUTHORS.items())
    below = subpages(f"api/{name}" for name in _FOR_AUTHORS)
    text = ["# Python API\n", _PUBLIC, *_described((*public, *_GIVEN)), "## For authors\n", _OTHERS, packages, below]
    return {"api.md": "\n".join(text)} | {f"api/{name}.md": "\n".join(_package(name)) for name in _FOR_AUTHORS}


def _package(name: str) -> Iterator[str]:
    yield f"# {name}\n"
    yield f"```{{eval-rst}}\n.. automodule:: {name}\n   :no-members:\n```\n"
    yield from _described(f"{name}.{one}" for one in import_module(name).__all__ if _home(name, one) == name)


def _home(package: str, name: str) -> str:
    """The first package for authors that has what this one calls so, such as an error that several raise."""
    found = getattr(import_module(package), name)
    return next(home for home in _FOR_AUTHORS if getattr(import_module(home), name, None) is found)


def _described(names: Iterable[str]) -> Iterator[str]:
    yield "```{eval-rst}"
    for name in names:
        module, _, last = name.rpartition(".")
        found = getattr(import_module(module), last)
        if isclass(found):
            yield f".. autoclass:: {name}\n   :members:\n"
        elif isroutine(found):
            yield f".. autofunction:: {name}\n"
        else:
            yield f".. py:data:: {name}\n   :type: {type(found).__name__}\n"
    yield "```\n"
