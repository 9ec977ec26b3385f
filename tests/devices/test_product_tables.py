"""What generations and products differ in, by name and written down a second time from the sources."""

import importlib
import pkgutil

import pytest
from named_limits import ALL_NUMBERS, NO_LIMIT

from bdforge.devices import AIE2, AIE2P, DEVICES, MLIR_DEVICES, DeviceError, device_named
from bdforge.devices import __path__ as devices_path
from bdforge.devices.hosts import HOSTS, host_named
from bdforge.devices.limits import CORE, MEMTILE, SHIM, Generation
from bdforge.devices.pci import IDENTITIES
from bdforge.devices.switches import OPPOSITE, STEPS
from bdforge.devices.topology import mlir_device_named
from bdforge.devices.types import BLOCK_FORMATS, PRODUCTS, TYPES, peak_macs

GENERATIONS = {
    "AIE2": {
        "stream_bytes": 4, "bursts": (64, 128, 256), "vector_align_bytes": 32, "instruction_generation": 3,
        "peano_target": "aie2-none-unknown-elf", "compiler_architecture": 20,
    },
    "AIE2P": {
        "stream_bytes": 8, "bursts": (64, 128, 256, 512), "vector_align_bytes": 64, "instruction_generation": 4,
        "peano_target": "aie2p-none-unknown-elf", "compiler_architecture": 21,
    },
}  # fmt: skip


@pytest.mark.parametrize("generation", [AIE2, AIE2P], ids=lambda generation: generation.name)
def test_generations_differ_as_the_sources_say(generation: Generation):
    wanted = GENERATIONS[generation.name]
    assert {name: getattr(generation, name) for name in wanted} == wanted
    assert generation.tiles == (SHIM, MEMTILE, CORE)


FACTS = {  # every number and tuple of them that bdforge.devices names, but for limits, which have pairs of cases
    "BYTE_BITS": 8, "GRANULE_BYTES": 4, "GRANULE_BITS": 32, "BUFFER_ALIGN_BYTES": 64, "DEFAULT_STACK_BYTES": 1024,
    "CORE_OWN_MEMORY": 0x70000, "PROGRAM_LINE_BYTES": 16, "PROGRAM_MEMORY_BYTES": 16384,
    "CONTROLLER_IDS": (15, 26, 27, 29, 30, 31),
    "SHIM_CONTROLLER_ID": 15, "CASCADE_BITS": 512, "CASCADE_FIFO_VALUES": 2,
    "CORE_LOCK_WINDOWS": ((0, -1), (-1, 0), (0, 1), (0, 0)), "SHIM_MM2S_SLAVES": (3, 7), "SHIM_S2MM_MASTERS": (2, 3),
    "SHIM_TOKEN_MASTER": 0, "VENDOR": 0x1022, "ROWS": 6, "FIRST_CORE_ROW": 2,
    "RUNTIME_AXI_CACHE": 2, "CONTROLLER_ID_MASK": 0x1F00, "CORE_ENABLE": 1, "CORE_RESET": 2,
    "MEMTILE_WINDOW_BYTES": 524288, "MEMTILE_WINDOWS": 3, "MEMTILE_WINDOW_LOCKS": 64, "OFFSET_MASK": 0xFFFFF,
    "SHIM_MUX_OFFSET": 0x1F000, "SHIM_DEMUX_OFFSET": 0x1F004, "MUX_TO_DMA": 1, "CASCADE_OFFSET": 0x36060,
    "NARROW_BUS": 1.287, "STRIX_PORT": 1.168, "JOB_TIMEOUT_SECONDS": 2.0, "RUNLIST_COMMANDS_MAX": 24,
    "PERMUTED_GB_S": 4.0, "CONTEXT_NS": 1_600_000, "PDI_BYTE_NS": 34.7,
    "ORDERS": ("row", "column", "packed"),
}  # fmt: skip


def facts() -> dict[str, object]:
    """By name, from all modules of bdforge.devices."""
    modules = [importlib.import_module(f"bdforge.{name}") for name in ALL_NUMBERS]
    paired = {name for module in modules for name, value in vars(module).items() if type(value) is int}
    paired -= {name.rpartition(".")[2] for name in NO_LIMIT}
    modules = [
        importlib.import_module(f"bdforge.devices.{info.name}")
        for info in pkgutil.iter_modules(devices_path)
        if not info.ispkg
    ]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if name.isupper() and name[0] != "_" and isinstance(value, int | float | tuple)
        if name not in paired and name != "PRODUCTS"
    }


def test_every_fact_is_the_one_that_the_sources_give():
    found = facts()
    wrong = {name: (found.get(name), FACTS.get(name)) for name in found | FACTS if found.get(name) != FACTS.get(name)}
    assert wrong == {}, "as bdforge.devices has it, and as it is written down here"
    assert [(kind.kind, kind.banks) for kind in (SHIM, MEMTILE, CORE)] == [("shim", 0), ("memtile", 8), ("core", 4)]


def test_opposite_sides_lead_back():
    assert {str(side): step for side, step in STEPS.items()} == {
        "South": (0, -1), "West": (-1, 0), "North": (0, 1), "East": (1, 0),
    }  # fmt: skip
    assert {str(side): str(other) for side, other in OPPOSITE.items()} == {
        "South": "North", "West": "East", "North": "South", "East": "West",
    }  # fmt: skip


