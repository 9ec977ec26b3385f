"""Images made without a compiler: run by the emulated array from their own xclbin, equal to numpy."""

import hashlib

import pytest

from bdforge.array.emulator import emulate
from bdforge.array.images.programs import read_programs
from bdforge.array.images.read import read_image
from bdforge.core.codegen.objects import linkable
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import device_named
from bdforge.devices.txn_format.operations import BlockWrite
from bdforge.operators import plan, render, spec_from
from bdforge.operators.gemm import GemmProblem
from bdforge.runtime.toolchain import Tool, assembled
from bdforge.runtime.toolchain.assembled import built_image, cpp_only, for_emulation_only, toolchain_facts
from support.differences import same

SHAPE = (37, 100, 90)


def small(b: str, c: str = "int32", device: str = "npu2", tile=(16, 24, 32), rho: int = 1):
    m, k, n = tile
    content = {
        "kind": "gemm",
        "types": {"a": "int8", "b": b, "c": c, **({"accumulator": "int32"} if b == "int2" or c == "bf16" else {})},
        "array": {"device": device, "rows": 2, "columns": 2},
        "tile": {"m": m, "k": k, "n": n},
        **({"epilogue": {"scale": True}} if device == "npu1" and c == "bf16" else {}),
        "buffers": {"k_mt": 2 * k, "c_buffers": 1, "rho": rho},
        "problems": [{"name": "odd", "M": SHAPE[0], "K": SHAPE[1], "N": SHAPE[2]}],
    }
    return plan(spec_from(content, f"small_{b}"), device_named("phoenix" if device == "npu1" else "strix_halo"))


@pytest.mark.slow
def test_kernels_of_files_come_before_those_that_are_assembled(tmp_path):
    planned = small("int8")
    text, made = image_of(planned)
    names = [problem.sequence for problem in planned.spec.problems]
    (tmp_path / "mine.s").write_text("// mine\n.globl mm_i8_i8_i32\nmm_i8_i8_i32:\nret\n" + "nop\n" * 5)
    given = linkable(tmp_path / "mine.s", "aie2p")
    image = built_image(text, "small.mlir", planned.kernels.defines, names, given)
    assert "// mine" in image.programs[0, 2].source
    assert "// mine" not in made.programs[0, 2].source
    assert "zero_i32: " in image.programs[0, 2].source


def image_of(planned):
    text = render(planned, planned.spec.problems)
    names = [problem.sequence for problem in planned.spec.problems]
    return text, built_image(text, "small.mlir", planned.kernels.defines, names)


@pytest.mark.daily("i2")
@pytest.mark.parametrize(
    "planned",
    [pytest.param(small("int4", tile=(24, 40, 32)), marks=pytest.mark.slow),
     small("int2", tile=(32, 40, 32), rho=2), small("int2", "bf16", tile=(32, 40, 32), rho=2),
     pytest.param(small("int8", "int8"), marks=pytest.mark.slow),
     small("int8", "int16", "npu1")],
    ids=["i4", "i2", "bf16", "i8", "aie2"],
)  # fmt: skip
def test_machine_code_in_every_core_equals_numpy(planned):
    text, image = image_of(planned)
    assert not image.without
    programs = {program.tile: program for program in read_programs(image.xclbin) if program.tile is not None}
    assert len(programs) == 4
    problem = GemmProblem(*SHAPE)
    inputs = planned.random(problem, 3)
    steps = planned.sequence(problem)
    buffers = arguments(steps, placed(steps, inputs))
    (words,) = image.streams.values()
    assert words == steps.words().astype("<u4").tobytes()
    result = emulate(text, buffers, instructions=words, elfs=programs)
    assert len(result.cores) == 4  # each tells of machine code that it ran
    for name, expected in planned.reference(inputs).items():
        same(fetched(steps, buffers)[name], expected.values)


def test_the_same_design_gives_the_same_bytes():
    planned = small("int2", tile=(32, 40, 32), rho=2)
    first, second = (image_of(planned)[1] for _ in range(2))
    assert first.xclbin == second.xclbin
    assert {p.elf for p in first.programs.values()} == {p.elf for p in second.programs.values()}


@pytest.mark.slow
def test_cores_whose_kernels_exist_in_cpp_only_stay_without_code_and_are_named():
    planned = small("int8", "bf16", "npu1")
    _, image = image_of(planned)
    assert set(image.without) == {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert all("finish_i32_bf16 is not assembled" in reason for reason in image.without.values())
    (operations,) = read_image(image.xclbin).configurations
    code = [op for op in operations if isinstance(op, BlockWrite) and op.address & 0xFF000 in range(0x20000, 0x24000)]
    assert not code
    reasons = cpp_only(planned.kernels.symbols, planned.device.generation, planned.kernels.defines)
    sentence = for_emulation_only("small.emulated.xclbin", reasons)
    assert "no xclbin for silicon: its cores have no machine code of finish_i32_bf16" in sentence
    assert toolchain_facts("bdforge", [], image.without)["host_cores"] == [[0, 2], [0, 3], [1, 2], [1, 3]]


def test_the_manifest_names_what_made_an_image_by_its_hash(tmp_path):
    compiler = tmp_path / "clang++"
    compiler.write_bytes(b"a compiler")
    tools = [
        Tool(name, path, "7", (), "")
        for name, path in (("there", compiler), ("gone", tmp_path / "gone"), ("none", None))
    ]
    own, *found = toolchain_facts("aiecc", tools)["tools"]
    assert own["name"] == "bdforge"
    assert toolchain_facts("aiecc", tools)["host_cores"] == []
    without = {(1, 3): "x", (0, 3): "x", (1, 2): "x"}
    assert toolchain_facts("aiecc", tools, without)["host_cores"] == [[0, 3], [1, 2], [1, 3]], "in the tiles' order"
    assert [(one["name"], one["version"], one["sha256"]) for one in found] == [
        ("there", "7", hashlib.sha256(b"a compiler").hexdigest()), ("gone", "7", ""),
    ]  # fmt: skip


def test_the_hash_of_bdforge_follows_from_names_and_content_of_its_code_and_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(assembled, "PACKAGE", tmp_path)
    seen: dict[str, list[int | str]] = {}
    for number, (name, content) in enumerate(
        [("b.py", "1"), ("a/b.csv", "2"), ("c.hpp", "3"), ("c.cpp", "4"), ("c.cpp", "5"), ("notes.md", "6")]
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
        seen.setdefault(assembled._own_hash.__wrapped__(), []).append(number)
    (tmp_path / "b.py").rename(tmp_path / "d.py")
    seen.setdefault(assembled._own_hash.__wrapped__(), []).append("renamed")
    assert list(seen.values()) == [[0], [1], [2], [3], [4, 5], ["renamed"]]
    parts = (("a/b.csv", "2"), ("c.cpp", "5"), ("c.hpp", "3"), ("d.py", "1"))
    text = "".join(f"{name}\n{content}" for name, content in parts)
    assert list(seen)[-1] == hashlib.sha256(text.encode()).hexdigest()
