"""Operands in C++: buffers and arrays are Python's byte for byte, whatever the manifest says stays in its buffer."""

import json
from pathlib import Path

import numpy as np
import pytest
from library_builds import write_manifest
from operand_cases import in_memory, member_of, probe, random_array, shape_of, words_of

from bdforge.design.sequences import Builder, ProgramError
from bdforge.design.sequences.interpret import values_of
from bdforge.design.sequences.operand_places import check_places
from bdforge.design.sequences.operands import fetch, place
from bdforge.design.sequences.sequence_program import Program
from bdforge.devices import device_named
from bdforge.operators.contraction import ContractionError, contraction, plan_contraction
from bdforge.operators.gemm import plan_gemm, spec_from
from support.built_designs import spec_content
from support.family import GROUPS
from support.tccg import random_case
from support.wrong_places import numbers

DEVICE = device_named("strix_halo")


def follow_all(cases: list[tuple[Path, dict[str, int], np.random.Generator, str]]) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_operands_of_the_family_are_placed_and_fetched_as_python_does(tmp_path: Path, part: int):
    cases = []
    for index in range(part, GROUPS, 8):
        plan, sizes = member_of(index)
        path = write_manifest(tmp_path / str(index), plan)
        cases.append((path, sizes, np.random.default_rng([index, 1]), str(plan.spec.content)))
    follow_all(cases)


@pytest.mark.slow
def test_tensors_of_any_order_are_placed_and_fetched_as_python_does(tmp_path: Path):
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
    follow_all(cases)


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


@pytest.mark.slow
def test_any_layout_is_placed_and_fetched_as_python_does(tmp_path: Path):
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
    follow_all(cases)


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


def has_places(program: Program) -> bool:
    """Whether its operand gives each element a place of its own."""
    try:
        check_places(program.operands[0], values_of(program, {}))
    except ProgramError:
        return False
    return True


def test_memory_is_used_in_place_only_where_it_holds_the_lines(tmp_path: Path):
    """By the elements that hold each position alone: the array's lines, and nothing else of it."""
    path = write_manifest(tmp_path / "any", member_of(0)[0])
    content = json.loads(path.read_text()) | {"problems": []}
    drawn = (some_lines(np.random.default_rng(seed)) for seed in range(400))
    programs = [case for case in drawn if has_places(case[0])][:120]
    assert len(programs) == 120
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