ARRAYS = {  # array and columns, PCI device and revision, the driver's name for it
    "phoenix": ("npu1", 4, 0x1502, 0x00, "NPU Phoenix"),
    "hawk_point": ("npu1", 4, 0x1502, 0x00, "NPU Phoenix"),
    "strix": ("npu2", 8, 0x17F0, 0x10, "NPU Strix"),
    "strix_halo": ("npu2", 8, 0x17F0, 0x11, "NPU Strix Halo"),
    "krackan": ("npu2", 8, 0x17F0, 0x20, "NPU Krackan 1"),
}


@pytest.mark.parametrize("product", sorted({*DEVICES, *IDENTITIES}))
def test_products_have_their_array_and_pci_ids(product: str):
    device, identity = device_named(product), IDENTITIES[product]
    assert (device.mlir, device.columns, identity.device, identity.revision, identity.name) == ARRAYS[product]
    assert device.generation is {"npu1": AIE2, "npu2": AIE2P}[device.mlir]
    assert (device.rows, device.core_rows) == (6, 4)


def test_arrays_of_mlir_have_the_columns_of_their_names():
    parts = {f"npu1_{n}col": n for n in (1, 2, 3)} | {f"npu2_{n}col": n for n in range(1, 8)}
    assert {name: device.columns for name, device in MLIR_DEVICES.items()} == {"npu1": 4, "npu2": 8} | parts
    assert {name for name, device in MLIR_DEVICES.items() if device.generation is AIE2P} == {
        name for name in MLIR_DEVICES if name.startswith("npu2")
    }
    npu2 = MLIR_DEVICES["npu2"]
    assert [npu2.part(columns) for columns in (1, 7, 8)] == ["npu2_1col", "npu2_7col", "npu2"]


@pytest.mark.parametrize(("tile", "kind"), [((0, 0), "shim"), ((3, 1), "memtile"), ((3, 2), "core"), ((0, 5), "core")])
def test_rows_have_kinds(tile: tuple[int, int], kind: str):
    assert MLIR_DEVICES["npu1"].kind(*tile) == kind
    assert MLIR_DEVICES["npu1"].limits(*tile).kind == kind


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        ((4, 0), "column 4 is outside npu1, which has columns 0 to 3"), ((-1, 0), "column -1 is outside npu1"),
        ((0, 6), "row 6 is outside npu1, which has rows 0 to 5"), ((0, -1), "row -1 is outside npu1"),
    ],
)  # fmt: skip
def test_tiles_beyond_each_edge_are_refused(tile: tuple[int, int], words: str):
    with pytest.raises(DeviceError, match=words):
        MLIR_DEVICES["npu1"].kind(*tile)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(DeviceError, match="unknown device 'npu3'; known devices: strix_halo, strix, krackan, phoenix"):
        device_named("npu3")
    with pytest.raises(DeviceError, match="unknown device 'npu2_8col'; known: npu1, npu2, npu1_1col"):
        mlir_device_named("npu2_8col")
    with pytest.raises(DeviceError, match="of 'npu1' is published; there is phoenix, hawk_point"):
        host_named("npu1")


def test_processors_are_those_of_the_product_pages():
    found = {name: (host.cores, host.dram_gb_s, host.watts) for name, host in HOSTS.items()}
    assert found == {
        "phoenix": (8, 120, (35, 54)), "hawk_point": (8, 83.2, (45, 65)), "strix": (12, 120, (15, 54)),
        "krackan": (8, 128, (15, 54)), "strix_halo": (16, 256, (76, 120)),
    }  # fmt: skip
    assert host_named("krackan") is HOSTS["krackan"]


MACS = {  # types: accumulators, MACs on AIE2 and AIE2P (None where the unit has no such product)
    ("int8", "int8"): ("int32", 256, 512),
    ("int8", "int4"): ("int32", 512, 512),
    ("int8", "int2"): ("int32", None, 512),
    ("int16", "int8"): ("int32 int64", 128, 256),
    ("int16", "int16"): ("int32 int64", 64, 128),
    ("bf16", "bf16"): ("f32", 128, 256),
    ("bf16", "bfp16"): ("f32", None, 512),
    ("bfp16", "bfp16"): ("f32", None, 512),
}


def test_mac_units_are_those_of_the_rate_tables():
    found = {(p.a, p.b): (" ".join(p.accumulators), p.macs.get("AIE2"), p.macs.get("AIE2P")) for p in PRODUCTS}
    assert found == MACS


def test_narrower_types_without_a_product_take_that_of_a():
    assert peak_macs("AIE2", "int8", "int2") == 256
    assert peak_macs("AIE2", "int16", "int4") == 64
    assert peak_macs("AIE2P", "int16", "int4") == 128
    assert peak_macs("AIE2", "int8", "int4") == 512


SIZES = {  # bits, MLIR's type of buffers, elements of it for 64
    "int2": (2, "i8", 16), "int4": (4, "i8", 32), "int8": (8, "i8", 64), "int16": (16, "i16", 64),
    "int32": (32, "i32", 64), "bf16": (16, "bf16", 64), "f32": (32, "f32", 64), "bfp16": (9, "i8", 72),
}  # fmt: skip


def test_types_have_the_sizes_of_their_names():
    found = {name: (kind.bits, kind.memory, kind.memory_elements(64)) for name, kind in TYPES.items()}
    assert found == SIZES
    assert {name for name, kind in TYPES.items() if kind.packed_only} == {"int2", "int4", "bfp16"}
    assert {name for name, kind in TYPES.items() if kind.blocked} == {"bfp16"}
    blocks = {name: (block.values, block.bytes, block.bits) for name, block in BLOCK_FORMATS.items()}
    assert blocks == {"v8bfp16ebs8": (8, 9, 72), "v16bfp16ebs16": (16, 17, 136)}
