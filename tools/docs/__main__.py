"""`python -m tools.docs [PAGE ...]`: write the pages that are made from models and plans, by default all of them.

`features` prints what the emulated array does and which test shows it; `emulated` runs the designs of docs/accuracy.md
on the emulated array again (minutes) and keeps what it finds for that page; `operators` does so for docs/operators,
`errors` for docs/numerics.md, `reproduced` for docs/papers.md, `counted` for the machine code of docs/assembled.md and
docs/kernel_costs.md. Run it in the repository's root.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bdforge.perf.plots.figure import save
from tools.docs import (
    accuracy,
    assembled,
    bitnet,
    counted,
    emulated,
    family,
    features,
    isa_forms,
    json_output,
    kernel_costs,
    numerics,
    operators,
    papers,
    training,
)  # fmt: skip

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES: dict[str, Callable[[], str]] = {
    "accuracy": accuracy.page,
    "assembled": assembled.page,
    "bitnet": bitnet.page,
    "family": family.page,
    "isa_forms": isa_forms.page,
    "json": json_output.page,
    "kernel_costs": kernel_costs.page,
    "numerics": numerics.page,
    "operators/attention": partial(operators.page, "attention"),
    "operators/convert": partial(operators.page, "convert"),
    "operators/elementwise": partial(operators.page, "elementwise"),
    "operators/rope": partial(operators.page, "rope"),
    "operators/rows": partial(operators.page, "rows"),
    "operators/softmax": partial(operators.page, "softmax"),
    "operators/transpose": partial(operators.page, "transpose"),
    "papers": papers.page,
    "training": training.page,
}
"""Pages that the repository holds; a test keeps them current."""
RUNS = {
    "emulated": emulated.run_all,
    "counted": counted.run_all,
    "errors": numerics.run_all,
    "operators": operators.run_all,
    "reproduced": papers.run_all,
}
"""Minutes of work that make the tables which pages read."""
PICTURES = {
    "accuracy": accuracy.picture,
    "bitnet": bitnet.picture,
    "operators/attention": partial(operators.picture, "attention_bf16_d128"),
    "operators/convert": partial(operators.picture, "quantise_bf16"),
    "operators/elementwise": partial(operators.picture, "silu_gate_bf16"),
    "operators/rope": partial(operators.picture, "rope_bf16"),
    "operators/rows": partial(operators.picture, "rmsnorm_bf16"),
    "operators/softmax": partial(operators.picture, "softmax_bf16"),
    "operators/transpose": partial(operators.picture, "transpose_bf16"),
}
"""Those that come with pages, in docs/images."""


def main(
    pages: Annotated[list[str] | None, typer.Argument(help=f"{', '.join(PAGES)}, features, {', '.join(RUNS)}.")] = None,
) -> None:
    """Write pages of docs/ anew."""
    for name in pages or PAGES:
        if name == "features":
            typer.echo(features.page(), nl=False)
        elif name in RUNS:
            for line in RUNS[name]():
                typer.echo(line)
        elif name in PAGES:
            (DOCS / f"{name}.md").write_text(PAGES[name](), encoding="utf-8")
            typer.echo(f"wrote docs/{name}.md")
            if name in PICTURES:
                save(PICTURES[name], DOCS / "images" / f"{Path(name).name}.png")
        else:
            raise typer.BadParameter(f"{name!r} is none of {', '.join((*PAGES, *RUNS, 'features'))}")


if __name__ == "__main__":
    typer.run(main)
