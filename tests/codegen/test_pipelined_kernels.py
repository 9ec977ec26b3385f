"""Pipelined kernels: their rates by the exact core model, loops of both kinds, and walks of pointers."""

import itertools
import random

import pytest
from test_assembled_kernels import product

from bdforge.core import isa
from bdforge.core.codegen.kernels import assembled
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.isa.assembler import assemble
from support.differences import same
from support.machine_code import memories

OVERHEAD = 23  # cycles of a call in these tests besides the kernel: three pointers, the jump, DONE and what drains


@pytest.mark.daily("mm_i8_i2_i32-aie2p-tile0-480", "mm_i8_i8_i32-aie2-tile3-245")
@pytest.mark.parametrize(
    ("name", "generation", "tile", "least"),
    [
        ("mm_i8_i2_i32", "aie2p", (64, 128, 64), 480),
        ("mm_i8_i2_i32", "aie2p", (16, 192, 160), 466),
        ("mm_i8_i8_i32", "aie2p", (128, 56, 80), 480),
        ("mm_i8_i8_i32", "aie2", (64, 128, 64), 245),
    ],
)
def test_rates_are_those_of_the_schedule_and_results_equal_numpy(name, generation, tile, least):
    m, k, n = tile
    expected, found, cycles = product(name, generation, tile, 3)
    kernel = assembled(name, generation, (f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}", "DIM_RHO=1"))
    same(found, expected)
    assert kernel.cycles is not None
    assert cycles == kernel.cycles + OVERHEAD
    assert m * k * n / kernel.cycles >= least


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_any_tile_and_layout_equals_numpy(seed):
    rng = random.Random(seed)
    generation, weights = rng.choice(
        [("aie2p", "i8"), ("aie2p", "i4"), ("aie2p", "i2"), ("aie2", "i8"), ("aie2", "i4"), ("aie2", "i2")]
    )
    result = rng.choice({"i8": ("i32", "i16", "i8"), "i4": ("i32", "i16"), "i2": ("i32",)}[weights])
    rows, columns, rho = (4 if generation == "aie2" else 8), (32 if weights == "i2" else 8), rng.choice((1, 1, 2))
    depth = 16 if (generation, weights) == ("aie2", "i4") else 8
    tile = rho * rows * rng.randint(1, 9), depth * rng.randint(1, 20), columns * rng.randint(1, 96 // columns)
    turned = "AB" if weights == "i8" else "A"
    defines = [f"{operand}_TRANSPOSED" for operand in turned if rng.random() < 0.3]
    defines += [f"SHIFT={rng.randint(0, 6)}"] if result != "i32" else []
    name, extreme = f"mm_i8_{weights}_{result}", rng.random() < 0.2
    expected, found, _ = product(name, generation, tile, seed, tuple(defines), rng.randrange(rho), rho, extreme)
    same(found, expected, (name, generation, tile, rho, defines))


@pytest.mark.daily("0,0,0-4 x 1")
@pytest.mark.parametrize(
    ("met", "shape"), [("0,0,0", "4 x 1"), ("0,100,0", "4 x 1"), ("0,0,100", "2 x 2"), ("20,0,0", "2 x 2")]
)
def test_blocks_are_those_that_wait_least_for_banks(met: str, shape: str):
    """Blocks of 4 x 1 load A in every cycle, where any access to what shares its bank waits; B and C hardly meet."""
    expected, found, _ = product("mm_i8_i2_i32", "aie2p", (32, 128, 160), 4, (f"MEETS={met}",))
    options = ("DIM_M=32", "DIM_K=128", "DIM_N=160", "DIM_RHO=1", f"MEETS={met}")
    same(found, expected)
    assert f"blocks of {shape} micro-tiles" in assembled("mm_i8_i2_i32", "aie2p", options).text


@pytest.mark.parametrize(
    ("name", "generation", "tile", "rho", "blocks", "saved"),
    [("mm_i8_i2_i32", "aie2p", (32, 56, 64), 2, "2x1", 6), ("mm_i8_i8_i8", "aie2", (16, 40, 32), 1, "2x2", 0)],
)
def test_hardware_loops_make_the_same_in_no_more_cycles(name, generation, tile, rho, blocks, saved):
    jnz, hardware = (
        product(name, generation, tile, 3, (f"LOOPS={loops}", f"BLOCKS={blocks}"), rho - 1, rho)
        for loops in ("jnz", "hardware")
    )
    defines = [f"DIM_{letter}={size}" for letter, size in zip("MKN", tile, strict=True)]
    text = assembled(name, generation, (*defines, f"DIM_RHO={rho}", f"BLOCKS={blocks}", "LOOPS=hardware")).text
    same(hardware[1], hardware[0])
    same(hardware[1], jnz[1])
    assert hardware[2] <= jnz[2] - saved  # what the branch took of the move slot
    assert "movxm le, #" in text
    assert "jnz " not in text


@pytest.mark.parametrize("name", ["zero_i32", "finish_i32_i8", "mm_i8_i8_i32"])
def test_all_pipelined_kernels_know_hardware_loops(name):
    options = ("DIM_M=32", "DIM_K=16", "DIM_N=32", "LOOPS=hardware", *["BLOCKS=2x1"] * name.startswith("mm"))
    assert "movxm ls, #" in assembled(name, "aie2p", options).text


@pytest.mark.parametrize(
    ("offsets", "loops"),
    [
        ((0, 64, 128), ((2, 1024), (3, 0), (4, 192))),
        ((0, 64), ((3, 4096), (1, 0), (2, 0))),
        ((0, 1024, 64, 1088), ((2, 2048), (3, 128), (2, 0))),
        ((0,), ((1, 0), (1, 0), (5, 64))),
    ],
)
def test_pointers_go_where_nests_of_loops_lead_them(offsets, loops):
    walk, steppers = PointerWalk("p0", offsets, loops), Steppers(range(-512, 449), 64)
    (after,) = steppers.walks([walk])
    places = visited(walk)
    text = "".join(f"movxm {register}, #{value}\n" for register, value in steppers.constants.items())
    for at in range(len(places)):
        step = after[at % len(offsets)]
        kind = ".3d" if step.endswith("_3d") else ".2d" if step.startswith("d") else ""
        text += f"padda{kind} [p0], {step}\nnop\n"
    assert reached(text, len(steppers.constants), len(places)) == places


def visited(walk: PointerWalk) -> list[int]:
    """Every offset that a walk goes to, in order."""
    starts = [
        sum(i * stride for i, (_, stride) in zip(at, walk.loops, strict=True))
        for at in itertools.product(*(range(passes) for passes, _ in walk.loops))
    ]
    return [walk.start + start + offset for start in starts for offset in walk.offsets]


def reached(text: str, before: int, count: int) -> list[int]:
    """Where p0 stands at each step, which comes with a NOP behind it, relative to its start."""
    start, found = 0x48000, []
    core = Interpreter(isa.load("aie2p"), assemble(f"{text}done\n", "aie2p", "walk.s").code[0][1], memories())
    core.write("p0", start)
    for bundle in range(before + 2 * count):
        if bundle >= before and (bundle - before) % 2 == 0:
            found.append(core.read("p0") - start)
        list(core.step())
    return found
