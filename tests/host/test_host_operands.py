"""Operands in C++: buffers and arrays are Python's byte for byte, whatever the manifest says stays in its buffer."""

import json
import random
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_programs import probed
from library_builds import write_manifest

from bdforge.design.sequences import Builder
from bdforge.design.sequences.interpret import values_of
from bdforge.design.sequences.operands import fetch, place
from bdforge.design.sequences.sequence_program import Operand, Program
from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators import manifest
from bdforge.operators.contraction import ContractionError, contraction, plan_contraction
from bdforge.operators.gemm import SpecError, plan_gemm, sequence, spec_from
from support.built_designs import spec_content
from support.family import GROUPS, SEED, SIZE, group
from support.tccg import random_case
from support.wrong_places import numbers

Probe = Callable[[list[str]], list[str]]
DEVICE = device_named("strix_halo")


@pytest.fixture(scope="module")
def probe() -> Probe:
    return lambda orders: probed("operands", lines=orders)


@lru_cache(maxsize=64)
def member_of(index: int) -> tuple[Any, dict[str, int]]:
    """A member's plan and a ragged problem that it takes, some with gaps behind lines."""
    rng, plan = np.random.default_rng(index), group(index, SIZE, SEED)[index % SIZE].plan
    while True:
        M, K, N = (int(rng.integers(1, most)) for most in (200, 300, 200))
        try:
            planned = sequence(plan, M, K, N)
        except SpecError:
            continue
        gaps = {name: 0 for name in planned.program.parameters if name.startswith("ld")}
        return plan, {"M": M, "K": K, "N": N} | gaps


def random_array(rng: np.random.Generator, operand: Operand, shape: tuple[int, ...]) -> np.ndarray:
    """Any values of the operand's type, as Python takes them."""
    type_ = TYPES[operand.type]
    if operand.blocked and rng.integers(2):  # steps are 1 where a block has 64 or more: half of all are ties
        return (rng.integers(-255, 256, shape) / 2).astype(np.float32)
    if operand.blocked:
        return (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)).astype(np.float32)
    if type_.integer:
        low, high = type_.values or (-9, 9)
        return rng.integers(low, high + 1, shape).astype(type_.dtype)
    return rng.standard_normal(shape).astype(type_.dtype)


def in_memory(operand: Operand, array: np.ndarray, stride: int) -> bytes:
    """The user's array with a stride: lines of it, with bytes between them that nobody may look at."""
    lines = (array.T if operand.order == "column" else array).reshape(
        -1, array.shape[0 if operand.order == "column" else -1]
    )
    spread = np.full((len(lines), max(stride, lines.shape[1])), 77).astype(array.dtype)
    spread[:, : lines.shape[1]] = lines
    return spread.tobytes()[: ((len(lines) - 1) * spread.shape[1] + lines.shape[1]) * array.itemsize]


def shape_of(operand: Operand, values: list[int]) -> tuple[int, ...]:
    return tuple(values[axis.size] for axis in operand.axes)


