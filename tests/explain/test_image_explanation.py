"""What is told of images is what the designs have that they come from."""

import json
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from bdforge.array.explain.explanation_tables import explanation_parts
from bdforge.array.explain.image_explanation import Explanation, as_values, explain
from bdforge.array.explain.image_picture import image_use
from bdforge.array.images.image_build import image, program_of
from bdforge.array.lower import configuration
from bdforge.array.mlir import parse
from bdforge.array.mlir.allocate import allocate, buffer_bytes
from bdforge.array.mlir.array_ops import FlowOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.dma_ops import DmaProgramOp
from bdforge.array.mlir.memory_ops import BufferOp
from bdforge.array.show.array_use import use_of
from bdforge.array.show.image import ShowError, save
from bdforge.array.txn.insts import encode_module
from bdforge.common.screen import as_text
from bdforge.devices import device_named
from bdforge.operators import plan, render, spec_from
from bdforge.operators.gemm import GemmPlan
from bdforge.perf.assembled.counted_core import core_costs
from bdforge.runtime.toolchain.assembled import built_image
from support.built_designs import ROOT, spec_content


@dataclass(frozen=True)
class Told:
    """A product on one core: its plan, its text, and what is told of its image."""

    plan: GemmPlan
    device: DeviceOp
    image: bytes
    words: bytes
    found: Explanation


@pytest.fixture(scope="module")
def product() -> Told:
    content = spec_content(16, 64, 32, rows=1, columns=1) | {"problems": [{"M": 5, "K": 64, "N": 64}]}
    planned = plan(spec_from(content, "product"), device_named("strix_halo"))
    assert isinstance(planned, GemmPlan)
    text = render(planned, [])
    xclbin = built_image(text, "product.mlir", planned.kernels.defines, []).xclbin
    words = planned.sequence(planned.problems[0]).words().astype("<u4").tobytes()
    device = next(op for op in parse(text).walk() if isinstance(op, DeviceOp))
    return Told(planned, device, xclbin, words, explain(xclbin, words))


def test_buffers_are_those_that_bds_of_the_text_move(product):
    places, moved = allocate(product.device).buffers, set()
    for program in (op for op in product.device.walk() if isinstance(op, DmaProgramOp)):
        for bd in program.bds:
            buffer = bd.buffer_op
            assert isinstance(buffer, BufferOp)
            moved.add((program.tile.place, places[buffer], buffer_bytes(buffer)))
    (found,) = product.found.configurations
    told = {
        (place, buffer.address, buffer.size_bytes)
        for place, rings in found.rings.items() for ring in rings for buffer in ring.buffers
    }  # fmt: skip
    assert told == moved
    assert {ring.depth for ring in found.rings[0, 2]} <= {1, 2}
    assert all(ring.endless and ring.acquires and ring.releases for ring in found.rings[0, 2])


def test_routes_are_the_flows_of_the_text_and_the_way_of_tokens(product):
    def port(end) -> str:
        return f"{end.tile.kind} {'({}, {})'.format(*end.tile.place)} {end.bundle} {end.channel}"

    flows = Counter((port(op.source), port(op.destination)) for op in product.device.walk() if isinstance(op, FlowOp))
    (found,) = product.found.configurations
    told = Counter({(route.source, *route.sinks): route.streams for route in found.routes if route.kind == "circuit"})
    assert told == flows
    (tokens,) = (route for route in found.routes if route.packets)
    assert (tokens.source, tokens.kind) == ("shim (0, 0) TileControl 0", "packets 15")


def test_a_picture_has_the_tiles_buffers_and_routes_of_the_text(product):
    drawn, text = image_use(product.found), use_of(product.device)
    assert drawn.tiles.keys() == text.tiles.keys()
    ways = [
        {(net.source, net.packet_id, *sorted(net.ends)) for net in use.routing.nets if net.packet_id is None}
        for use in (drawn, text)
    ]  # fmt: skip
    assert ways[0] == ways[1]
    moved = {buffer.address for ring in product.found.configurations[0].rings[0, 2] for buffer in ring.buffers}
    memories = [use.tiles[0, 2].memory for use in (drawn, text)]
    spans = [{span.start: span.end for span in memory.spans} for memory in memories if memory]
    assert {start: spans[0][start] for start in moved} == {start: spans[1][start] for start in moved}


