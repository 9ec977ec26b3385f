"""Stacks of cores against the frames of kernels, where an object file or the kernel tells them."""

import struct
from pathlib import Path

import pytest

import bdforge
from bdforge.array.emulator import ArgumentError, CoreError
from bdforge.array.emulator.cores.core import Frame, frames_of
from support.small_designs import core

FUNCTIONS = {"probe": 1216, "helper": 96, "empty": 0}
HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
SECTION = struct.Struct("<10I")
NULL, PROGBITS, SYMTAB, STRTAB, RELA, REL = 0, 1, 2, 3, 4, 9
MACHINE_AIE = 264


def uleb(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def strings(*names: str) -> tuple[bytes, dict[str, int]]:
    data, places = b"\0", {}
    for name in names:
        places[name] = len(data)
        data += name.encode() + b"\0"
    return data, places


def elf(relocations: int | None, functions: dict[str, int] = FUNCTIONS) -> bytes:
    """A 32-bit object with a `.stack_sizes`: its addresses by RELA, by REL, or (None) as in a linked file."""
    names, name_at = strings(*functions)
    symbols, stacks, relocated = bytes(16), b"", b""
    for number, (name, size) in enumerate(functions.items()):
        symbols += struct.pack("<IIIBBH", name_at[name], 16 * number, 16, 0x12, 0, 1)
        if relocations == RELA:  # by the section's symbol would do as well: here by the function's
            relocated += struct.pack("<IIi", len(stacks), (number + 1) << 8 | 1, 0)
        elif relocations == REL:
            relocated += struct.pack("<II", len(stacks), (number + 1) << 8 | 1)
        stacks += struct.pack("<I", 16 * number if relocations is None else 0) + uleb(size)
    shown, shown_at = strings(".text", ".stack_sizes", ".symtab", ".strtab", ".shstrtab", ".rel")
    sections = [
        (0, NULL, b"", 0, 0, 0), (shown_at[".text"], PROGBITS, bytes(64), 0, 0, 0),
        (shown_at[".stack_sizes"], PROGBITS, stacks, 1, 0, 0), (shown_at[".symtab"], SYMTAB, symbols, 4, 1, 16),
        (shown_at[".strtab"], STRTAB, names, 0, 0, 0), (shown_at[".shstrtab"], STRTAB, shown, 0, 0, 0),
    ]  # fmt: skip
    if relocations is not None:
        sections.append((shown_at[".rel"], relocations, relocated, 3, 2, 12 if relocations == RELA else 8))
    body, table = b"", b""
    for name, kind, data, link, info, entry in sections:
        table += SECTION.pack(name, kind, 0, 0, HEADER.size + len(body), len(data), link, info, 1, entry)
        body += data
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    offset = HEADER.size + len(body)
    head = HEADER.pack(ident, 1, MACHINE_AIE, 1, 0, 0, offset, 0, HEADER.size, 0, 0, SECTION.size, len(sections), 5)
    return head + body + table


@pytest.fixture
def kernels_o(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.o"
    path.write_bytes(elf(RELA))
    return path


@pytest.mark.parametrize("relocations", [RELA, REL, None])
def test_frames_are_read_from_objects_and_linked_files(relocations, tmp_path):
    path = tmp_path / "k.o"
    path.write_bytes(elf(relocations))
    assert frames_of(path) == {name: Frame(size, "k.o") for name, size in FUNCTIONS.items()}


CALL = """      %x = arith.constant 3 : i32
      func.call @probe(%data, %x) : (memref<8xi32>, i32) -> ()
      aie.end"""


def text(stack: str = "", alloca: str = "") -> str:
    return core(f"{alloca}\n{CALL}").replace("\n    }\n  }\n}", f"\n    }} {stack}\n  }}\n}}")


def run(design: str, kernel=lambda data, x: None, **options) -> bdforge.Result:
    return bdforge.emulate(design, kernels={"probe": kernel}, **options)


def test_a_frame_larger_than_the_stack_is_refused_by_name(kernels_o):
    message = r"core \(0, 2\): its stack has 1024 bytes, but probe takes 1216 \(kernels\.o\), .* raise stack_size"
    with pytest.raises(CoreError, match=message):
        run(text(), objects=[kernels_o])
    (warning,) = run(text(), objects=[kernels_o], permissive=["stack"]).warnings
    assert warning.startswith("stack (permitted): <string>:")
    assert run(text()).warnings == ()


def test_what_the_program_keeps_counts_too(kernels_o):
    alloca = "%m = memref.alloca() : memref<16xi32>"
    assert run(text("{stack_size = 1216 : i32}"), objects=[kernels_o]).warnings == ()
    assert run(text("{stack_size = 1280 : i32}", alloca), objects=[kernels_o]).warnings == ()
    with pytest.raises(CoreError, match=r"stack has 1279 bytes, but probe takes 1216 beside 64 of memref\.alloca"):
        run(text("{stack_size = 1279 : i32}", alloca), objects=[kernels_o])


def test_an_object_beside_the_design_is_read(kernels_o):
    linked = text('{link_with = "kernels.o"}')
    with pytest.raises(CoreError, match="probe takes 1216"):
        run(linked, file=str(kernels_o.parent / "design.mlir"))
    assert run(linked, file="/nowhere/design.mlir").warnings == ()
    kernels_o.write_text("no object")
    assert run(linked, file=str(kernels_o.parent / "design.mlir")).warnings == ()


def test_who_says_more_about_a_frame_is_believed(kernels_o, tmp_path):
    """The kernel itself before objects of the call, those before the object beside the design."""
    given = tmp_path / "given.o"
    given.write_bytes(elf(RELA, {"probe": 1300}))
    linked, file = text('{link_with = "kernels.o"}'), str(kernels_o.parent / "design.mlir")
    with pytest.raises(CoreError, match=r"probe takes 1300 \(given\.o\)"):
        run(linked, file=file, objects=[given])
    for declared in (64, 0):
        assert run(linked, Probe(declared), file=file, objects=[given]).warnings == ()
    later = tmp_path / "later.o"
    later.write_bytes(elf(RELA, {"probe": 1400}))
    with pytest.raises(CoreError, match=r"probe takes 1400 \(later\.o\)"):
        run(linked, file=file, objects=[given, later])


class Probe:
    def __init__(self, stack_bytes: int):
        self.stack_bytes = stack_bytes

    def __call__(self, data, x) -> None:
        del data, x


def test_a_kernel_may_declare_its_frame():
    with pytest.raises(CoreError, match=r"probe takes 1025 \(as the kernel declares\)"):
        run(text(), Probe(1025))
    assert run(text(), Probe(1024)).warnings == ()


@pytest.mark.parametrize("content", [b"", b"no ELF at all", elf(RELA)[:70], elf(RELA)[:200]])
def test_what_is_no_object_is_refused(content, tmp_path):
    path = tmp_path / "k.o"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=r"k\.o: no readable object file"):
        run(text(), objects=[path])
    with pytest.raises(ArgumentError, match="No such file"):
        run(text(), objects=[tmp_path / "x.o"])
