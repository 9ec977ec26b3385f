"""Host buffers of sequences: what arrays tell of sizes, what buffers hold, which operands stay."""

import numpy as np
import pytest

from bdforge.design.sequences import Builder, OperandError, Program, planned
from bdforge.design.sequences.buffers import arguments, check_array, empty, fetched, pack, placed, sizes_of, staying
from support.differences import same
from support.named import fields_of, rows
from support.scaled_rows import DEVICE, PROGRAM, arrays, sequence


def test_shapes_tell_the_sizes():
    assert sizes_of(PROGRAM, arrays(5, 8)) == {"m": 5, "n": 8}
    assert sizes_of(PROGRAM, {"s": np.zeros(3, np.float32)}) == {"n": 3}
    assert sizes_of(PROGRAM, {}, {"n": 4}) == {"n": 4}


@pytest.mark.parametrize(
    ("given", "known", "message"),
    [
        (
            arrays() | {"s": np.zeros(7, np.float32)},
            {},
            "operand s has the shape 7, so that n = 7; operand A has n = 8",
        ),
        (arrays(), {"n": 4}, "operand A has the shape 6x8, so that n = 8; what is packed has n = 4"),
        (arrays() | {"B": np.zeros((8, 7), np.int8, "F")}, {}, "shape 8x7, so that n = 7; operand A has n = 8"),
    ],
)
def test_sizes_that_contradict_each_other_are_named(given, known, message):
    with pytest.raises(OperandError, match=message):
        sizes_of(PROGRAM, given, known)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("A", np.zeros((2, 2), np.uint8), "operand A must be an int8 matrix, got uint8 of shape"),
        ("A", np.zeros(4, np.int8), "must be an int8 matrix, got int8 of shape"),
        ("A", np.zeros((0, 4), np.int8), r"got int8 of shape \(0, 4\)"),
        ("A", [[1]], "must be an int8 matrix, got list"),
        ("s", np.zeros(4), "operand s must be a float32 vector, got float64"),
    ],
)
def test_arrays_have_the_operands_type_and_rank(name, array, message):
    operand = next(operand for operand in PROGRAM.operands if operand.name == name)
    with pytest.raises(OperandError, match=message):
        check_array(operand, array)
    volume = operand.model_copy(update={"axes": operand.axes * 3})
    with pytest.raises(OperandError, match="array of rank"):
        check_array(volume, array)
    shape = (4,) if name == "s" else (4, 4)
    check_array(operand, np.zeros(shape, np.float32 if name == "s" else np.int8))


def test_buffers_hold_what_is_given_and_what_stands_for_the_rest():
    given = arrays()
    buffers = placed(sequence(), given)
    assert sorted(buffers) == [0, 1, 2]
    same(buffers[0], given["A"].reshape(-1))
    assert np.shares_memory(buffers[1], given["B"])  # the user's own memory, lines of which are columns
    same(buffers[1].reshape(-1).view(np.int8), given["B"].ravel("F"), "B by columns")
    assert buffers[2].tolist() == [2.0] * 8
    apart = placed(sequence(ldb=8), given)[1]
    assert not np.shares_memory(apart, given["B"])
    same(apart.reshape(-1).view(np.int8), given["B"].ravel("F"), "B in memory of its own")
    assert placed(sequence(), given | {"s": np.arange(8, dtype=np.float32)})[2].tolist() == list(range(8))
    with pytest.raises(OperandError, match="operand A is not given"):
        placed(sequence(), {"B": given["B"]})


def halves(staged: int) -> Program:
    """Y (n) and X (2 n): a size that no parameter is."""
    build = Builder(["n"], 1)
    n = build.parameter("n")
    for name, direction, size in (("X", "in", 2 * n), ("Y", "out", n)):
        place = build.argument(name, "i8", 8, size)
        build.operand(name, place, direction, "int8", 8, [(size, size, None, False)], [(0, size, 1, 1)], staged=staged)
    return build.program


@pytest.mark.parametrize("staged", [0, 1])
def test_arrays_have_the_sizes_that_follow_from_others(staged: int):
    """Too short ones would be read beyond their end, on an NPU too."""
    plan = planned(halves(staged), {"n": 3}, DEVICE)
    assert sizes_of(plan.program, {"X": np.ones(6, np.int8)}) == {}
    same(placed(plan, {"X": np.ones(6, np.int8)})[0], np.ones(6, np.int8), "X")
    for size in (5, 7):
        with pytest.raises(OperandError, match=f"operand X has the shape {size}, a problem of 3 needs 6$"):
            pytest.fail(f"{size} elements: {placed(plan, {'X': np.ones(size, np.int8)})}")


