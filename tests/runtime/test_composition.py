"""Compositions: steps on slices of buffers compute what each design computes alone, whatever ran before."""

import copy
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from bdforge.array.emulator import DmaError, emulate
from bdforge.cli.commands import app
from bdforge.common.messages import InputError
from bdforge.design.sequences.buffers import arguments, fetched, placed, sizes_of
from bdforge.design.sequences.composed_tensors import UNCHANGED
from bdforge.devices.limits import PROGRAM_LINE_BYTES
from bdforge.devices.register_names import What, register_at
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Sync, Write
from bdforge.operators import SpecError, load_spec, plan_of
from bdforge.runtime import BuildError, BuiltDesign, load, run
from bdforge.runtime.composition import CompositionFault, CompositionForm, compose
from support.coded_folders import LAYER, SMALL, coded
from support.differences import same

TOKENS = 21


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the designs of SMALL, and their composition as `layer`."""
    folder = tmp_path_factory.mktemp("built") / "strix_halo"
    for name in SMALL:
        coded(folder, name)
    composed(folder).write(folder / "layer")
    composed(folder, LAYER | {"resident": True}).write(folder / "resident")
    return folder


def composed(folder: Path, content: dict[str, Any] = LAYER, name: str = "layer"):
    return compose(CompositionForm.model_validate(content), name, lambda design: BuiltDesign.load(folder / design))


def inputs_for(design: BuiltDesign, tokens: int, seed: int = 3) -> dict[str, np.ndarray]:
    problem = plan_of(design.manifest).spec.operator.problem([tokens])
    return plan_of(design.manifest).random(problem, seed)


def by_steps(folder: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the designs make one after the other, each in runs of its own."""
    found = dict(inputs)
    for step in LAYER["steps"]:
        design, tensors = BuiltDesign.load(folder / step["design"]), step["tensors"]
        given = {o.name: found[tensors[o.name]] for o in design.program.operands if o.direction == "in"}
        found |= {tensors[name]: array for name, array in alone(design, given).items()}
    return found


