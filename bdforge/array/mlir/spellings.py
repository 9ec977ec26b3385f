"""Spellings of mlir-aie's texts from 2023 to 2025, rewritten as the form up to 1.3.4 has them.

Only what is the same design in other words; docs/building.md lists it. Comments and layout stay.
"""

import re
from collections.abc import Callable, Iterator

Edits = Iterator[tuple[int, int, str]]
"""Start, end and new text of each place."""

_COMMENT = re.compile(r"//[^\n]*")
_INDEX = r"(-?(?:0x[0-9a-fA-F]+|[0-9]+))"
_NAMES = {
    "aie.shimmux": "aie.shim_mux", "aie.packetrules": "aie.packet_rules", "aie.masterset": "aie.masterset",
    "aiex.runtime_sequence": "aie.runtime_sequence", "arith.maxf": "arith.maximumf", "arith.minf": "arith.minimumf",
}  # fmt: skip
_DEVICES = {"ipu": "npu1", "npu": "npu1", "npu1_4col": "npu1", "npu2_8col": "npu2"}
_STRIDES = 3  # that a transfer named until its innermost stride could be another than 1


def current(text: str) -> str:
    """A text with every old spelling replaced; the very text where there is none."""
    for rewrite in _REWRITES:
        edits = list(rewrite(_COMMENT.sub(lambda found: " " * len(found[0]), text)))
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
    return text


def _substituted(pattern: str, new: Callable[[re.Match[str]], str]) -> Callable[[str], Edits]:
    """A rewrite of each match of a pattern."""
    found = re.compile(pattern)
    return lambda text: ((*match.span(), new(match)) for match in found.finditer(text) if new(match) != match[0])


def _operation(name: re.Match[str]) -> str:
    """`AIE.useLock` as `aie.use_lock`, `AIEX.ipu.sync` as `aiex.npu.sync`."""
    dialect, rest = name[1].lower(), re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name[2]).lower()
    rest = re.sub(r"^ipu\.", "npu.", rest).replace("mem_tile_dma", "memtile_dma").replace("object_fifo", "objectfifo")
    return _NAMES.get(f"{dialect}.{rest}", f"{dialect}.{rest}")


def _plain_bd(match: re.Match[str]) -> str:
    """`<%b : type, offset, len>, 0` of `aie.dma_bd(` without the brackets and the mode of ping and pong."""
    return f"aie.dma_bd({match[1]}{match[2] or ''}"


_DEVICE = re.compile(r"\baie\.device\s*\([^{}]*\{")
_FUNCTION = re.compile(r"\bfunc\.func\s+@[\w.$-]+\s*\([^(){}]*\)\s*\{")
_SHIM = re.compile(rf"(%[\w.$-]+)\s*=\s*aie\.tile\s*\(\s*{_INDEX}\s*,\s*0\s*\)(?:[ \t]*\{{[^{{}}\n]*\}})?")
_ALLOCATION = re.compile(
    r'aie\.shim_dma_allocation\s*(?:@([\w.$-]+)\s*\(|\(\s*"([^"]+)"\s*,)\s*"?(MM2S|S2MM)"?\s*,'
    rf"\s*{_INDEX}\s*,\s*{_INDEX}\s*\)"
)


def _allocations(text: str) -> Edits:
    """A shim's channel by its column, as one of a tile; the tile is declared there where it is not before."""
    for device in _blocks(text, _DEVICE):
        shims = {int(shim[2], 0): shim for shim in _SHIM.finditer(text, *device)}
        seen: set[int] = set()
        for match in _ALLOCATION.finditer(text, *device):
            column = int(match[5], 0)
            shim, before = shims.get(column), ""
            name = f"%shim_tile_{column}_0" if shim is None else shim[1]
            if column not in seen and (shim is None or shim.start() > match.start()):
                declared = f"{name} = aie.tile({column}, 0)" if shim is None else shim[0].rstrip()
                before = f"{declared}\n{_indent(text, match.start())}"
                if shim is not None:
                    yield *shim.span(), ""
            seen.add(column)
            channel = f"@{match[1] or match[2]} ({name}, {match[3]}, {match[4]})"
            yield *match.span(), f"{before}aie.shim_dma_allocation {channel}"


def _indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _sequences(text: str) -> Edits:
    """A function of a device with operations of the controller in it, as the runtime sequence that it is."""
    for start, end in _blocks(text, _FUNCTION):
        body = text[start:end]
        if "aiex.npu." in body or "aiex.dma_" in body:
            yield start, start + len("func.func"), "aie.runtime_sequence"
            last = list(re.finditer(r"(?:func\.)?return\b[ \t]*\n?", body))[-1:]
            yield from ((start + found.start(), start + found.end(), "") for found in last)


