"""Full ELFs: what is handed to aiebu-asm, with tools made up by scripts."""

import json
from pathlib import Path

import pytest

from bdforge.devices.txn_format.codec import decode
from bdforge.devices.txn_format.operations import LoadPdi
from bdforge.runtime.toolchain import ToolError
from bdforge.runtime.toolchain.full_elf import ElfTools, elf_config, elf_words, write_full_elf
from support.scaled_rows import sequence

PDI = b"a PDI of 21 bytes ..."


def tools(partition: str) -> ElfTools:
    """xclbinutil that dumps `partition` and a PDI beside it, aiebu-asm that copies what it is told to."""
    dump = f"printf '%s' '{partition}' > partition.json; printf '%s' '{PDI.decode()}' > one.pdi"
    return ElfTools(["sh", "-c", dump, "xclbinutil"], ["sh", "-c", 'cat "$4" two.bin > "$6"', "aiebu-asm"])


def named(*files: str) -> str:
    return json.dumps({"aie_partition": {"PDIs": [{"file_name": file} for file in files]}})


def test_every_sequence_is_an_instance_behind_the_loading_of_one_pdi(tmp_path: Path):
    plans = {"one": sequence(), "two": sequence(m=4)}
    write_full_elf(plans, tmp_path / "x.xclbin", tmp_path / "x.elf", tools(named("one.pdi")))
    work = tmp_path / "x.elf.prj"
    config = json.loads((work / "elf.json").read_text())
    assert config == elf_config(plans, "one.pdi")
    assert (tmp_path / "x.elf").read_bytes() == (work / "elf.json").read_bytes() + (work / "two.bin").read_bytes()
    for name, plan in plans.items():
        words = elf_words(plan, len(PDI))
        assert (work / f"{name}.bin").read_bytes() == words.astype("<u4").tobytes(), name
        first, *rest = decode(words).operations
        assert first == LoadPdi(1, len(PDI), 0), name
        assert rest == list(plan.operations()), name


def test_the_kernel_has_the_programs_arguments_as_pointers():
    (kernel,) = elf_config({"a": sequence(), "b": sequence()}, "one.pdi")["xrt-kernels"]
    assert [(each["name"], each["offset"]) for each in kernel["arguments"]] == [
        ("a", "0x00"), ("b", "0x08"), ("s", "0x10"), ("y", "0x18"),
    ]  # fmt: skip
    assert kernel["instance"] == [{"id": name, "TXN_ctrl_code_file": f"{name}.bin"} for name in "ab"]
    assert kernel["PDIs"] == [{"id": 1, "PDI_file": "one.pdi"}]


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ("{", r"partition\.json: no partition of an xclbin: JSONDecodeError"),
        ("{}", r"partition\.json: no partition of an xclbin: KeyError 'aie_partition'"),
        (named(), r"partition\.json: expected one PDI beside it, it names none"),
        (named("one.pdi", "two.pdi"), r"partition\.json: expected one PDI beside it, it names one\.pdi, two\.pdi"),
        (named("other.pdi"), r"partition\.json: expected one PDI beside it, it names other\.pdi"),
    ],
)
def test_a_partition_that_has_not_one_pdi_is_refused(tmp_path: Path, partition: str, message: str):
    (tmp_path / "x.elf").write_text("old")
    with pytest.raises(ToolError, match=message):
        write_full_elf({"one": sequence()}, tmp_path / "x.xclbin", tmp_path / "x.elf", tools(partition))
    assert (tmp_path / "x.elf").read_text() == "old"
