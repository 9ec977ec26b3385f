"""Switches as the real tools set them: their text gives the flows that it was made from, and the words they wrote.

`data/switches.json` holds, for each design, the flows, mlir-aie's physical form (its router's choice, not ours) and
the switch registers of the array configuration that mlir-aie 5ff2ab97 made of it.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from route_checks import check_routes

import bdforge
from bdforge.array.mlir import parse, print_generic, print_module
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.switch_ops import ShimMuxOp, SwitchboxOp
from bdforge.array.routing import Routing, route
from bdforge.array.routing.nets import SwitchPort
from bdforge.array.routing.physical import switches_of
from bdforge.devices import PortBundle, TileKind, switch_of
from support.differences import same
from support.physical_form import physical_form

VECTORS = {v["name"]: v for v in json.loads((Path(__file__).parent / "data" / "switches.json").read_text())}


def device_in(text: str) -> DeviceOp:
    return next(op for op in parse(text).walk() if isinstance(op, DeviceOp))


def streams(routing: Routing) -> set:
    return {(net.source, net.packet_id, frozenset(net.sinks)) for net in routing.nets}


def shim_columns(device: DeviceOp) -> set[int]:
    """Where aiecc adds routes of completion tokens: at declared shims."""
    return {op.column for op in device.walk() if isinstance(op, TileOp) and op.kind is TileKind.SHIM}


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("name", VECTORS)
def test_the_physical_form_reads_back(name):
    module = parse(VECTORS[name]["physical"])
    assert parse(print_module(module)).is_structurally_equivalent(module)
    assert parse(print_generic(module)).is_structurally_equivalent(module)


@pytest.mark.parametrize("name", VECTORS)
def test_switches_of_the_real_router_lead_exactly_the_flows(name):
    source, physical = (device_in(VECTORS[name][form]) for form in ("mlir", "physical"))
    wanted, found = streams(route(source)), streams(route(physical))
    assert wanted <= found
    tokens = {(str(start), packet_id, *map(str, sinks)) for start, packet_id, sinks in found - wanted}
    expected = {(f"({c}, 0) TileControl : 0", 15, f"({c}, 0) South : 0") for c in shim_columns(source)}
    assert tokens <= expected
    assert bool(tokens) == (name != "npu1_broadcast")  # whose tool was told to leave them out
    check_routes(source, route(physical))


@pytest.mark.parametrize("name", VECTORS)
def test_settings_of_switches_are_the_words_that_the_real_tools_write(name):
    assert words(device_in(VECTORS[name]["physical"])) == [tuple(op) for op in VECTORS[name]["operations"]]


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("name", VECTORS)
def test_our_routes_written_as_switches_lead_exactly_the_flows(name):
    source = device_in(VECTORS[name]["mlir"])
    text = physical_form(VECTORS[name]["mlir"])
    physical = device_in(text)
    check_routes(source, route(physical))
    assert streams(route(physical)) >= streams(route(source))
    assert "aie.flow" not in text
    assert physical_form(text) == text


def words(device: DeviceOp) -> list[tuple]:
    """Register writes of the settings, by the rules of aie-rt's headers and mlir-aie's lowering, written down again."""
    found: list[tuple] = []
    for box in (op for op in device.walk() if isinstance(op, SwitchboxOp)):
        found += _switchbox(device, box)
    for mux in (op for op in device.walk() if isinstance(op, ShimMuxOp)):
        for connect in mux.connects:
            (bundle, _), (_, number) = connect.source, connect.destination
            inward = str(bundle) == "DMA"
            port = number if inward else connect.source[1]
            register, mask, value = {
                (True, 3): (0x1F000, 0xC00, 0x400), (True, 7): (0x1F000, 0xC000, 0x4000),
                (False, 2): (0x1F004, 0x30, 0x10), (False, 3): (0x1F004, 0xC0, 0x40),
            }[inward, port]  # fmt: skip
            found.append(("mask", mux.tile.column << 25 | register, mask, value))
    return found


def _switchbox(device: DeviceOp, box: SwitchboxOp):
    column, row = box.tile.column, box.tile.row
    switch = switch_of(device.device, column, row)
    base = (column << 25 | row << 20) + (0xB0000 if row == 1 else 0x3F000)
    for connect in box.connects:
        slave = switch.slave_number(*connect.source)
        master = switch.master_number(*connect.destination)
        yield "write", base + 4 * master, 1 << 31 | slave
        yield "write", base + 0x100 + 4 * slave, 1 << 31
    for masterset in box.mastersets:
        bundle, channel = masterset.destination
        drop = str(bundle) == "DMA" or (str(bundle) == "South" and row == 0)
        if masterset.keep_header is not None:
            drop = not masterset.keep_header
        msels = sum(1 << amsel.msel for amsel in masterset.arbiters)
        word = 0xC0000000 | drop << 7 | msels << 3 | masterset.arbiters[0].arbiter
        yield "write", base + 4 * switch.master_number(bundle, channel), word
    for rules in box.packet_rules:
        slave = switch.slave_number(*rules.source)
        for number, rule in enumerate(rules.rules):
            yield "write", base + 0x100 + 4 * slave, 0xC0000000
            word = rule.value << 24 | rule.mask << 16 | 1 << 8 | rule.target.msel << 4 | rule.target.arbiter
            yield "write", base + 0x200 + 0x10 * slave + 4 * number, word


BODY = """%c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c256 = arith.constant 256 : index
      %free_in = arith.constant 48 : index
      %full_in = arith.constant 49 : index
      %free_out = arith.constant 50 : index
      %full_out = arith.constant 51 : index
      aie.use_lock(%full_in, AcquireGreaterEqual, 1)
      aie.use_lock(%free_out, AcquireGreaterEqual, 1)
      %k = memref.load %kN[%c0] : memref<4xi32>
      scf.for %i = %c0 to %c256 step %c1 {
        %x = memref.load %inN[%i] : memref<256xi32>
        %y = arith.muli %x, %k : i32
        memref.store %y, %outN[%i] : memref<256xi32>
      }
      aie.use_lock(%free_in, Release, 1)
      aie.use_lock(%full_out, Release, 1)
      aie.end
    }"""


@pytest.mark.parametrize("form", ["mlir", "physical"])
def test_a_whole_design_runs_on_the_routes_of_the_real_tools(form):
    """Its cores multiply by 2 and 3; they come as ELF, for which a program with locks by number stands in."""
    text = VECTORS["npu2_whole"][form]
    for core in "23":
        text = re.sub(r"aie\.end\s*\} \{elf_file = \"core" + core + r"\.elf\"\}", BODY.replace("N", core), text)
    x, y = np.arange(512, dtype=np.int32) * 7 - 900, np.zeros(512, np.int32)
    run = bdforge.emulate(text, [x, y])
    same(y, [*(2 * x[:256]), *(3 * x[256:])])
    assert all(warning.endswith("[shared-locks]") for warning in run.warnings)  # its own join


@pytest.mark.parametrize(("connect", "slaves", "masters"), [
    ("DMA : 0, North : 3", {3}, set()), ("DMA : 1, North : 7", {7}, set()),
    ("North : 2, DMA : 0", set(), {2}), ("North : 3, DMA : 1", set(), {3}),
])  # fmt: skip
def test_a_shims_mux_joins_dma_channels_to_ports(connect, slaves, masters):
    text = f"aie.device(npu2) {{ %s = aie.tile(2, 0)\n%m = aie.shim_mux(%s) {{ aie.connect<{connect}> }} }}"
    found = switches_of(device_in(text))
    assert found.joined_slaves == {SwitchPort(2, 0, PortBundle.SOUTH, number) for number in slaves}
    assert found.joined_masters == {SwitchPort(2, 0, PortBundle.SOUTH, number) for number in masters}