def alone(design: BuiltDesign, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs of a run on an array that boots from the design's image, and gets no text."""
    planned = design.sequence(sizes_of(design.program, inputs))
    buffers = arguments(planned, placed(planned, inputs))
    emulate("", buffers, instructions=planned.words(), image=design.booted, device=design.manifest.mlir_device)
    return fetched(planned, buffers)


@pytest.mark.daily("64")
@pytest.mark.parametrize("tokens", [3, 64])
def test_a_run_makes_the_bits_that_its_designs_make_one_by_one(built: Path, tokens: int):
    design = BuiltDesign.load(built / "layer")
    inputs = inputs_for(design, tokens)
    made, one_by_one = run(design, inputs), by_steps(built, inputs)
    arrays = made.outputs | made.between
    assert set(made.outputs) == {"sum", "codes", "scales", "first scales", "y"}  # and what nobody reads
    for name, array in arrays.items():
        same(array, one_by_one[name], name)
    assert not made.warnings


@pytest.mark.daily("layer")
@pytest.mark.parametrize("name", ["layer", "resident"])
def test_a_run_leaves_the_array_as_it_was_loaded(built: Path, name: str):
    """So one configuration is loaded once, for any number of runs of any sizes."""
    layer, design = load(built / name), BuiltDesign.load(built / "layer")
    for tokens in (2, 40, 17, 2):
        inputs = inputs_for(design, tokens, tokens)
        found = layer(**inputs)
        for name, array in run(design, inputs).outputs.items():
            same(found[name], array, name)


def test_each_step_is_judged_by_what_it_got(built: Path):
    design = BuiltDesign.load(built / "layer")
    inputs = inputs_for(design, TOKENS)
    made = run(design, inputs)
    plan, arrays = plan_of(design.manifest), made.outputs | made.between
    right = plan.expected(inputs, arrays)
    assert right.keys() == arrays.keys()
    for name, expected in right.items():
        off = np.abs(arrays[name].astype(np.float64) - expected.values.astype(np.float64))
        assert (off <= (0 if expected.bound is None else expected.bound)).all(), name
    arrays["first codes"] = arrays["first codes"] ^ 1
    wrong = plan.expected(inputs, arrays)
    assert not np.array_equal(wrong["y"].values, right["y"].values)


def test_designs_at_both_ends_take_little_room_of_each_other(built: Path):
    """What the end has is written ahead, programs too where that is asked for; only the jump at address 0 is not."""

    def late(content: dict[str, Any], what: What) -> list[Write | BlockWrite]:
        made = composed(built, content)
        number = made.changes.numbers[1].then  # from the norm, at the end, to the product
        assert number is not None
        writes = (op for op in made.changes.operations[number] if isinstance(op, Write | BlockWrite))
        return [op for op in writes if register_at(op.address).what is what]

    assert not late(LAYER, What.LOCK)
    assert not late(LAYER, What.BD)
    (start,) = late(LAYER | {"programs_ahead": True}, What.PROGRAM)
    assert isinstance(start, BlockWrite)
    assert len(start.words) * 4 <= 2 * PROGRAM_LINE_BYTES


def test_a_core_that_a_step_does_not_use_is_made_ready_meanwhile(built: Path):
    """Stopped, programmed and let go while the norm runs beside it, with its switch and channels: its start waits."""
    made = composed(built)

    def written(number: int | None) -> set[What]:
        """In row 3."""
        operations = [] if number is None else made.changes.operations[number]
        registers = [register_at(op.address) for op in operations if isinstance(op, Write | BlockWrite | MaskWrite)]
        return {register.what for register in registers if register.row == 3}

    product, residual = made.changes.numbers[1], made.changes.numbers[3]
    assert written(product.ahead) == {What.CORE, What.CONTROL, What.LOCK}
    assert written(product.then) == {What.CORE}
    assert not written(residual.ahead) | written(residual.then)  # it waits


def test_a_run_whose_programs_are_written_ahead(built: Path, tmp_path: Path):
    """It makes the same bits, with a warning: by default the array refuses."""
    made = composed(built, LAYER | {"programs_ahead": True})
    made.write(tmp_path / "ahead")
    design = BuiltDesign.load(tmp_path / "ahead")
    inputs = inputs_for(design, 3)
    found = run(design, inputs)
    assert list(found.warnings) == ["program-writes (permitted): programs are written while cores run"]
    for name, array in run(BuiltDesign.load(built / "layer"), inputs).outputs.items():
        same(found.outputs[name], array, name)


def test_roles_change_nothing_of_a_design(built: Path):
    """Whoever runs models reads them: a manifest's hash is that of what is loaded."""
    made = [composed(built, LAYER | roles)._manifest({}) for roles in ({}, {"roles": {"x": "states"}})]
    assert made[0]["spec_hash"] == made[1]["spec_hash"]
    assert made[1]["document"]["roles"] == {"x": "states"}


def test_a_design_that_runs_twice_in_a_row_changes_nothing(built: Path):
    made = composed(built)
    assert [change == UNCHANGED for change in made.changes.numbers] == [True, False, True, False, False]
    assert made.program.configurations == len(made.changes.operations) >= 3


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    content = copy.deepcopy(LAYER)
    change(content)
    return content


def on_step(place: int, member: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["steps"][place][member].update(values)


REFUSED: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (on_step(1, "tensors", A="x"), "step a: A is x of step first norm, of type bf16; it takes int8"),
    (on_step(1, "sizes", K=128), "step a: A is first codes of step first norm: their sizes differ"),
    (on_step(1, "tensors", C="x"), "step a: makes x, which step first norm has already"),
    (on_step(1, "tensors", Q="q"), "step a: has no operand Q; there is A, B, C"),
    (on_step(1, "sizes", M="rows"), "step a: M = 'rows': rows is no number here; there is tokens"),
    (on_step(1, "sizes", J=3), "step a: its sizes are M, K, N; check J"),
    (lambda content: content["steps"][1]["tensors"].pop("B"), "step a: says no tensor for B"),
    (lambda content: content["buffers"].update(more=["q"]), "no step has q, which a buffer names"),
    (lambda content: content["outputs"].append("x"), "no step makes the output x"),
    (lambda content: content["buffers"].update(a=["w2"], b=[], c=[]), "NPUs translate the addresses of 5"),
    (lambda content: content["buffers"].update(a=["codes"]), "step second norm: codes in a, scales in workspace"),
    (lambda content: content["problems"].append({"rows": 3}), "problems: {'name': '', 'rows': 3} should give tokens"),
    (on_step(1, "sizes", N=1 << 40), "step a: N = 1099511627776 is outside"),
    (on_step(1, "sizes", N=(1 << 63) - 1), "layer: "),
    (lambda content: content["steps"][2].update(name="a"), "several steps are called a; give each a name of its own"),
    (lambda content: content["buffers"]["weights"].append("x"), "x: a tensor lies in one place, these have several"),
    (lambda content: content["parameters"].append("more"), "no tensor's shape tells more"),
    (lambda content: content["problems"].append({"tokens": 1 << 50}), "each from 1 to 1099511627776"),
    (lambda content: content.update(roles={"x": "a", "z": "b"}), "roles: z: no such input or output; they are x, w, "),
]


@pytest.mark.daily(every=3)
@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_steps_that_do_not_fit_are_refused(built: Path, change: Callable[[dict[str, Any]], Any], message: str):
    with pytest.raises(CompositionFault) as caught:
        composed(built, changed(change))
    assert message in str(caught.value)


FORMS = [
    (lambda content: content["steps"][0].update(design="all"), "names no design"),
    (lambda content: content["steps"][0].update(design="../norm"), "should match pattern"),
    (lambda content: content["steps"][0].update(name="a {}"), "should match pattern"),
    (lambda content: content["steps"][0]["sizes"].update(rows=True), "valid integer"),
    (lambda content: content["parameters"].append("1a"), "should match pattern"),
    (lambda content: content.update(steps=[]), "at least 1 item"),
]


@pytest.mark.parametrize(("change", "message"), FORMS)
def test_files_of_another_form_are_refused(change: Callable[[dict[str, Any]], Any], message: str):
    with pytest.raises(ValidationError, match=message):
        CompositionForm.model_validate(changed(change))


def test_operands_that_share_a_buffer_are_taken_from_no_other_step(built: Path):
    """Codes and scales of the second norm lie in one buffer of its design: none of them can be made elsewhere."""
    content = changed(on_step(3, "tensors", Y="first codes"))
    with pytest.raises(CompositionFault, match="first codes and scales lie together in one buffer of this design"):
        composed(built, content)


def test_sizes_that_no_step_takes_are_refused_when_they_come(built: Path):
    design = BuiltDesign.load(built / "layer")
    with pytest.raises(Exception, match="step first norm: rows = 2147483648 is outside"):
        design.sequence({"tokens": 1 << 31})


@pytest.mark.slow
def test_designs_of_fewer_columns_follow_one_of_more(built: Path, tmp_path: Path):
    """The image that is loaded has all columns, whichever comes first."""
    coded(tmp_path, "norm")
    coded(tmp_path, "product")
    coded(tmp_path, "residual", array={"rows": 1, "columns": 2, "first_column": 1})
    composed(tmp_path).write(tmp_path / "layer")
    wide, narrow = BuiltDesign.load(tmp_path / "layer"), BuiltDesign.load(built / "layer")
    assert (wide.array.columns, narrow.array.columns) == (3, 1)
    inputs = inputs_for(wide, TOKENS)
    for name, array in run(wide, inputs).outputs.items():
        same(array, run(narrow, inputs).outputs[name], name)


def test_designs_without_machine_code_or_for_another_product_are_refused(built: Path, tmp_path: Path):
    coded(tmp_path, "norm", device="strix")
    coded(tmp_path, "product")
    coded(tmp_path, "residual")
    with pytest.raises(CompositionFault, match="a composition runs on one product"):
        composed(tmp_path)
    manifest = built / "norm" / "manifest.json"
    text = manifest.read_text()
    try:
        manifest.write_text(text.replace('"host_cores": []', '"host_cores": [[0, 2]]'))
        with pytest.raises(CompositionFault, match="norm: has no image with machine code in every core"):
            composed(built)
    finally:
        manifest.write_text(text)


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-4], lambda data: data[4:], lambda data: b"", lambda data: data * 2]
)
def test_a_file_of_changes_that_is_not_whole_is_refused(built: Path, tmp_path: Path, spoil: Callable[[bytes], bytes]):
    composed(built).write(tmp_path / "layer")
    file = tmp_path / "layer" / "configurations.bin"
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(BuildError, match="come from different builds"):
        BuiltDesign.load(tmp_path / "layer").sequence({"tokens": 3})
    manifest = tmp_path / "layer" / "manifest.json"
    manifest.write_text(_without_hash(manifest.read_text()))
    with pytest.raises(BuildError, match=r"no stream starts here|holds \d+ changes|header"):
        BuiltDesign.load(tmp_path / "layer").sequence({"tokens": 3})


