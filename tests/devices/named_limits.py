"""Finds the limits that bdforge names: public integers of its modules and fields of tiles, and what is none."""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

from bdforge.devices.limits import CORE, MEMTILE, SHIM

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(path.parent.name for path in (ROOT / "bdforge").glob("*/__init__.py") if path.parent.name != "common")
ALL_NUMBERS = ("devices.limits", "devices.switches")  # every number there is a limit unless said otherwise
LIKE_A_LIMIT = re.compile(r"MAX|MIN|LIMIT|BUDGET|LARGEST|LONGEST|MOST|UNREAD|CAPACITY|ENTRIES|(^|_)END(_|$)")

NO_LIMIT = {
    "core.exact.compiled_states.MOST_STATES": "others are not: tests/emulator/cores/isa/test_compiled_states.py",
    "cli.options.SIZE_MAX": "of any option: tests/cli/test_options.py",
    "design.document.document_values.MOST_TURNS": "tests/design/test_small_documents.py",
    "design.sandbox.LENGTH_MAX": "tests/design/test_template.py",
    "design.sandbox.STEPS_MAX": "as before",
    "array.show.page.run_record.EVENTS_MAX": "of a record, which says where it ends: tests/show/test_page.py",
    "devices.timing.RUNLIST_COMMANDS_MAX": "longer lists are several: tests/runtime/test_batches.py",
    "operators.contraction.dims.EXPRESSION_MAX": "tests/input/test_given.py",
    "perf.tune.free_numbers.CHOICES_MOST": "tests/perf/test_tune_numbers.py",
    "devices.limits.BYTE_BITS": "a size",
    "devices.limits.GRANULE_BYTES": "a size: alignment has tests of its own",
    "devices.limits.GRANULE_BITS": "as above",
    "devices.limits.BUFFER_ALIGN_BYTES": "a size: what placement rounds to",
    "devices.limits.DEFAULT_STACK_BYTES": "a default",
    "devices.limits.CORE_OWN_MEMORY": "an address",
    "devices.limits.PROGRAM_MEMORY_BYTES": "enforced on machine code, which tests/isa reads",
    "devices.limits.PROGRAM_LINE_BYTES": "a size",
    "devices.limits.SHIM_CONTROLLER_ID": "a number of a tile",
    "devices.limits.CASCADE_BITS": "a width: values of any other are refused",
    "devices.limits.CASCADE_FIFO_VALUES": "half of emulator.cores.ports.CAPACITY",
    "devices.switches.SHIM_TOKEN_MASTER": "a number of a port",
    "core.exact.profile.MOST_MARKS": "the length of a record: what comes behind counts as its last part",
    "array.mlir.parser.OPERATIONS_MAX": "tests/mlir/test_mlir_bounds.py puts a smaller one in its place",
    "array.routing.path_search.END": "a mark",
    "core.exact.alone.BUDGET": "tests/emulator/cores/isa/test_programs_alone.py puts others in its place",
    "array.emulator.scheduler.MOST_STEPS": "tests/emulator/test_budgets.py: a budget of emulate",
    "array.emulator.scheduler.STEP_BUDGET": "tests/emulator/test_scheduler.py puts others in its place",
    "array.emulator.bd_access.WORDS_MAX": "tests/fuzz/hostile_texts.py: huge_walk; the last value takes 2 GB of memory",
    "core.exact.core_memory.END": "an address",
    "array.emulator.diagnose.LONGEST_REPORT": "the length of a message",
    "array.emulator.diagnose.MOST_OTHERS": "the length of a message",
    "models.weights.gguf_header.ENTRY_BYTES_MIN": "a size of the format: counts are refused before reading",
    "models.weights.gguf_header.TENSOR_BYTES_MIN": "as above",
    "design.sequences.sequence_program.MOST_VALUES": "tests/sequences/test_program_limits.py: values, and their places",
    "design.sequences.sequence_program.MOST_WRITTEN": "as above: Write.values",
    "operators.contraction.walks.MOST_BDS": "tests/operators/contraction/test_contraction_walks.py unrolls as many",
    "operators.gemm.kernels.UNLIMITED_DEPTH": "operators.specs.LARGEST_SIZE, where sums never overflow",
    "operators.stream_program.LARGEST_LENGTH": "tests/operators/elementwise/test_elementwise_program.py",
    "array.explain.zeros_run.MOST_BYTES": "of arrays that nobody gave: the last value takes 2 GB of memory",
    "runtime.service.server.HELD_MAX": "tests/runtime/test_device_service.py holds two arrays more",
    "runtime.service.wire.FILES_MAX": "room to receive files in: requests have one at most",
    "cli.machine_code.MOST_LOOKS": "the length of an output",
    "core.isa.modulo.BUDGET": "how long a search tries",
    "perf.size_sweep.SHAPES_MOST": "tests/perf/test_finalists.py puts a smaller one in its place",
    "runtime.xrt.SPARE_MAX": "tests/runtime/test_xrt_backend.py puts a smaller one in its place",
    "runtime.xrt.STREAMS_MAX": "as above",
    "models.tensors.plans.PLANS_MAX": "tests/tensors/test_einsum.py puts a smaller one in its place",
    "models.tensors.einsum.LOADED_MAX": "tests/tensors/test_trees.py puts a smaller one in its place",
    "perf.csv_rows.ROWS_MAX": "tests/perf/test_measurement_rows.py puts a smaller one in its place",
    "devices.limits.SHIM.banks": "there is none",
    "devices.limits.MEMTILE.banks": "how allocators divide memory",
    "devices.limits.CORE.banks": "how allocators divide memory",
    "devices.limits.SHIM.memory_bytes": "there is none",
}  # fmt: skip
"""Numbers that look like limits: why they have no pair of cases."""


@cache
def named_limits() -> dict[str, int]:
    """Every named limit with its value: constants and fields of tiles."""
    return {**dict(_constants()), **dict(_tile_fields())}


def _constants() -> Iterator[tuple[str, int]]:
    for package in PACKAGES:
        for path in sorted((ROOT / "bdforge" / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            short = module.removeprefix("bdforge.")
            for name in _assigned(path):
                value = getattr(importlib.import_module(module), name)
                if type(value) is int and (short in ALL_NUMBERS or LIKE_A_LIMIT.search(name)):
                    yield f"{short}.{name}", value


def _public(name: str) -> bool:
    return name.isupper() and not name.startswith("_")


def _assigned(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (target.id for target in targets if isinstance(target, ast.Name) and _public(target.id))


def _tile_fields() -> Iterator[tuple[str, int]]:
    for kind, limits in (("SHIM", SHIM), ("MEMTILE", MEMTILE), ("CORE", CORE)):
        for field in fields(limits):
            value = getattr(limits, field.name)
            if isinstance(value, tuple):
                yield from ((f"devices.limits.{kind}.{field.name}[{i}]", number) for i, number in enumerate(value))
            elif type(value) is int:
                yield f"devices.limits.{kind}.{field.name}", value
