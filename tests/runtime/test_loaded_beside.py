"""Compositions that take turns on one array: one runs where another one is loaded, and leaves that as it was."""

import json
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from made_up_pyxrt import Buffer, Kernel, Npu
from typer.testing import CliRunner

from bdforge.array.emulator import emulate
from bdforge.cli.commands import app
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.operators import plan_of
from bdforge.runtime import BuildError, BuiltDesign, load, run
from bdforge.runtime.composition import CompositionFault, CompositionForm, compose
from support.built_designs import ROOT
from support.differences import same
from support.tiny_layers import HEAD, TOKEN, TinyLayers

pytestmark = pytest.mark.slow

TINY, BF16 = TinyLayers(), ml_dtypes.bfloat16
SIZES = {TOKEN: (19,), HEAD: (1, 192)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both, which belong to a tiny model."""
    return TINY.composed_once(tmp_path_factory, HEAD).parent


def inputs_of(loaded: Any, name: str, seed: int) -> dict[str, np.ndarray]:
    planned = plan_of(loaded.design.manifest)
    return planned.random(planned.spec.operator.problem(SIZES[name]), seed)


def test_runs_in_turn_make_what_each_makes_alone(built: Path):
    """From the head's first run on a fresh array to a token's behind two heads, and back."""
    alone = {name: load(built / name) for name in (TOKEN, HEAD)}
    token = load(built / TOKEN)
    beside = {TOKEN: token, HEAD: load(built / HEAD, beside=[token])}
    assert beside[HEAD].design.name == HEAD
    for seed, name in enumerate((HEAD, TOKEN, HEAD, HEAD, TOKEN)):
        inputs = inputs_of(alone[name], name, seed)
        right, found = (one[name](**inputs) for one in (alone, beside))
        for output, array in right.items():
            same(found[output], array, f"{output} of run {seed}, {name}")


def test_a_list_holds_runs_of_both(built: Path):
    token = load(built / TOKEN)
    head = load(built / HEAD, beside=[token])
    states = {TOKEN: token.prepared(keys=19), HEAD: head.prepared(tokens=1, vocabulary=192)}
    packed = {}
    for name, one in ((TOKEN, token), (HEAD, head)):
        inputs = inputs_of(one, name, 3)
        held = [key for key in inputs if key not in states[name].arrays]
        packed[name] = one.pack(**{key: inputs[key] for key in held})
        for key in inputs.keys() - set(held):
            states[name].arrays[key][...] = inputs[key]
    before = {name: {key: array.copy() for key, array in state.arrays.items()} for name, state in states.items()}
    assert token.run_batch([(states[name], {"weights": packed[name]}) for name in (HEAD, TOKEN)]) == 1
    for name in (TOKEN, HEAD):
        one = load(built / name)
        state = one.prepared(**dict(states[name].sizes))
        for key, array in before[name].items():
            state.arrays[key][...] = array
        state(weights=packed[name])
        for key, array in state.arrays.items():
            same(states[name].arrays[key], array, f"{key} of {name}")


def on_a_made_up_npu(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of host and device are apart, and all runs are of one array."""
    array = BuiltDesign.load(built / TOKEN).resident()

    def called(self: Kernel, opcode: int, stream: Buffer, words: int, *buffers: Buffer) -> Any:
        array.run(np.frombuffer(stream.device, np.uint32), [np.frombuffer(one.device, np.uint8) for one in buffers])
        return SimpleNamespace(wait=lambda milliseconds: self.state)

    monkeypatch.setattr(Kernel, "__call__", called)


def test_an_npu_gives_back_what_each_design_writes(built: Path, pyxrt: Any, monkeypatch: pytest.MonkeyPatch):
    """In one context, whose outputs are other arguments of each; memory of the device is apart."""
    on_a_made_up_npu(built, monkeypatch)
    token = load(built / TOKEN, "xrt")
    beside = {TOKEN: token, HEAD: load(built / HEAD, "xrt", beside=[token])}
    assert len(Npu.registered) == 1
    for name in (TOKEN, HEAD, TOKEN):
        inputs = inputs_of(beside[name], name, 5)
        made, right = beside[name](**inputs), load(built / name)(**inputs)
        for output, values in right.items():
            same(made[output], values, f"{output} of {name}")


CARRIED = {"x": "y", "sums": "down_sums", "scales": "f_scales"}


@pytest.mark.parametrize("device", ["emulated", "xrt"])
def test_a_head_reads_what_a_layer_left_in_one_list(
    built: Path, pyxrt: Any, monkeypatch: pytest.MonkeyPatch, device: str
):
    """Without the host between them, as from array to array by it."""
    on_a_made_up_npu(built, monkeypatch)
    token = load(built / TOKEN, device)
    head = load(built / HEAD, device, beside=[token])
    inputs = {name: inputs_of(one, name, 7) for name, one in ((TOKEN, token), (HEAD, head))}
    given = {name: value for name, value in inputs[HEAD].items() if name not in CARRIED}
    layer, alone = load(built / TOKEN)(**inputs[TOKEN]), load(built / HEAD)
    right = alone(**given, **{name: layer[made] for name, made in CARRIED.items()})
    state = token.prepared(keys=19)
    end = head.beside(state, CARRIED, tokens=1, vocabulary=192)
    packed = {}
    for name, one, problem in ((TOKEN, token, state), (HEAD, head, end)):
        held = [key for key in inputs[name] if key not in problem.arrays]
        packed[name] = one.pack(**{key: inputs[name][key] for key in held})
    for key in inputs[TOKEN].keys() & state.arrays.keys():
        state.current(key, written=True)[...] = inputs[TOKEN][key]
    assert token.run_batch([(state, {"weights": packed[TOKEN]}), (end, {"weights": packed[HEAD]})]) == 1
    for output, array in right.items():
        same(end.current(output), array, output)
    for output, array in layer.items():
        same(state.current(output), array, output)
    assert [len(part) for part in pyxrt.lists] == ([2] if device == "xrt" else [])


@pytest.mark.parametrize("seed", range(2))
def test_a_head_is_within_its_bounds_in_any_order_of_the_array(built: Path, seed: int):
    """Where a token's layer is loaded, with stale memory."""
    design = BuiltDesign.load(built / HEAD)
    sequence, inputs = design.sequence({"tokens": 1, "vocabulary": 192}), inputs_of(load(built / HEAD), HEAD, seed)
    right = run(design, inputs)
    for name, expected in plan_of(design.manifest).expected(inputs, right.outputs | right.between).items():
        off = np.abs((right.outputs | right.between)[name].astype(np.float64) - expected.values.astype(np.float64))
        assert (off <= (0 if expected.bound is None else expected.bound)).all(), name
    buffers = arguments(sequence, placed(sequence, inputs))
    emulate(
        "", buffers, instructions=sequence.words(), image=design.booted, schedule="random", seed=seed,
        device=design.manifest.mlir_device, dram="stale",
    )  # fmt: skip
    for name, array in fetched(sequence, buffers).items():
        same(array, right.outputs[name], name)


def test_only_one_image_is_shared(built: Path):
    token, other = load(built / TOKEN), BuiltDesign.load(built / "token_norm")
    assert token.shares(BuiltDesign.load(built / HEAD))
    assert not token.shares(other)
    with pytest.raises(BuildError, match="device 'elsewhere' is unknown"):  # not on that one's array
        load(built / HEAD, "elsewhere", beside=[token])


def composed(built: Path, **changes: Any) -> None:
    form = CompositionForm.model_validate(TINY.form(HEAD) | changes)
    compose(form, HEAD, lambda name: BuiltDesign.load(built / name))


def test_what_is_loaded_is_a_composition_of_these_builds(built: Path, tmp_path: Path):
    with pytest.raises(CompositionFault, match="loaded = 'token_norm': is of kind rows, no composition"):
        composed(built, loaded="token_norm")
    copy = copytree(built / TOKEN, tmp_path / TOKEN)
    image, file = copy / f"{TOKEN}.xclbin", copy / "manifest.json"
    image.write_bytes(image.read_bytes()[:-1] + b"?")
    manifest = json.loads(file.read_text())
    manifest["files"]["xclbin"]["sha256"] = sha256(image.read_bytes()).hexdigest()
    file.write_text(json.dumps(manifest))
    form = CompositionForm.model_validate(TINY.form(HEAD))
    with pytest.raises(CompositionFault, match="its designs were built anew since; compose it again"):
        compose(form, HEAD, lambda name: BuiltDesign.load((tmp_path if name == TOKEN else built) / name))


def test_a_tool_that_fails_is_told_and_leaves_what_was_there(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("xclbinutil", "aiebu-asm"):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text("#!/bin/sh\necho no such section >&2\nexit 3\n")
        tool.chmod(0o755)
    monkeypatch.setenv("XILINX_XRT", str(tmp_path))
    home = copytree(built, tmp_path / "strix_halo")
    form = tmp_path / "one.toml"
    form.write_text(
        'kind = "composition"\n[[steps]]\ndesign = "token_norm"\nsizes = { rows = 1 }\n'
        'tensors = { X = "x", W = "w", Y = "y", Scale = "s" }\n[[problems]]\nname = "one"\n'
    )
    words = ["compose", str(form), "--built", str(tmp_path)]

    def fails() -> str:
        done = CliRunner().invoke(app, [*words, "--format", "elf"])
        assert isinstance(done.exception, BuildError), done.output
        return str(done.exception)

    said = fails()
    assert "xclbinutil failed with exit code 3" in said
    assert "no such section" in said
    assert str(home / "one" / "unfinished" / "one.elf.prj") in said  # where the command can be repeated
    assert [file.name for file in (home / "one").iterdir()] == ["unfinished"]
    assert CliRunner().invoke(app, words).exit_code == 0
    before = {file: file.read_bytes() for file in (home / "one").iterdir()}
    form.write_text(form.read_text().replace("rows = 1", "rows = 2"))
    fails()
    assert {file: file.read_bytes() for file in (home / "one").iterdir() if file.is_file()} == before
    right = load(home / "one")(x=np.ones((1, TINY.hidden), BF16), w=np.ones(TINY.hidden, BF16))
    assert right["y"].shape == (1, TINY.hidden)
    assert CliRunner().invoke(app, words).exit_code == 0
    assert {file.name for file in (home / "one").iterdir()} == {file.name for file in before}
    assert load(home / "one").design.manifest.document["steps"][0]["sizes"] == {"rows": 2}


def test_compose_says_what_to_compose_first(tmp_path: Path):
    file = ROOT / "examples" / "layer" / f"{HEAD}.toml"
    done = CliRunner().invoke(app, ["compose", str(file), "--built", str(tmp_path)])
    assert isinstance(done.exception, CompositionFault)
    assert f"runs where {TOKEN} is loaded; bdforge compose {file.parent / TOKEN}.toml first" in str(done.exception)
    assert not [*tmp_path.iterdir()]  # nothing was built before