def _transfers(text: str) -> Edits:
    """Transfers without the coordinates that their metadata knows, in literals, with four strides and one type."""
    constants: dict[str, set[int]] = {}
    for name, value in re.findall(rf"(%[\w.$-]+)\s*=\s*arith\.constant\s+{_INDEX}\s*:\s*(?:i32|i64|index)\b", text):
        constants.setdefault(name, set()).add(int(value, 0))
    entry = r"[^\[\]()]*"
    form = (
        rf"(aiex\.npu\.dma_memcpy_nd)\s*\((\s*[%\w]+\s*,\s*[%\w]+\s*,)?\s*(%[\w.$#-]+)\s*\[({entry})\]\s*\[({entry})\]"
        rf"\s*\[({entry})\]([^)]*)\)(\s*\{{[^}}]*\}})?(\s*:\s*\((?:[^()]|\([^()]*\))*\))?"
    )
    for match in re.compile(form).finditer(text):
        lists = [[entry.strip() for entry in part.split(",")] for part in match.group(4, 5, 6)]
        if len(lists[2]) == _STRIDES:
            lists[2].append("1")
        literal = [[_literal(entry, constants) for entry in part] for part in lists]
        shown = "".join(f"[{', '.join(part)}]" for part in literal)
        braces = re.sub(r"\bid = (\d+) : i32", r"id = \1 : i64", match[8] or "")
        typed = re.search(r"memref<[^>]*>+", match[9] or "")
        new = f"{match[1]}({match[3]}{shown}{match[7]}){braces}" + (f" : {typed[0]}" if typed else match[9] or "")
        if match[2] or match[9] or len(match[6].split(",")) == _STRIDES:
            yield *match.span(), new


def _literal(entry: str, constants: dict[str, set[int]]) -> str:
    """The number that a value always stands for, else the entry."""
    values = constants.get(entry, set())
    return str(*values) if len(values) == 1 else entry


def _blocks(text: str, head: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where each operation begins whose text up to its body is `head`, and where that body ends."""
    ends, opened = {}, []
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            ends[opened.pop()] = brace.end()
    for match in head.finditer(text):
        if (end := ends.get(match.end() - 1)) is not None:
            yield match.start(), end


_BD = r"\baie\.dma_bd\s*\(\s*<\s*((?:[^<>]|<[^<>]*>)*?)\s*>\s*(?:,\s*[01])?((?:,\s*\[[^\]]*\])?)(?=\s*\))"
_PARAMETER = (
    rf"aiex\.npu\.rtp_write\s*\(\s*{_INDEX}\s*,\s*{_INDEX}\s*,\s*{_INDEX}\s*,\s*{_INDEX}\s*\)"
    r'\s*\{\s*buffer_sym_name\s*=\s*"([^"]+)"\s*\}'
)
_REWRITES: tuple[Callable[[str], Edits], ...] = (
    _substituted(r"(?<![\w.#!@%\"^])(AIEX?|aiex?)\.([A-Za-z][\w.]*)", _operation),
    _substituted(r"(?<![\w.])arith\.(?:maxf|minf)\b", lambda m: _NAMES[m[0]]),
    _substituted(r"([#!])AIE(X?)(?=[.<])", lambda m: f"{m[1]}aie{m[2].lower()}"),
    _substituted(r"\bbd_dim_layout_arr\b", lambda _: "bd_dim_layout_array"),
    _substituted(r'(\baie\.device\s*\(\s*)"?(\w+)"?(?=\s*\))', lambda m: m[1] + _DEVICES.get(m[2], m[2])),
    _substituted(r'(\baie\.dma_start\s*\(\s*)"?(S2MM|MM2S)([0-9])"?(?=\s*,)', lambda m: f"{m[1]}{m[2]}, {m[3]}"),
    _substituted(_BD, _plain_bd),
    _substituted(
        r"(?<=[\[,])(\s*)<\s*([0-9]+)\s*,\s*([0-9]+)\s*>", lambda m: f"{m[1]}<size = {m[2]}, stride = {m[3]}>"
    ),
    _substituted(r'(\bkeep_pkt_header\s*=\s*)"(true|false)"', lambda m: m[1] + m[2]),
    _substituted(_PARAMETER, lambda m: f"aiex.npu.rtp_write(@{m[5]}, {m[3]}, {m[4]})"),
    _substituted(r'aiex\.npu\.rtp_write\s*\(\s*"([^"]+)"\s*,', lambda m: f"aiex.npu.rtp_write(@{m[1]},"),
    _transfers,
    _sequences,
    _allocations,
)