def _without_hash(text: str) -> str:
    start = text.index('"sha256": "', text.index("configurations.bin")) + len('"sha256": "')
    return text[:start] + text[start + 64 :]


STACK = {
    "kind": "composition", "parameters": ["tokens"], "outputs": ["next"], "in_place": {"next": "x"},
    "steps": [
        {"design": "norm", "sizes": {"rows": "tokens"}, "tensors": {"X": "x", "W": "w", "Y": "c", "Scale": "s"}},
        {"design": "product", "sizes": {"M": "tokens", "K": 64, "N": 64}, "tensors": {"A": "c", "B": "b", "C": "next"}},
    ],
    "buffers": {"state": ["x"], "weights": ["w", "b"]},
}  # fmt: skip
"""A layer that leaves its result where it got its input."""


def test_layers_follow_each_other_in_one_memory_by_their_weights(built: Path, tmp_path: Path):
    """One configuration, one stream, one buffer of state: only the weights differ from layer to layer."""
    composed(built, STACK, "stack").write(tmp_path / "stack")
    layer, tokens, layers = load(tmp_path / "stack"), 5, 3
    weights = [inputs_for(layer.design, tokens, seed) for seed in range(layers)]
    packed = [layer.pack(w=one["w"], b=one["b"]) for one in weights]
    state = layer.prepared(tokens=tokens)
    state.arrays["x"][...] = found = weights[0]["x"]
    for one in packed:
        state(weights=one)
    for one in weights:
        codes = alone(BuiltDesign.load(built / "norm"), {"X": found, "W": one["w"]})["Y"]
        found = alone(BuiltDesign.load(built / "product"), {"A": codes, "B": one["b"]})["C"]
    same(state.arrays["next"], found)
    same(state.arrays["x"], found)


