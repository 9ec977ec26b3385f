"""The numbers from which a host makes instruction streams for a design, for any problem: the manifest's `runtime`.

Everything that `host/include/bdforge/sequence.hpp` knows of devices, registers and addresses comes from here.
"""

from typing import Any

from bdforge.devices import TileKind, mlir_device_named
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX
from bdforge.devices.registers import RUNTIME_AXI_CACHE, TILE_REGISTERS, address
from bdforge.plan.addresses import core_addresses
from bdforge.plan.gemm import RTP_K_STEPS, RTP_OUTPUT_TILES, Plan
from bdforge.plan.sequence import ARGUMENTS, shim_channels
from bdforge.plan.staging import LARGEST_SIZE, tiling
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
    tiles, device = tiling(plan), mlir_device_named(plan.mlir_device)
    return {
        "header": [int(word) for word in encode([], device)[:_HEADER_WORDS]],
        "element_bits": {"a": tiles.a_bits, "b": tiles.b_bits, "c": tiles.c_bits},
        "largest_size": LARGEST_SIZE,
        "depth_limit": plan.kernel.depth_limit,
        "arguments": {operand.lower(): index for operand, index in ARGUMENTS.items()},
        "a_columns": [tiles.a_column(row) for row in range(tiles.rows)],
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
        "tasks_in_flight": TASK_QUEUE_ENTRIES,
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
        "token": {"direction": DIRECTIONS.index(channels["C"].direction), "channel": channels["C"].channel},
    }
