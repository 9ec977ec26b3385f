"""What XRT's own tools and headers make: xclbins and full ELFs around a PDI, and a program."""

import json
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

from bdforge.operators.gemm import GemmPlan, sequence
from bdforge.operators.gemm.spec import GemmProblem
from bdforge.runtime.toolchain.full_elf import ElfTools, write_full_elf
from support.xrt_packages import Packages

PDI = "design.pdi"
PDI_UUID = UUID(int=1)
KERNEL_ID = "0x901"


def make_xclbin(
    xrt: Packages, path: Path, pdi: bytes, columns: int, kernel: str = "MLIR_AIE", operands: int = 3
) -> Path:
    """An xclbin with one kernel that takes opcode, instructions, their count, and `operands` buffers."""
    folder = path.parent
    (folder / PDI).write_bytes(pdi)
    for name, content in (
        ("mem.json", _memory()),
        ("kernels.json", _kernels(kernel, operands)),
        ("part.json", _partition(columns)),
    ):
        (folder / name).write_text(json.dumps(content))
    sections = ["MEM_TOPOLOGY:JSON:mem.json", "AIE_PARTITION:JSON:part.json"]
    words = [word for section in sections for word in ("--add-replace-section", section)]
    tool(xrt, folder, "xclbinutil", "--add-kernel", "kernels.json", *words, "--force", "--output", path.name)
    return path


def make_elf(xrt: Packages, xclbin: Path, plan: GemmPlan) -> Path:
    """The full ELF of `plan` beside an xclbin, made as `scons format=elf` makes it."""
    tools = ElfTools(xrt.command("xclbinutil"), xrt.command("aiebu-asm"))
    output = xclbin.with_suffix(".elf")
    sequences = {problem.sequence: plan.sequence(problem) for problem in plan.spec.problems}
    write_full_elf(sequences, xclbin, output, tools)
    return output


def make_instruction_elf(xrt: Packages, path: Path, plan: GemmPlan, problem: GemmProblem) -> Path:
    """An ELF with instructions only."""
    write_words(path.parent / "insts.bin", plan, problem)
    tool(xrt, path.parent, "aiebu-asm", "-t", "aie2txn", "-c", "insts.bin", "-o", path.name)
    return path


def write_words(path: Path, plan: GemmPlan, problem: GemmProblem) -> None:
    """The instruction stream as a file."""
    sequence(plan, problem.M, problem.K, problem.N).words().astype("<u4").tofile(path)


def compile_stock_program(xrt: Packages, program: Path) -> Path:
    """A program that is linked with XRT and with nothing of bdforge."""
    source = Path(__file__).parent / "stock_xrt.cpp"
    paths = ["-isystem", str(xrt.prefix / "include"), str(source), "-o", str(program), f"-L{xrt.libraries}"]
    libraries = ["-lxrt_coreutil", "-luuid", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    subprocess.run(["g++", "-std=c++17", "-O0", *paths, *libraries], check=True)
    return program


def tool(xrt: Packages, folder: Path, *words: str) -> str:
    """What one of XRT's tools says, run in `folder`."""
    done = subprocess.run(xrt.command(*words), cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _memory() -> dict[str, Any]:
    banks = [
        {"m_type": "MEM_DRAM", "m_used": "1", "m_sizeKB": size, "m_tag": tag, "m_base_address": "0x4000000"}
        for tag, size in (("HOST", "0x10000"), ("SRAM", "0xc000"))
    ]
    return {"mem_topology": {"m_count": str(len(banks)), "m_mem_data": banks}}


def _kernels(name: str, operands: int) -> dict[str, Any]:
    scalar = {"address-qualifier": "SCALAR"}
    memory = {"address-qualifier": "GLOBAL"}
    arguments = [
        {"name": "opcode", "type": "uint64_t", "offset": "0x00"} | scalar,
        {"name": "instr", "type": "char *", "offset": "0x08", "memory-connection": "SRAM"} | memory,
        {"name": "ninstr", "type": "uint32_t", "offset": "0x10"} | scalar,
    ]
    arguments += [
        {"name": f"bo{i}", "type": "void*", "offset": hex(0x14 + 8 * i), "memory-connection": "HOST"} | memory
        for i in range(operands)
    ]
    extended = {"subtype": "DPU", "functional": "0", "dpu_kernel_id": KERNEL_ID}
    kernel = {"name": name, "type": "dpu", "extended-data": extended, "arguments": arguments}
    return {"ps-kernels": {"kernels": [kernel | {"instances": [{"name": "MLIRAIE"}]}]}}


def _partition(columns: int) -> dict[str, Any]:
    group = {"name": "DPU", "type": "PRIMARY", "pdi_id": "0x01", "dpu_kernel_ids": [KERNEL_ID]}
    groups = [group | {"pre_cdo_groups": ["0xC1"]}]
    pdi = {"uuid": str(PDI_UUID), "file_name": PDI, "cdo_groups": groups}
    partition = {"column_width": columns, "start_columns": [0]}
    numbers = {"operations_per_cycle": "2048", "inference_fingerprint": "23423", "pre_post_fingerprint": "12345"}
    return {"aie_partition": {"name": "QoS", "partition": partition, "PDIs": [pdi]} | numbers}