SUMS = {
    "kind": "composition", "parameters": ["tokens"], "outputs": ["next", "z"], "in_place": {"next": "x", "z": "r"},
    "steps": [
        {"design": "residual", "name": "first", "sizes": {"rows": "tokens"},
         "tensors": {"X": "x", "R": "r", "W": "w", "Sum": "x1", "Y": "c", "Scale": "s"}},
        {"design": "residual", "name": "second", "sizes": {"rows": "tokens"},
         "tensors": {"X": "x1", "R": "x1", "W": "w", "Sum": "next", "Y": "c2", "Scale": "s2"}},
        {"design": "product", "sizes": {"M": "tokens", "K": 64, "N": 64}, "tensors": {"A": "c2", "B": "b", "C": "z"}},
    ],
    "buffers": {"state": ["x", "r"], "weights": ["w", "b"]},
}  # fmt: skip
"""A layer whose second result lies together with codes: its input lies there, too."""


@pytest.mark.daily("1")
@pytest.mark.parametrize("tokens", [1, 5, 40])
def test_what_lies_with_others_takes_an_inputs_place(built: Path, tmp_path: Path, tokens: int):
    composed(built, SUMS, "sums").write(tmp_path / "sums")
    layer = load(tmp_path / "sums")
    given = inputs_for(layer.design, tokens)
    state = layer.prepared(tokens=tokens)
    packed = layer.pack(w=given["w"], b=given["b"])
    for name in ("x", "r"):
        state.arrays[name][...] = given[name]
    x, r = given["x"], given["r"]
    for _ in range(2):
        state(weights=packed)
        first = alone(BuiltDesign.load(built / "residual"), {"X": x, "R": r, "W": given["w"]})
        x1 = first["Sum"]
        second = alone(BuiltDesign.load(built / "residual"), {"X": x1, "R": x1, "W": given["w"]})
        x, r = second["Sum"], alone(BuiltDesign.load(built / "product"), {"A": second["Y"], "B": given["b"]})["C"]
        same(state.arrays["next"], x)
        same(state.arrays["x"], x)
        same(state.arrays["z"], r)