def test_a_picture_is_of_one_configuration_of_a_known_array(product, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    save(image_use(product.found), tmp_path / "p.svg", "product")
    assert "core (0, 2)" in (tmp_path / "p.svg").read_text()
    with pytest.raises(ShowError, match="the image tells no array"):
        image_use(replace(product.found, device=None))
    with pytest.raises(ShowError, match="the image has 2 configurations"):
        image_use(replace(product.found, configurations=product.found.configurations * 2))


def test_functions_cost_what_the_core_model_counts(product):
    costs = core_costs(product.plan)
    (program,) = product.found.configurations[0].programs
    assert (program.found.tiles, program.generation, program.code_bytes) == ([(0, 2)], "aie2p", costs.code_bytes)
    functions = program.work.functions()
    issued = sorted(function.work.bundles for function in functions if function.work)
    kernels = {**costs.step.issue, **costs.ends.issue}
    assert issued == sorted(int(cycles) for name, cycles in kernels.items() if name != "main")
    (multiply,) = (function.work for function in functions if function.work and function.work.macs)
    assert multiply.macs == 16 * 64 * 32
    assert not program.work.open_forms()
    assert not program.unknown


def test_arguments_steps_and_the_end_of_a_run_are_told(product):
    problem = product.plan.problems[0]
    sizes = [use.end for use in product.found.arguments]
    assert len(sizes) == 3
    assert [use.written_bytes > 0 for use in product.found.arguments] == [False, False, True]
    assert sizes[1] >= problem.K * problem.N // 4
    assert sum(step.count for step in product.found.steps) >= 1
    assert any("shim S2MM" in what for step in product.found.steps for what, _ in step.awaits)
    run = product.found.run
    assert run is not None
    assert (run.verdict, run.reason, run.warnings) == ("ends", "", ())
    assert run.cores.macs >= problem.M * problem.K * problem.N
    assert run.cycles > run.cores.least_bundles


def test_values_are_those_of_the_tables(product):
    values = json.loads(json.dumps(as_values(product.found)))
    (configuration,) = values["configurations"]
    (program,) = configuration["programs"]
    assert (values["kind"], values["device"], program["cores"]) == ("xclbin", "npu2_1col", [[0, 2]])
    assert values["run"]["verdict"] == "ends"
    text = as_text(explanation_parts(product.found, "product.xclbin"), 80)
    assert max(map(len, text.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for function in program["functions"]:
        if function["call"]:
            start = f"{function['name']} {function['code_bytes']} {function['call']['bundles']}"
            assert any(line.startswith(start) for line in lines), start


def test_without_words_or_budget_the_missing_is_said(product):
    alone = explain(product.image)
    assert (alone.run, alone.arguments, alone.steps) == (None, (), ())
    assert "give them with --insts" in alone.missing
    assert explain(product.image, product.words, 0).missing == "a run is left out by --budget 0"
    short = explain(product.image, product.words, 100).run
    assert short is not None
    assert (short.verdict, "--budget lets it take more" in short.reason) == ("unknown", True)


def test_a_run_that_hangs_is_told_with_its_chain():
    text = (ROOT / "examples" / "deadlock" / "deadlock.mlir").read_text()
    module = parse(text, "deadlock.mlir")
    device = next(op for op in module.walk() if isinstance(op, DeviceOp))
    xclbin = image(configuration(device, program_of), ".xclbin", bare=True)
    run = explain(xclbin, encode_module(module).astype("<u4").tobytes()).run
    assert run is not None
    assert run.verdict == "hangs"
    assert "nothing can move" in run.reason
    assert "which nobody releases" in run.reason