def test_inputs_without_the_first_size_stay_from_run_to_run():
    assert [operand.name for operand in staying(PROGRAM)] == ["B", "s"]
    given = arrays()
    sizes, buffers = pack(PROGRAM, DEVICE, {"B": given["B"]})
    assert sizes == {"n": 8}
    assert list(buffers) == [1]
    same(buffers[1].reshape(-1).view(np.int8), given["B"].ravel("F"), "packed B")


def test_a_run_has_a_buffer_for_every_argument_and_gives_its_outputs_back():
    plan = sequence()
    given = {2: np.arange(8, dtype=np.float32)}
    buffers = arguments(plan, given)
    assert fields_of(buffers, "dtype size") == rows(
        "dtype size", (np.int8, 48), (np.int8, 64), (np.float32, 8), (np.int32, 8)
    )
    assert buffers[2] is given[2]
    assert not any(buffer.any() for buffer in (buffers[0], buffers[1], buffers[3]))
    buffers[3][:] = range(8)
    assert {name: array.tolist() for name, array in fetched(plan, buffers).items()} == {"Y": list(range(8))}


@pytest.mark.parametrize(
    ("type_", "bits", "dtype"), [("i8", 8, "int8"), ("i16", 16, "int16"), ("i32", 32, "int32"), ("f32", 32, "float32"),
     ("bf16", 16, "bfloat16")],
)  # fmt: skip
def test_buffers_of_nobodys_array_have_the_type_of_their_elements(type_: str, bits: int, dtype: str):
    build = Builder(["n"], 1)
    build.argument("X", type_, bits, 3 * build.parameter("n"))
    buffer = empty(planned(build.program, {"n": 4}, DEVICE), 0)
    assert (buffer.dtype, buffer.shape) == (np.dtype(dtype), (12,))


def joined() -> Program:
    """W (2 n + 1 bytes) with the vectors B and D of n, a byte between them; x (m) apart."""
    build = Builder(["m", "n"], 1)
    m, n = build.parameter("m"), build.parameter("n")
    w, x = build.argument("W", "i8", 8, 2 * n + 1), build.argument("X", "i8", 8, m)
    for name, argument, size, offset in (("B", w, n, 0), ("x", x, m, 0), ("D", w, n, n + 1)):
        along = [(size, size, None, False)]
        build.operand(name, argument, "in", "int8", 8, along, [(0, size, 1, 1)], offset=offset)
    return build.program


PLACES = ("staged", "offset", "size", "walked", "tile", "count", "step", "stride")


@pytest.mark.parametrize("place", PLACES)
def test_an_operand_stays_only_where_nothing_of_it_needs_the_first_size(place: str):
    build = Builder(["m", "n"], 1)
    m, n = build.parameter("m"), build.parameter("n")
    x = build.argument("X", "i8", 8, 64)
    for name, own in (("A", m * n), ("B", n)):
        at = dict.fromkeys(PLACES, n) | {place: own}
        axes = [(at["size"], at["walked"], at["tile"], False)]
        dims = [(0, at["count"], at["step"], at["stride"])]
        build.operand(name, x, "in", "int8", 8, axes, dims, staged=at["staged"], offset=at["offset"])
    build.operand("M", x, "in", "int8", 8, [(m, m, None, False)], [(0, m, 1, 1)])
    assert [operand.name for operand in staying(build.program)] == ["B"]


def test_operands_of_one_buffer_are_packed_and_wished_for_together():
    program, given = joined(), {"B": np.array([1, 2, 3], np.int8), "D": np.array([4, 5, 6], np.int8)}
    assert [operand.name for operand in staying(program)] == ["B", "D"]
    sizes, buffers = pack(program, DEVICE, given)
    assert (sizes, list(buffers)) == ({"n": 3}, [0])
    same(buffers[0], np.array([1, 2, 3, 0, 4, 5, 6], np.int8), "B and D in W")
    for name, other in (("B", "D"), ("D", "B")):  # half a buffer would be read as a whole one
        with pytest.raises(OperandError, match=f"operand {other} is not given"):
            pack(program, DEVICE, {name: given[name]})
    plan = planned(program, {"m": 2, "n": 3}, DEVICE)
    d = [operand for operand in program.operands if operand.name == "D"]
    same(placed(plan, given, d)[0], np.array([0, 0, 0, 0, 4, 5, 6], np.int8), "D alone in W")
    same(fetched(plan, buffers, d), {"D": given["D"]}, "what is fetched of D alone")
