"""Operands in C++ that are refused by name: sizes that are missing, values that a type lacks, hostile manifests."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from library_builds import write_manifest
from operand_cases import in_memory, member_of, probe, random_array, shape_of, words_of

from bdforge.design.sequences import Builder
from bdforge.design.sequences.interpret import values_of
from bdforge.design.sequences.sequence_program import Program
from bdforge.devices.types import TYPES
from bdforge.operators import manifest
from support.family import GROUPS
from support.shared_places import LEGAL_PLACES, REFUSED_PLACES


def test_operands_need_no_more_sizes_than_they_depend_on(tmp_path: Path):
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
        f"{path} resident B 0 {tmp_path / 'b'} {tmp_path / 'none'} K=0 N=8",
        f"{path} place B 0 {tmp_path / 'b'} {tmp_path / 'none'} {few}",
        f"{path} place B 0 {tmp_path / 'b'} {tmp_path / 'none'} {few} Q=1",
    ]
    answers = probe(orders)
    assert answers[:2] == ["ok ", "ok "]
    assert (tmp_path / "all").read_bytes() == (tmp_path / "few").read_bytes()
    assert "operand B depends on more sizes than were given; there are M, K, N" in answers[2]
    assert "K = 0 is outside 1 to" in answers[3]
    assert "size M is missing; give all of M, K, N" in answers[4]
    assert "has no size Q; there are M, K, N" in answers[5]


def depends_on(program: Program, value: int | None) -> set[str]:
    """The parameters that a value is made of."""
    found = program.values[value] if value is not None else 0
    if isinstance(found, str):
        return {found}
    return (
        set().union(*(depends_on(program, int(operand)) for operand in found[1:])) if isinstance(found, list) else set()
    )


@pytest.mark.slow
@pytest.mark.parametrize("step", [44, 5])
def test_each_operand_of_any_design_is_known_by_the_sizes_that_it_depends_on(tmp_path: Path, step: int):
    (tmp_path / "array").write_bytes(bytes(1 << 20))
    orders, expected = [], []
    for index in range(0, GROUPS, step):
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


@pytest.mark.parametrize("type_", ["int8", "int16", "int32"])
@pytest.mark.parametrize("order", ["row", "column"])
def test_the_first_value_row_by_row_is_named_in_any_order(tmp_path: Path, type_: str, order: str):
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


def test_an_element_has_one_place_in_the_words_of_python(tmp_path: Path):
    content = json.loads(write_manifest(tmp_path / "any", member_of(0)[0]).read_text()) | {"problems": []}
    (tmp_path / "array").write_bytes(bytes(64))
    orders = []
    for number, (axes, dims, *_) in enumerate([*REFUSED_PLACES, *LEGAL_PLACES]):
        build = Builder([], 1)
        build.operand("X", build.argument("X", "i8", 8, 64), "in", "int8", 8, axes, dims)
        content["sequence"]["program"] = build.program.model_dump(exclude_none=True)
        (path := tmp_path / f"{number}.json").write_text(json.dumps(content))
        orders.append(f"{path} place X 0 {tmp_path / 'array'} {tmp_path / 'none'}")
    expected = [said for *_, said in REFUSED_PLACES] + ["ok "] * len(LEGAL_PLACES)
    answers = probe(orders)
    assert [said for said, answer in zip(expected, answers, strict=True) if said not in answer] == [], answers


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


@pytest.mark.daily("44-100")
@pytest.mark.parametrize(("step", "count"), [(44, 100), (5, 400)])
def test_no_operand_of_a_hostile_manifest_leaves_its_buffer(tmp_path: Path, step: int, count: int):
    """Sanitizers end the probe where one does; most are refused by name."""
    rng, orders = random.Random(5), []
    (tmp_path / "array").write_bytes(bytes(1 << 16))
    contents = [json.dumps(manifest(member_of(index)[0], ()) | {"document": {}}) for index in range(0, GROUPS, step)]
    for i in range(count):
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
