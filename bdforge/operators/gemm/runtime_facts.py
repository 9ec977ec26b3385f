"""The numbers from which a host makes instruction streams for a design, for any problem: the manifest's `runtime`.

Everything that `host/include/bdforge/sequence.hpp` knows of devices, registers and addresses comes from here.
"""

from typing import Any

from bdforge.design.model import Allocation
from bdforge.devices import TileKind, mlir_device_named
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX
from bdforge.devices.registers import CONTROLLER_ID_MASK, RUNTIME_AXI_CACHE, TILE_REGISTERS, address
from bdforge.devices.types import ORDERS
from bdforge.operators.gemm.addresses import core_addresses
from bdforge.operators.gemm.grid import Storage
from bdforge.operators.gemm.plan import RTP_K_STEPS, RTP_OUTPUT_TILES, Plan
from bdforge.operators.gemm.sequence import shim_channels
from bdforge.operators.gemm.spec import LARGEST_SIZE
from bdforge.sequences.words import token_control
from bdforge.txn.bd import burst_code, encode_bd
from bdforge.txn.codec import encode
from bdforge.txn.operations import DIRECTIONS

_HEADER_WORDS = 2  # of a stream's header; the other two count operations and bytes
_BD_FIELDS = (
    "length", "d0_wrap", "d0_step", "d1_wrap", "d1_step", "d2_step", "iteration_wrap", "iteration_step",
    "next", "use_next",
)  # fmt: skip


def runtime_facts(plan: Plan) -> dict[str, Any]:
    """The `runtime` section of a manifest.

    Addresses are full register addresses in the design's columns. `column_stride` is what the same register of the next
    column adds. Fields are [word, lowest bit].
    """
    tiles, device = plan.tiling, mlir_device_named(plan.mlir_device)
    return {
        "header": [int(word) for word in encode([], device)[:_HEADER_WORDS]],
        "operands": {name: _storage(getattr(tiles, name)) for name in "abc"},
        "largest_size": LARGEST_SIZE,
        "depth_limit": plan.kernel.depth_limit,
        "arguments": {operand.lower(): index for index, operand in enumerate("ABCRS")},
        "fed_bytes": dict(zip(("panel", "tile"), tiles.fed_bytes, strict=True)),
        "a_feeds": [feed._asdict() for feed in tiles.feeds()],
        "least_rows": tiles.least_rows,
        "granules": dict(zip("mkn", tiles.granules, strict=True)),
        "cores": [
            {
                "k_steps": core.parameters + GRANULE_BYTES * RTP_K_STEPS,
                "output_tiles": core.parameters + GRANULE_BYTES * RTP_OUTPUT_TILES,
                "go": core.go,
            }
            for core in core_addresses(plan)
        ],
        "column_stride": address(1, 0, 0),
        "shim": _shim(plan),
    }


def _storage(storage: Storage) -> dict[str, Any]:
    return {"bits": storage.bits, "order": ORDERS.index(storage.order), "block": storage.block, "run": storage.run}


def _shim(plan: Plan) -> dict[str, Any]:
    generation = plan.device.generation
    limits, registers = generation.limits(TileKind.SHIM), TILE_REGISTERS[TileKind.SHIM]
    channels = {operand: channel for (operand, _), channel in shim_channels(plan).items()}
    constant = encode_bd(TileKind.SHIM, length_words=0, burst=burst_code(generation, 0), axi_cache=RUNTIME_AXI_CACHE)
    return {
        "bds": limits.bds,
        "wraps": list(limits.wraps),
        "step_max": limits.step_max,
        "iteration_max": limits.iteration_wrap_max,
        "repeat_max": TASK_REPEAT_MAX,
        "queue_entries": TASK_QUEUE_ENTRIES,
        "tasks_in_flight": plan.spec.sequence.steps,
        "bd_address": address(0, 0, registers.bd_offset(0)),
        "bd_stride_bytes": registers.bd_stride,
        "bd_constant": constant,
        "bd_fields": {name: [registers.bd.fields[name].word, registers.bd.fields[name].low] for name in _BD_FIELDS},
        "patched_word": registers.bd.fields["address_low"].word,
        "queue_addresses": {
            operand.lower(): address(0, 0, registers.queue_offset(channel.direction, channel.channel))
            for operand, channel in channels.items()
        },
        "queue_fields": {name: field.low for name, field in registers.queue.fields.items()},
        "token": _token(plan, channels["C"]),
    }


def _token(plan: Plan, channel: Allocation) -> dict[str, int]:
    """The channel whose tokens are awaited, and what its control register gets before it is asked for one.

    One wait is for the tokens of `columns` shims; waits for all columns follow one another.
    """
    control = TILE_REGISTERS[TileKind.SHIM].control_offset(channel.direction, channel.channel)
    return {
        "direction": DIRECTIONS.index(channel.direction),
        "channel": channel.channel,
        "columns": plan.spec.sequence.wait_columns(plan.spec.columns),
        "control_address": address(0, 0, control),
        "control_value": token_control(),
        "control_mask": CONTROLLER_ID_MASK,
    }