IN_PLACE: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda content: content["in_place"].update(next="c"), "C is next, which is to lie in place of c, which the step"),
    (lambda content: content["in_place"].update(next="s"), "C is next, which is to lie in place of s, of type f32"),
    (lambda content: content["in_place"].update(next="q"), "but no step before has that"),
    (lambda content: content["in_place"].update(c="s"), "Y is c, which is to lie in place of s, but no step before"),
    (lambda content: content["in_place"].update(z="x"), "no step has z, which is to lie in place"),
    (
        lambda content: content["steps"].append(content["steps"][0] | {"name": "late"}),
        "reads x, whose place step product took before",
    ),
    (lambda content: content["outputs"].append("x"), "the output x is lost: step product makes another tensor"),
    (lambda content: content["buffers"].update(more=["next"]), "next: a tensor lies in one place, these have several"),
]


@pytest.mark.parametrize(("change", "message"), IN_PLACE)
def test_places_that_somebody_needs_are_not_given_away(
    built: Path, change: Callable[[dict[str, Any]], Any], message: str
):
    content = copy.deepcopy(STACK)
    change(content)
    with pytest.raises(CompositionFault) as caught:
        composed(built, content)
    assert message in str(caught.value)


def test_a_wait_that_is_missing_is_found(built: Path):
    """Without the waits between steps a product reads codes that are not written yet: the array says so."""
    design = BuiltDesign.load(built / "layer")
    inputs = inputs_for(design, TOKENS)
    planned = design.sequence({"tokens": TOKENS})
    buffers = arguments(planned, placed(planned, inputs))
    hasty = [op for op in planned.operations() if not isinstance(op, Sync)]
    with pytest.raises(DmaError, match=r"nobody has awaited that task.s token"):
        emulate(design.mlir, buffers, instructions=encode(hasty, design.array), image=design.booted)


@pytest.mark.parametrize("seed", range(2))
def test_any_order_of_the_array_and_stale_memory_make_the_same_bits(built: Path, seed: int):
    design = BuiltDesign.load(built / "layer")
    inputs = inputs_for(design, TOKENS)
    planned = design.sequence({"tokens": TOKENS})
    buffers, words = arguments(planned, placed(planned, inputs)), planned.words()
    emulate(design.mlir, buffers, instructions=words, image=design.booted, schedule="random", seed=seed, dram="stale")
    right = run(design, inputs).outputs
    for name, array in fetched(planned, buffers).items():
        same(array, right[name], name)


invoke = partial(CliRunner().invoke, app)
FILE = """
kind = "composition"
parameters = ["tokens"]

[[steps]]
design = "norm"
sizes = { rows = "tokens" }
tensors = { X = "x", W = "w", Y = "codes", Scale = "scales" }

[[problems]]
tokens = 5
"""