def words_of(sizes: dict[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def follow_all(probe: Probe, cases: list[tuple[Path, dict[str, int], np.random.Generator, str]]) -> None:
    """Every operand of each manifest, placed or fetched by C++ as by Python; the text tells which case it is."""
    orders, expected = [], []
    for path, sizes, rng, told in cases:
        program = Program.model_validate(json.loads(path.read_text())["sequence"]["program"])
        values = values_of(program, sizes)
        elements = [values[argument.elements] for argument in program.arguments]
        for operand in program.operands:
            argument = program.arguments[operand.argument]
            size = elements[operand.argument] * argument.bits // 8
            buffer = np.full(size, 0xA5 if operand.bits >= 8 else 0, np.uint8)  # what holds nothing is written, too
            array = random_array(rng, operand, shape_of(operand, values))
            stride = max(
                array.shape[0 if operand.order == "column" and array.ndim > 1 else -1] + int(rng.integers(0, 9)), 1
            )
            files = path.parent / f"{operand.name}.array", path.parent / f"{operand.name}.buffer"
            files[1].write_bytes(buffer.tobytes())
            place(operand, values, array, buffer)  # for an output what is read back
            if operand.direction == "in":
                files[0].write_bytes(in_memory(operand, array, stride))
                orders.append(f"{path} place {operand.name} {stride} {files[0]} {files[1]} {words_of(sizes)}")
                expected.append((files[1], buffer.tobytes(), told))
                found = fetch(operand, values, buffer, array.dtype)
                if operand.bits >= 8 or not np.array_equal(found, array):  # as outputs are; not all of it has a place
                    continue
                files = tuple(path.parent / f"{operand.name}.{kind}" for kind in ("fetched", "packed"))
            files[1].write_bytes(buffer.tobytes())
            found = fetch(operand, values, buffer, array.dtype)
            files[0].write_bytes(in_memory(operand, np.zeros_like(array), stride))
            orders.append(f"{path} fetch {operand.name} {stride} {files[0]} {files[1]} {words_of(sizes)}")
            expected.append((files[0], in_memory(operand, found.astype(array.dtype), stride), told))
    answers = probe(orders)
    for order, answer, (file, content, facts) in zip(orders, answers, expected, strict=True):
        assert answer == "ok ", (order, answer, facts)
        assert file.read_bytes() == content, f"{different_bytes(file.read_bytes(), content)}: {order}\n{facts}"


def different_bytes(found: bytes, expected: bytes) -> str:
    """Which bytes are wrong, in words."""
    if len(found) != len(expected):
        return f"{len(found)} bytes, expected {len(expected)}"
    wrong = np.flatnonzero(np.frombuffer(found, np.uint8) != np.frombuffer(expected, np.uint8)).tolist()
    at = wrong[0]
    return f"byte {at} is {found[at]:#x}, expected {expected[at]:#x}; wrong are bytes {numbers(wrong, len(found))}"


@pytest.mark.parametrize("part", range(4))
def test_operands_of_the_family_are_placed_and_fetched_as_python_does(probe: Probe, tmp_path: Path, part: int):
    cases = []
    for index in range(part, GROUPS, 8):
        plan, sizes = member_of(index)
        path = write_manifest(tmp_path / str(index), plan)
        cases.append((path, sizes, np.random.default_rng([index, 1]), str(plan.spec.content)))
    follow_all(probe, cases)


def test_tensors_of_any_order_are_placed_and_fetched_as_python_does(probe: Probe, tmp_path: Path):
    """Contractions with all operands staged, or as planned; elements of whole bytes, and packed ones."""
    kinds = (("int8", "int8", "int32"), "row row row"), (("int8", "int2", "int32"), "row packed row")
    cases, axes = [], set()
    for seed in range(24):
        types, layouts = kinds[seed % 2]
        gemm = plan_gemm(spec_from(spec_content(8, 16, 32, types=types, layouts=layouts), "tensors"), DEVICE)
        case = random_case(seed)
        try:
            found = plan_contraction(contraction(case.expression, case.sizes), gemm, ("ABC", None, None)[seed % 3])
        except ContractionError:
            continue
        path = write_manifest(tmp_path / str(seed), gemm)
        content = json.loads(path.read_text())
        content["sequence"]["program"] = json.loads(found.program.model_dump_json(exclude_none=True))
        path.write_text(json.dumps(content))
        cases.append((path, dict(found.problem.sizes), np.random.default_rng(seed), case.expression))
        axes |= {len(operand.axes) for operand in found.program.operands}
    assert axes >= {2, 3}
    follow_all(probe, cases)


ELEMENTS = {"int2": (2, 1), "int4": (4, 0), "int8": (8, 0), "int16": (16, 0), "f32": (32, 0)}
"""Bits and bias."""


def any_layout(rng: np.random.Generator, shape: tuple[tuple[int, ...], ...]) -> Program:
    """Axes of these loops at random places of a buffer, some turned, some with tiles that move back."""
    build, type_ = Builder([], 1), str(rng.choice([*ELEMENTS, "int2"]))
    (bits, bias), out = ELEMENTS[type_], bool(rng.integers(2)) and type_ in ("int8", "int16", "f32")
    axes, dims, stride = [], [], int(rng.integers(1, 3)) if bits >= 8 else 1
    for number, counts in enumerate(shape):
        places = int(np.prod(counts))
        whole = [n for n in range(1, places + 1) if not out or places % n == 0]  # inputs may end within a tile
        tile = int(rng.choice(whole)) if rng.integers(2) else None
        walked = int(rng.integers(tile or 1, places + 1))
        size = int(rng.integers(1, places + 1)) if tile is None or not out else walked  # all of it comes back
        axes.append((size, walked, tile, tile is not None and not out and bool(rng.integers(2))))
        dims += [(number, count, int(np.prod(counts[i + 1 :])), 0) for i, count in enumerate(counts)]
    for number in rng.permutation(len(dims)):
        dims[number] = (*dims[number][:3], stride)
        stride *= dims[number][1] + int(rng.integers(2)) * (bits >= 8)
    if rng.integers(2):  # as the buffer stands, from its outermost loop in
        order = sorted(dims, key=lambda dim: -dim[3])
    else:
        order = [dims[number] for number in rng.permutation(len(dims))]
    x = build.argument("X", "i8", 8, (stride + 9) * max(bits, 8) // 8)
    facts = {"bias": bias, "order": "column" if len(axes) == 2 and rng.integers(2) else "row"}
    way = "out" if out else "in"
    build.operand("X", x, way, type_, bits, axes, order, offset=int(rng.integers(9)), **facts)
    return build.program


def test_any_layout_is_placed_and_fetched_as_python_does(probe: Probe, tmp_path: Path):
    """Axes that are whole lines, several loops, beyond 8 bytes of codes, and of one place only."""
    shapes = [
        ((5,), (7,)),
        ((3, 4), (2, 5)),
        ((4, 2, 3), (8, 4)),
        ((3,), (64,)),
        ((2,), (4, 33)),
        ((2, 2), (3,), (2, 3)),
        ((1,), (9, 1, 2)),
    ]
    path, cases = write_manifest(tmp_path / "any", member_of(0)[0]), []
    content = json.loads(path.read_text()) | {"problems": []}
    for seed in range(70):
        rng = np.random.default_rng(seed)
        program = any_layout(rng, shapes[seed % len(shapes)])
        content["sequence"]["program"] = program.model_dump(exclude_none=True)
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "manifest.json").write_text(json.dumps(content))
        cases.append((folder / "manifest.json", {}, rng, str(program.operands[0])))
    follow_all(probe, cases)


def some_lines(rng: np.random.Generator) -> tuple[Program, bool]:
    """A matrix in lines, or nearly so; whether it surely is."""
    build = Builder([], 1)
    counts = [int(rng.integers(1, 6)), int(rng.integers(1, 6))]
    sizes = [int(rng.integers(1, count + 1)) for count in counts]
    along = int(rng.integers(2))  # the axis along a line
    strides = [0, 0]
    strides[along], strides[1 - along] = int(rng.choice([1, 1, 1, 2])), int(rng.integers(1, 9))
    tiles = [int(rng.choice([0, 0, 0, 1, count])) for count in counts]
    axes = [(n, max(n, t), t or None, False) for n, t in zip(sizes, tiles, strict=True)]
    dims = [(axis, counts[axis], 1, strides[axis]) for axis in (0, 1)]
    split = bool(rng.integers(4) == 0) and counts[1] % 2 == 0
    if split:
        dims[1:] = [(1, 2, counts[1] // 2, int(rng.integers(1, 9))), (1, counts[1] // 2, 1, strides[1])]
    order, (type_, bits) = ("row", "column")[1 - along], (("int8", 8), ("int16", 16), ("f32", 32))[rng.integers(3)]
    x = build.argument("X", "i8", 8, 200 * bits // 8)
    build.operand("X", x, "in", type_, bits, axes, dims, offset=int(rng.integers(5)), order=order)
    line = sizes[along] if counts[along] > 1 else 1
    plain = not any(tiles) and not split and strides[along] == 1
    return build.program, plain and all(count > 1 for count in counts) and strides[1 - along] >= line


def elements_of(program: Program) -> list[set[tuple[int, int]]]:
    """The positions that each element of the buffer holds."""
    operand = program.operands[0]
    found: list[set[tuple[int, int]]] = [set() for _ in range(200)]
    values = values_of(program, {})
    rows, columns = (values[axis.size] for axis in operand.axes)
    ones = operand.model_copy(update={"type": "f32", "bits": 32})
    for position in np.ndindex(rows, columns):
        array, buffer = np.zeros((rows, columns), np.float32), np.zeros(800, np.uint8)
        array[position] = 1
        place(ones, values, array, buffer)
        for element in np.flatnonzero(buffer.view(np.float32)):
            found[element].add(position)
    return found


def test_memory_is_used_in_place_only_where_it_holds_the_lines(probe: Probe, tmp_path: Path):
    """By the elements that hold each position alone: the array's lines, and nothing else of it."""
    path = write_manifest(tmp_path / "any", member_of(0)[0])
    content = json.loads(path.read_text()) | {"problems": []}
    programs = [some_lines(np.random.default_rng(seed)) for seed in range(120)]
    for seed, (program, _) in enumerate(programs):
        content["sequence"]["program"] = program.model_dump(exclude_none=True)
        (tmp_path / f"{seed}.json").write_text(json.dumps(content))
    answers = probe([f"{tmp_path / str(seed)}.json direct X 0 none none" for seed in range(len(programs))])
    for seed, ((program, surely), answer) in enumerate(zip(programs, answers, strict=True)):
        operand, values = program.operands[0], values_of(program, {})
        told = f"seed {seed}: {answer}, {operand}, {values}"
        kind, _, lines = answer.partition(" ")
        assert kind == "ok", told
        assert lines != "none" or not surely, told
        if lines == "none":
            continue
        leading, first = map(int, lines.split())
        start, rest = divmod(first, operand.bits // 8)
        held = {element: positions for element, positions in enumerate(elements_of(program)) if positions}
        turned = operand.order == "column"
        rows, columns = (values[axis.size] for axis in operand.axes)
        places = {
            (i, j): start + (j * leading + i if turned else i * leading + j) for i, j in np.ndindex(rows, columns)
        }
        assert (rest, held) == (0, {element: {position} for position, element in places.items()}), told
    assert sum(answer != "ok none" for answer in answers) > len(answers) // 4


def test_operands_need_no_more_sizes_than_they_depend_on(probe: Probe, tmp_path: Path):
    """B of any M: the same bytes as with all sizes; what is missing or not allowed is named."""
    plan, sizes = member_of(0)
    path = write_manifest(tmp_path / "design", plan)
    program = Program.model_validate(json.loads(path.read_text())["sequence"]["program"])
    values = values_of(program, sizes)
    b = next(operand for operand in program.operands if operand.name == "B")
    array = random_array(np.random.default_rng(3), b, shape_of(b, values))
    (tmp_path / "b").write_bytes(in_memory(b, array, 0))
    few = f"K={sizes['K']} N={sizes['N']}"
    orders = [
        f"{path} place B 0 {tmp_path / 'b'} {tmp_path / 'all'} {words_of(sizes)}",
        f"{path} resident B 0 {tmp_path / 'b'} {tmp_path / 'few'} {few}",
        f"{path} resident B 0 {tmp_path / 'b'} {tmp_path / 'none'} K={sizes['K']}",
        f"{path} resident A 0 {tmp_path / 'b'} {tmp_path / 'none'} {few}",
        f"{path} resident B 0 {tmp_path / 'b'} {tmp_path / 'none'} K=0 N=8",
        f"{path} place B 0 {tmp_path / 'b'} {tmp_path / 'none'} {few}",
        f"{path} place B 0 {tmp_path / 'b'} {tmp_path / 'none'} {few} Q=1",
        f"{path} place D 0 {tmp_path / 'b'} {tmp_path / 'none'} {words_of(sizes)}",
        f"{path} place B 1 {tmp_path / 'b'} {tmp_path / 'none'} {words_of(sizes)}",
    ]
    answers = probe(orders)
    assert answers[:2] == ["ok ", "ok "]
    assert (tmp_path / "all").read_bytes() == (tmp_path / "few").read_bytes()
    assert "operand B depends on more sizes than were given; there are M, K, N" in answers[2]
    assert "operand A depends on more sizes" in answers[3]
    assert "K = 0 is outside 1 to" in answers[4]
    assert "size M is missing; give all of M, K, N" in answers[5]
    assert "has no size Q; there are M, K, N" in answers[6]
    assert "has no operand D; there are A, B, C" in answers[7]
    assert "a stride of 1 is below the" in answers[8]


def depends_on(program: Program, value: int | None) -> set[str]:
    """The parameters that a value is made of."""
    found = program.values[value] if value is not None else 0
    if isinstance(found, str):
        return {found}
    return set().union(*(depends_on(program, operand) for operand in found[1:])) if isinstance(found, list) else set()


def test_each_operand_of_any_design_is_known_by_the_sizes_that_it_depends_on(probe: Probe, tmp_path: Path):
    (tmp_path / "array").write_bytes(bytes(1 << 20))
    orders, expected = [], []
    for index in range(0, GROUPS, 7):
        plan, sizes = member_of(index)
        path = write_manifest(tmp_path / str(index), plan)
        program = Program.model_validate(json.loads(path.read_text())["sequence"]["program"])
        for argument in {operand.argument for operand in program.operands}:
            beside = [operand for operand in program.operands if operand.argument == argument]
            places = [program.arguments[argument].elements]
            for operand in beside:
                places += [
                    operand.staged,
                    operand.offset,
                    *(d for dim in operand.dims for d in (dim.count, dim.stride)),
                ]
                places += [place for axis in operand.axes for place in (axis.size, axis.walked, axis.tile)]
            needed = sorted(set().union(*(depends_on(program, place) for place in places)) & {"M", "K", "N"})
            start = f"{path} resident {beside[0].name} 0 {tmp_path / 'array'} {tmp_path / 'none'} "
            for given in (needed, needed[1:]):
                orders.append(start + words_of({name: sizes[name] for name in given}))
                expected.append(given == needed)
    answers = ["depends on more sizes than were given" not in answer for answer in probe(orders)]
    assert answers == expected, [order for order, a, e in zip(orders, answers, expected, strict=True) if a != e]


def test_values_that_a_type_lacks_are_named(probe: Probe, tmp_path: Path):
    index = next(i for i in range(GROUPS) if member_of(i)[0].spec.b == "int2")
    plan, sizes = member_of(index)
    sizes = sizes | {"K": 100, "N": 90}
    path = write_manifest(tmp_path / "design", plan)
    orders = []
    for i, (row, column, value) in enumerate([(0, 0, 2), (99, 89, -2), (3, 70, 127), (5, 64, -128)]):
        array = np.ones((100, 90), np.int8)
        array[row:, column] = value
        (tmp_path / f"{i}").write_bytes(array.tobytes())
        orders.append(f"{path} resident B 0 {tmp_path / str(i)} {tmp_path / 'none'} K=100 N=90")
    text = "WeightError operand B: the value at row {}, column {} is {}, expected -1 to 1; clip or quantise it first"
    places = [(0, 0, 2), (99, 89, -2), (3, 70, 127), (5, 64, -128)]
    assert probe(orders) == [text.format(*place) for place in places]


@pytest.mark.parametrize("type_", ["int8", "int16", "int32"])
@pytest.mark.parametrize("order", ["row", "column"])
def test_the_first_value_row_by_row_is_named_in_any_order(probe: Probe, tmp_path: Path, type_: str, order: str):
    """Of 9 x 70 values, which both of their ends are among, some are one beyond an end."""
    low, high, element = -5, 100, np.dtype(type_)
    build = Builder([], 1)
    x = build.argument("X", "i8", 8, 630 * element.itemsize)
    axes, dims = [(9, 9, None, False), (70, 70, None, False)], [(0, 9, 1, 70), (1, 70, 1, 1)]
    build.operand("X", x, "in", type_, 8 * element.itemsize, axes, dims, order=order)
    content = json.loads(write_manifest(tmp_path / "any", member_of(0)[0]).read_text()) | {"problems": []}
    content["sequence"]["program"] = build.program.model_dump(exclude_none=True)
    content["sequence"]["program"]["operands"][0]["values"] = [low, high]
    (tmp_path / "x.json").write_text(json.dumps(content))
    orders, expected = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        array = rng.choice([low, 0, high], (9, 70)).astype(element)
        array.flat[rng.integers(0, 630, seed)] = rng.choice([low - 1, high + 1], seed)
        (tmp_path / str(seed)).write_bytes(array.tobytes("C" if order == "row" else "F"))
        orders.append(f"{tmp_path / 'x.json'} place X 0 {tmp_path / str(seed)} {tmp_path / 'none'}")
        faults = np.argwhere((array < low) | (array > high)).tolist()
        expected.append(f"row {faults[0][0]}, column {faults[0][1]} is {array[*faults[0]]}" if faults else "ok ")
    said = [
        answer.partition("the value at ")[2].partition(", expected -5 to 100")[0] or answer for answer in probe(orders)
    ]
    assert said == expected


NUMBERS = [-(1 << 63), -(1 << 40), -9, -1, 0, 1, 2, 3, 7, 8, 9, 64, 100, 4097, 1 << 20, 1 << 31, 1 << 50, (1 << 63) - 1]
BITS = [1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 64, 128, 576, 1024]


def mutated(rng: random.Random, content: dict[str, Any]) -> str:
    """An operand of which some facts are others; the program stays well-formed."""
    program = content["sequence"]["program"]
    operand = rng.choice(program["operands"])
    for _ in range(rng.randint(1, 3)):
        part = rng.choice([operand, *operand["axes"], *operand["dims"], *operand["dims"]])
        names = [
            name for name in part if name in ("size", "walked", "tile", "count", "step", "stride", "offset", "staged")
        ]
        match rng.randint(0, 9):
            case 0:
                operand["bits"] = rng.choice(BITS)
            case 1:
                operand["blocked"] = rng.choice(["across", "down"])
            case 2:
                operand["missing"] = rng.choice([1e300, -1.5, 1e9, 2])
            case 3:
                operand["values"] = [rng.choice(NUMBERS), rng.choice(NUMBERS)]
            case 4:
                operand["type"] = rng.choice([*TYPES, "float99"])
            case 5:
                operand["axes"] = operand["axes"][:1]
                operand["dims"] = [dim | {"axis": 0} for dim in operand["dims"]]
            case 6:
                program["arguments"][operand["argument"]]["elements"] = added(rng, program)
            case _:
                part[rng.choice(names)] = added(rng, program)
    return operand["name"]


def added(rng: random.Random, program: dict[str, Any]) -> int:
    """The place of a new value: any number, or one that the program has, and a little more."""
    values, old = program["values"], rng.randrange(len(program["values"]))
    values.append(rng.choice([*NUMBERS, *range(1, 40)]))
    if rng.random() < 0.4 and not any("index" in map(str, value) for value in values if isinstance(value, list)):
        values.append([rng.choice(["add", "sub", "mul"]), old, len(values) - 1])
    return len(values) - 1


def test_no_operand_of_a_hostile_manifest_leaves_its_buffer(probe: Probe, tmp_path: Path):
    """Sanitizers end the probe where one does; most are refused by name."""
    rng, orders = random.Random(5), []
    (tmp_path / "array").write_bytes(bytes(1 << 16))
    contents = [json.dumps(manifest(member_of(index)[0], ()) | {"document": {}}) for index in range(0, GROUPS, 5)]
    for i in range(200):
        content = json.loads(rng.choice(contents))
        name = mutated(rng, content)
        path = tmp_path / f"{i}.json"
        path.write_text(json.dumps(content))
        sizes = {"M": rng.randint(1, 40), "K": rng.randint(1, 40), "N": rng.randint(1, 40)}
        way = "fetch" if name == "C" else "place"
        orders.append(f"{path} {way} {name} 0 {tmp_path / 'array'} {tmp_path / str(i)} {words_of(sizes)}")
    answers = probe(orders)
    assert len(answers) == len(orders)
    kinds = {kind: sum(answer.startswith(kind) for answer in answers) for kind in ("ok", "ManifestError")}
    assert min(kinds.values()) > len(orders) // 8, kinds
    assert all(len(answer) < 4096 for answer in answers)
