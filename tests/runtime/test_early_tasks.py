"""What the host gave flows while the step before still runs, to tiles that it leaves alone; nothing else does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.design.sequences import Start
from bdforge.design.sequences.buffers import arguments, fetched, placed, sizes_of
from bdforge.design.sequences.interpret import Await, StartedTask, Stored
from bdforge.devices import device_named
from bdforge.operators import plan, plan_of, spec_from
from bdforge.runtime import BuiltDesign
from bdforge.runtime.composition import CompositionForm, compose
from support import cached_tokens
from support.coded_folders import coded_plan
from support.differences import same

NORM = {
    "kind": "rows", "function": "rmsnorm", "width": 192, "codes": True, "problems": [{"rows": 1}],
    "array": {"rows": 1, "columns": 1, "first_column": 2, "from_end": True},
}  # fmt: skip
PRODUCT = {
    "kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "bf16"}, "tile": {"m": 1, "k": 16, "n": 32},
    "buffers": {"w": 3}, "array": {"rows": 1, "columns": 2, "channels": 1}, "problems": [{"M": 1, "K": 192, "N": 192}],
}  # fmt: skip
SPECS: dict[str, dict[str, Any]] = {
    "norm": NORM,
    "product": PRODUCT,
    "beside": PRODUCT | {"array": {"rows": 1, "columns": 3}},
}


def step(name: str, design: str, sizes: dict[str, int], **tensors: str) -> dict[str, Any]:
    return {"name": name, "design": design, "sizes": sizes, "tensors": tensors}


def layer(product: str, **changes: Any) -> CompositionForm:
    """Norm, product, norm, product, whose norms are on a column that the products leave alone, or do not."""
    sizes = {"M": 1, "K": 192}
    steps = [
        step("a", "norm", {"rows": 1}, X="x", W="w_a", Y="h", Scale="scale a"),
        step("b", product, sizes | {"N": 192}, A="h", W="w_b", C="y"),
        step("c", "norm", {"rows": 1}, X="y", W="w_c", Y="g", Scale="scale c"),
        step("d", product, sizes | {"N": 192}, A="g", W="w_d", C="z"),
    ]
    return CompositionForm.model_validate({"kind": "composition", "resident": True, "steps": steps} | changes)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    for name, content in SPECS.items():
        coded_plan(folder / name, plan(spec_from(content, name), device_named("strix_halo")))
    for name in ("product", "beside"):
        compose(layer(name), name, lambda one: BuiltDesign.load(folder / one)).write(folder / f"layer of {name}")
    return folder


def early(design: BuiltDesign, sizes: dict[str, int]) -> Iterator[tuple[int, list[StartedTask | Stored]]]:
    """What starts before all rounds so far have ended, with their number."""
    rounds, running = 0, 0
    for event in design.sequence(sizes).events:
        if isinstance(event, Start) and event.index >= 0:
            rounds, running = rounds + 1, running + 1
        elif isinstance(event, Start) and running:
            yield rounds, list(event.items)
        running -= isinstance(event, Await)


@pytest.mark.slow
def test_weights_flow_to_columns_that_the_norm_leaves_alone(built: Path):
    found = list(early(BuiltDesign.load(built / "layer of product"), {}))
    tasks = [(after, [one for one in items if isinstance(one, StartedTask)]) for after, items in found]
    assert [(after, one.direction, one.column) for after, some in tasks for one in some] == [
        (1, "MM2S", 0),
        (1, "MM2S", 1),
        (1, "MM2S", 2),  # the second norm's weights, behind those of the first, which runs
        (2, "MM2S", 0),  # and the second product's behind the first one's
        (2, "MM2S", 1),
    ]
    assert [after for after, items in found if any(isinstance(one, Stored) for one in items)] == [2]  # its parameters


@pytest.mark.slow
def test_what_shares_the_norms_column_waits(built: Path):
    """The third column's weights; and where a product's first round differs, nothing starts twice."""
    design = BuiltDesign.load(built / "layer of beside")
    tasks = [one for _, items in early(design, {}) for one in items if isinstance(one, StartedTask)]
    assert {one.column for one in tasks} == {0, 1}
    sent = [(one.column, bd.argument, bd.pattern.offset) for one in design.sequence({}).tasks() for bd in one.bds]
    assert len(sent) == len(set(sent))


@pytest.mark.daily("beside-{'dram': 'stale'}", "product-{'dram': 'stale'}")
@pytest.mark.parametrize("options", [{}, {"dram": "stale"}, {"schedule": "random", "seed": 5}], ids=str)
@pytest.mark.parametrize("name", ["product", "beside"])
def test_a_run_makes_the_bits_that_its_designs_make_one_by_one(built: Path, name: str, options: dict[str, Any]):
    design = BuiltDesign.load(built / f"layer of {name}")
    inputs = plan_of(design.manifest).random(plan_of(design.manifest).spec.operator.problem([]), 3)
    arrays = emulated(design, inputs, twice=True, **options)
    known = dict(inputs)
    for one in layer(name).steps:
        of = BuiltDesign.load(built / one.design)
        given = {o.name: known[one.tensors[o.name]] for o in of.program.operands if o.direction == "in"}
        known |= {one.tensors[key]: array for key, array in emulated(of, given).items()}
    same(arrays["z"], known["z"])


def emulated(design: BuiltDesign, inputs: dict[str, np.ndarray], twice: bool = False, **options: Any):
    """Outputs of a run, or of the second of two, on an array that boots from the design's image."""
    planned = design.sequence(sizes_of(design.program, inputs))
    buffers, words = arguments(planned, placed(planned, inputs)), planned.words()
    for _ in range(1 + twice):
        emulate("", buffers, instructions=words, image=design.booted, device=design.manifest.mlir_device, **options)
    return fetched(planned, buffers)


def test_caches_wait_for_the_rows_that_the_step_before_writes(tmp_path_factory: pytest.TempPathFactory):
    resident = BuiltDesign.load(cached_tokens.built(tmp_path_factory) / "resident")
    found = dict(early(resident, {"tokens": 1, "keys": 20}))
    assert not [one for items in found.values() for one in items if isinstance(one, StartedTask)]