def test_the_command_builds_what_bdforge_run_runs(built: Path, tmp_path: Path):
    file = tmp_path / "alone.toml"
    file.write_text(FILE)
    done = invoke(["compose", str(file), "--built", str(built.parent), "--out", str(tmp_path / "made")])
    assert done.exit_code == 0, done.output
    done = invoke(["run", str(tmp_path / "made")])
    assert done.exit_code == 0, done.output
    assert "within its bound" in done.output


def test_commands_take_the_folder_of_a_built_design(built: Path, tmp_path: Path):
    folder, (problem, *_) = str(built / "norm"), BuiltDesign.load(built / "norm").manifest.problems
    rendered = invoke(["render", folder]).output
    assert rendered.startswith(BuiltDesign.load(folder).mlir.removesuffix("  }\n}\n"))  # these have no sequences
    assert rendered.count("aie.runtime_sequence") == len(BuiltDesign.load(folder).manifest.problems)
    spec = tmp_path / "norm.toml"
    spec.write_text(invoke(["plan", folder]).output)
    spec.write_text(invoke(["plan", str(spec)]).output)  # without what never runs
    assert invoke(["plan", str(spec)]).output == spec.read_text()
    shape = "x".join(map(str, problem.sizes.values()))
    assert invoke(["plan", folder, "--shape", shape]).output == invoke(["plan", str(spec), "--shape", shape]).output
    assert invoke(["verify", folder]).exit_code == 0
    assert "leave --device phoenix out" in " ".join(invoke(["show", folder, "--device", "phoenix"]).output.split())
    layer = built / "layer"
    assert f"take one of theirs, or its image, {layer / 'layer.xclbin'}" in str(invoke(["show", str(layer)]).exception)


def test_a_composition_is_no_design(tmp_path: Path):
    (tmp_path / "alone.toml").write_text(FILE)
    with pytest.raises(SpecError, match="is a composition of designs, no design; bdforge compose builds it"):
        load_spec(tmp_path / "alone.toml")


def test_what_another_version_composed_is_composed_anew(built: Path, tmp_path: Path):
    file, made = tmp_path / "alone.toml", tmp_path / "made" / "manifest.json"
    file.write_text(FILE)
    command = ["compose", str(file), "--built", str(built.parent), "--out", str(made.parent)]
    assert invoke(command).exit_code == 0
    whole = json.loads(made.read_text())
    made.write_text(json.dumps(whole | {"sequence": "of another form"}))
    assert isinstance(invoke(["run", str(made.parent)]).exception, InputError)
    assert invoke(command).exit_code == 0
    assert json.loads(made.read_text()) == whole


def test_a_folder_that_holds_something_else_is_left_alone(built: Path, tmp_path: Path):
    file = tmp_path / "norm.toml"
    file.write_text(FILE)
    before = (built / "norm" / "manifest.json").read_text()
    done = invoke(["compose", str(file), "--built", str(built.parent)])
    assert "holds norm (rows), not the composition norm; choose another with --out" in str(done.exception)
    assert (built / "norm" / "manifest.json").read_text() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            FILE.replace('design = "norm"', 'design = "nothing"'),
            "nothing cannot be built: scons: unknown design 'nothing'",
            marks=pytest.mark.slow,
        ),
        (FILE.replace('design = "norm"', 'design = "rmsnorm_codes_bf16"').replace("Y =", "Z ="), "has no operand Z"),
        (FILE.replace("sizes", "size"), "steps.0.size: unexpected key"),
        ("kind = 1", "steps: missing; add it"),
    ],
)
def test_the_command_says_what_is_wrong(built: Path, tmp_path: Path, text: str, message: str):
    file = tmp_path / "alone.toml"
    file.write_text(text)
    done = invoke(["compose", str(file), "--built", str(built.parent)])
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
    assert not (built / "alone").exists()
