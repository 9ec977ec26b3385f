"""A composition of two steps over caches of keys and values: heads turned, and attention of new tokens over all."""

from pathlib import Path
from typing import Any

import ml_dtypes
import pytest

from bdforge.devices import device_named
from bdforge.operators import plan, spec_from
from bdforge.runtime import BuiltDesign
from bdforge.runtime.composition import CompositionForm, compose
from support.coded_folders import coded_plan
from support.once import made_in, shared_folder

BF16, DIM, HEADS = ml_dtypes.bfloat16, 64, 2
ROPE = {
    "kind": "rope", "heads": HEADS + 2, "head_dim": DIM, "apart": True,
    "outputs": [{"name": "Q", "heads": HEADS}, {"name": "K", "heads": 1}, {"name": "V", "heads": 1, "turned": False}],
    "array": {"rows": 1, "columns": 1, "first_column": 2, "first_row": 1, "from_end": True},
}  # fmt: skip
ATTENTION = {
    "kind": "attention", "heads": HEADS, "kv_heads": 1, "head_dim": DIM, "tile": {"queries": 16, "keys": 16},
    "array": {"rows": 1, "columns": 2},
}  # fmt: skip
PASSING = ROPE | {"array": ROPE["array"] | {"first_column": 0}}
"""Its streams pass a core of attention's."""
SPECS = {"rope": ROPE, "passing": PASSING, "attention": ATTENTION}
CACHED: dict[str, Any] = {
    "kind": "composition",
    "parameters": ["tokens", "keys"],
    "outputs": ["k", "v", "y"],
    "views": {name: {"of": f"{name}_cache", "first": "keys - tokens"} for name in "kv"},
    "buffers": {"keys": ["k_cache"], "values": ["v_cache"]},
    "steps": [
        {
            "design": "rope", "sizes": {"tokens": "tokens"},
            "tensors": {"X": "x", "T": "angles", "Q": "q", "K": "k", "V": "v"},
        },
        {
            "design": "attention", "sizes": {"queries": "tokens", "keys": "keys"},
            "tensors": {"Q": "q", "K": "k_cache", "V": "v_cache", "Y": "y"},
        },
    ],
    "problems": [{"name": "one more", "tokens": 1, "keys": 21}],
}  # fmt: skip
PASSED = [CACHED["steps"][0] | {"design": "passing"}, CACHED["steps"][1]]
"""Steps of CACHED, the first of which passes the second's core."""


def built(folders: pytest.TempPathFactory) -> Path:
    """The folder of the steps' designs and of compositions, made once for a run of the tests: `cached`, `resident`, and
    `passed`, which is resident, too.
    """
    return made_in(shared_folder(folders) / "cached tokens", _build)


def _build(folder: Path) -> None:
    for name, content in SPECS.items():
        coded_plan(folder / name, plan(spec_from(content, name), device_named("strix_halo")))
    composed(folder).write(folder / "cached")
    composed(folder, resident=True).write(folder / "resident")
    composed(folder, resident=True, steps=PASSED).write(folder / "passed")


def composed(folder: Path, **changes: Any):
    """CACHED of designs that `built` made."""
    form = CompositionForm.model_validate(CACHED | changes)
    return compose(form, "cached", lambda name: BuiltDesign.load(folder / name))
