"""Layers as steps of one command: one token of a model of four, with the bits of four commands."""

from pathlib import Path
from typing import Any

import pytest

from bdforge.operators import plan_of
from bdforge.runtime import BuiltDesign, run
from bdforge.runtime.composition import CompositionForm, compose
from support.differences import same
from support.tiny_layers import TOKEN, TinyLayers

LAYERS, KEYS = 4, 21
CHAIN = {"x": "y", "sums": "down_sums", "scales": "f_scales"}
"""What a layer takes, by what the one before it makes."""
pytestmark = pytest.mark.slow


def stacked(form: dict[str, Any]) -> dict[str, Any]:
    """A composition of all layers: each has tensors of its own, but for what it gets of the one before, and angles."""

    def own(layer: int, name: str) -> str:
        if layer and name in CHAIN:
            return own(layer - 1, CHAIN[name])
        return name if name == "angles" else f"{name} {layer}"

    def step(layer: int, content: dict[str, Any]) -> dict[str, Any]:
        tensors = {operand: own(layer, tensor) for operand, tensor in content["tensors"].items()}
        return content | {"name": f"{content['name']} {layer}", "tensors": tensors}

    every = range(LAYERS)
    made = [own(i, name) for i in every for name in ("k", "v")] + [own(LAYERS - 1, name) for name in CHAIN.values()]
    return {
        "kind": "composition", "parameters": ["keys"], "resident": True, "outputs": made,
        "steps": [step(i, content) for i in every for content in form["steps"]],
        "views": {
            own(i, name): view | {"of": own(i, view["of"])} for i in every for name, view in form["views"].items()
        },
        "buffers": {
            buffer: list(dict.fromkeys(own(i, name) for i in every for name in names if name not in CHAIN or not i))
            for buffer, names in form["buffers"].items()
        },
        "problems": [{"name": "one of 21", "keys": KEYS}],
    }  # fmt: skip


def test_one_token_of_four_layers_in_one_command(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory):
    tiny = TinyLayers()
    one = BuiltDesign.load(tiny.composed_once(tmp_path_factory, TOKEN))
    form = CompositionForm.model_validate(stacked(tiny.form(TOKEN)))
    compose(form, "four", lambda name: BuiltDesign.load(one.folder.parent / name)).write(tmp_path / "four")
    four = BuiltDesign.load(tmp_path / "four")
    inputs = plan_of(four.manifest).random(plan_of(four.manifest).problems[0], 6)
    made = run(four, inputs).outputs
    state = {name: inputs[f"{name} 0"] for name in CHAIN}
    for layer in range(LAYERS):
        own = (operand.name for operand in one.program.operands if operand.direction == "in")
        given = {name: state.get(name, inputs.get(f"{name} {layer}", inputs["angles"])) for name in own}
        found = run(one, given).outputs
        for name in ("k", "v"):
            same(made[f"{name} {layer}"], found[name], f"{name} {layer}")
        state = {name: found[after] for name, after in CHAIN.items()}
    for name, after in CHAIN.items():
        same(made[f"{after} {LAYERS - 1}"], state[name], after)
