"""A page for each operator of the registry: its designs with their arrays, and the keys of its specs."""

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import ismethod
from pathlib import Path
from typing import Any

from bdforge.devices import DEVICES
from bdforge.operators import OPERATORS, Operator, Spec, SpecForm, load_spec, plan
from bdforge.operators.gemm.spec import _GemmFile
from tools.docs.markdown import prose, table
from tools.site.parts import escaped, subpages
from tools.site.schemas import SchemaTables

KINDS = [kind for kind in OPERATORS if find_spec(f"bdforge.operators.{kind}")]
"""Those of this tree; packages from outside have pages of their own."""
_DESIGNS = Path(__file__).resolve().parents[2] / "designs"
_OPERATORS = _DESIGNS.with_name("docs") / "operators"
_GUIDES = {"contraction": "contractions", "gemv": "gemv"}
"""Pages of docs/ that tell of an operator; of the others docs/operators does."""
_START = prose(
    "`kind` at the top of a [design spec](../docs/designs.md) names its operator. `bdforge render`, `plan`, `build`,",
    "`run` and `estimate` take specs of all of them; [packages of yours](../docs/extending.md#an-operator) add others.",
)


def pages() -> dict[str, str]:
    """Text of the pages by path below `reference`: one for each operator, and their list."""
    specs = [load_spec(path) for path in sorted(_DESIGNS.glob("*.toml"))]
    rows = [(f"[`{kind}`](operators/{kind}.md)", _summary(kind), _sizes(OPERATORS[kind])) for kind in KINDS]
    listed = table(("kind", "computes", "sizes of a problem"), rows)
    text = "\n".join(["# Operators\n", _START, listed, subpages(f"operators/{kind}" for kind in KINDS)])
    of = {kind: [spec for spec in specs if spec.kind == kind] for kind in KINDS}
    return {"operators.md": text} | {f"operators/{kind}.md": "\n".join(_page(kind, of[kind])) for kind in KINDS}


def form_of(operator: Operator) -> type[SpecForm[Any]]:
    """What its files hold."""
    return operator.load.__self__.FORM if ismethod(operator.load) else _GemmFile  # type: ignore[attr-defined]


def _page(kind: str, specs: list[Spec]) -> Iterator[str]:
    guide = f"/docs/{_GUIDES.get(kind, f'operators/{kind}')}"
    yield f"# {kind}\n"
    yield f"{_summary(kind)}. Sizes of a problem: {_sizes(OPERATORS[kind])}.\n"
    yield f"[What it does, with which bounds and costs](../..{guide}.md).\n"
    if guide.startswith("/docs/operators"):
        yield subpages(f"/docs/operators/{path.stem}" for path in sorted(_OPERATORS.glob(f"{kind}*.md")))
    if specs:
        yield "## Designs\n"
        yield table(("design", "what it is", "arrays", "for"), map(_design, specs))
    yield from SchemaTables(form_of(OPERATORS[kind]).model_json_schema()).sections("Keys of a spec")


def _summary(kind: str) -> str:
    """How the text of its package begins."""
    told = import_module(f"bdforge.operators.{kind}").__doc__ or ""
    return escaped(re.split(r"[:;.]\s", " ".join(told.split()) + " ")[0])


def _sizes(operator: Operator) -> str:
    return " x ".join(f"`{axis}`" for axis in operator.axes) or "those of its design"


def _design(spec: Spec) -> tuple[str, ...]:
    text = (_DESIGNS / f"{spec.name}.toml").read_text(encoding="utf-8")
    about = " ".join(line[1:].strip() for line in text.split("\n\n")[0].splitlines() if line.startswith("#"))
    products = [device for device in DEVICES.values() if OPERATORS[spec.kind].fits(spec, device)]
    operands = plan(spec, products[0]).program.operands
    ways = [", ".join(f"{one.name} {one.type}" for one in operands if one.direction == way) for way in ("in", "out")]
    arrays = ", ".join(dict.fromkeys(device.mlir for device in products))
    link = f"[{spec.name}](../../designs/{spec.name}.toml)"
    return link, escaped(about.split(". ")[0]), " → ".join(map(escaped, ways)), arrays
