"""Files that hold an instruction stream: raw words, hexadecimal text, ELFs of aiebu; and what others are.

Sources: aiebu 3ab802a and files of XRT 2.25 (`.ctrltext` holds the stream unchanged, patches are relocations); mlir-aie
5ff2ab97, whose `insts.txt` has eight hexadecimal digits a line.
"""

import re
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from bdforge.devices.txn_format.codec import TxnError

STREAM_SECTION = ".ctrltext"
CORE_MACHINE = 0x108  # e_machine of a core's program (aie-rt's loader)
_ELF, _CDO_MAGIC = b"\x7fELF", b"CDO\0"
_WORD = re.compile(r"(0[xX])?[0-9a-fA-F]{1,8}")
_TEXT_PROBE_BYTES = 4096
_OTHERS = {
    b"xclbin2\0": "an xclbin: it holds the array's configuration; its instruction stream is the insts.bin (or the ELF) "
    "that was made beside it",
    bytes.fromhex("dd0000004433221188776655ccbbaa99"): "a PDI: it holds an array configuration, not an instruction "
    "stream; give the insts.bin that was made beside it",
    b"\x93NUMPY": "an .npy array; write its words with .tofile(), or give the insts.bin that they came from",
    b"PK\x03\x04": "a zip archive; give the instruction stream in it",
    b"\x1f\x8b": "a gzip file; decompress it first",
}


@dataclass(frozen=True, slots=True)
class StreamSection:
    """A stream inside an ELF: the section's name, the runtime sequence where the ELF names it, its bytes."""

    name: str
    sequence: str | None
    data: bytes

    def __str__(self) -> str:
        return self.name if self.sequence is None else f"{self.name} ({self.sequence})"


def stream_bytes(data: bytes, section: str | None = None) -> bytes:
    """Raw words, little endian, of an instruction stream in any form that is known.

    `section` names one of an ELF's streams by section or sequence. TxnError says what the file is where it holds no
    stream, and which streams there are where it holds several.
    """
    if data.startswith(_ELF):
        return _chosen(elf_sections(data), section).data
    if section is not None:
        raise TxnError(f"section {section!r} was asked for, but this is no ELF; leave the section out")
    for magic, what in _OTHERS.items():
        if data.startswith(magic):
            raise TxnError(f"this is {what}")
    if data[4:8] == _CDO_MAGIC:
        raise TxnError("this is a CDO, an array configuration, not an instruction stream; give the insts.bin")
    text = _text(data)
    return data if text is None else _of_text(text)


def elf_sections(data: bytes) -> list[StreamSection]:
    """The streams in an ELF, in its order; TxnError for an ELF without one, or a damaged one."""
    try:
        elf = ELFFile(BytesIO(data))
        names = _sequences(elf)
        sections = [(number, part.name, part.data()) for number, part in enumerate(elf.iter_sections())]
        machine = elf["e_machine"]
    except Exception as error:  # pyelftools raises whatever its parsers do on malformed files
        raise TxnError(f"this ELF is damaged: {str(error) or type(error).__name__}") from None
    found = [
        StreamSection(name, names.get(number), content) for number, name, content in sections if _holds_stream(name)
    ]
    if found:
        return found
    if machine == CORE_MACHINE:
        raise TxnError("this is the ELF of a core's program, not an instruction stream; give the insts.bin or full ELF")
    known = ", ".join(name for _, name, _ in sections if name) or "none"
    raise TxnError(f"this ELF has no section {STREAM_SECTION} with an instruction stream; it has {known}")


def _holds_stream(name: str) -> bool:
    return name == STREAM_SECTION or name.startswith(f"{STREAM_SECTION}.")


def _sequences(elf: ELFFile) -> dict[int, str]:
    """Names of sequences by the number of their stream's section: a group's symbol names all its members."""
    symbols = elf.get_section_by_name(".symtab")
    named: dict[int, str] = {}
    for part in elf.iter_sections():
        if part["sh_type"] != "SHT_GROUP" or not isinstance(symbols, SymbolTableSection):
            continue
        symbol = symbols.get_symbol(part["sh_info"])
        members = np.frombuffer(part.data(), "<u4")[1:]  # the first word holds flags
        named |= {int(member): symbol.name for member in members}
    return named


def _chosen(sections: list[StreamSection], wanted: str | None) -> StreamSection:
    chosen = [part for part in sections if wanted in (None, part.name, part.sequence)]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(map(str, sections))
    if not chosen:
        raise TxnError(f"this ELF has no instruction stream {wanted!r}; it has {known}")
    raise TxnError(
        f"this ELF holds {len(chosen)} instruction streams; write one of them to a file with bdforge insts extract "
        f"--section: {known}"
    )


def _text(data: bytes) -> str | None:
    """The file as text, or None for a binary one."""
    probe = data[:_TEXT_PROBE_BYTES]
    if not data or any(byte < 0x20 and byte not in b"\t\n\r\f" for byte in probe):
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _of_text(text: str) -> bytes:
    words = []
    for number, line in enumerate(text.splitlines(), start=1):
        for token in line.replace(",", " ").split():
            if not _WORD.fullmatch(token):
                shown = token if len(token) <= 40 else f"{token[:40]}…"
                raise TxnError(
                    f"line {number}: {shown!r} is no word of up to eight hexadecimal digits, as text of an instruction "
                    "stream has; words of MLIR are made with bdforge insts encode"
                )
            words.append(int(token, 16))
    return np.array(words, "<u4").tobytes()
