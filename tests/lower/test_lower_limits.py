"""Numbers of BDs and channels, sides of cascades, bytes of memories: the last that is taken, the first that is not."""

import pytest

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.lower import configuration
from bdforge.array.lower.array_state import ArrayState, PushedTask
from bdforge.array.mlir import MlirError
from bdforge.devices.bd_registers import MEMTILE_BD
from bdforge.devices.register_names import What, register_at
from bdforge.devices.switch_registers import CASCADE, CASCADE_OFFSET
from bdforge.devices.txn_format.operations import Operation, Write
from support.decoded import device_of


def lowered(body: str) -> tuple[Operation, ...] | str:
    """The register writes of a device, or why there are none."""
    try:
        return configuration(device_of(f"aie.device(npu2) {{\n{body}\n}}"), lambda *_: []).operations
    except MlirError as error:
        return error.message


def dma(tasks: str, kind: str = "memtile_dma", row: int = 1) -> str:
    return (
        f'%t = aie.tile(1, {row})\n%b = aie.buffer(%t) {{sym_name = "b", address = 0 : i32}} : memref<64xi32>\n'
        f"aie.{kind}(%t) {{\n{tasks}\n^end:\naie.end\n}}"
    )


def chain(channel: int, blocks: dict[str, tuple[str, str]], direction: str = "MM2S") -> str:
    """A task whose blocks have attributes of their BD, and what follows."""
    first = next(iter(blocks))
    lines = [f"aie.dma_start({direction}, {channel}, ^{first}, ^end)"]
    for name, (attributes, after) in blocks.items():
        end = f"aie.next_bd ^{after}" if after else "aie.end"
        lines += [f"^{name}:", f"aie.dma_bd(%b : memref<64xi32>, 0, 4) {{{attributes}}}", end]
    return "\n".join(lines)


def bds(found: tuple[Operation, ...] | str) -> dict[int, dict[str, int]]:
    assert not isinstance(found, str), found
    return {bd: MEMTILE_BD.decode(words) for bd, words in ArrayState(found).tiles[1, 1].bds.items()}


ONE = {"a": ("", "end")}
CHANNELS = {("memtile_dma", 1): 6, ("mem", 2): 2, ("shim_dma", 0): 2}


@pytest.mark.parametrize("kind", CHANNELS, ids=lambda kind: kind[0])
def test_channels_of_a_program_are_those_of_its_tile(kind: tuple[str, int]):
    count = CHANNELS[kind]
    for channel in range(count + 1):
        text = dma(chain(channel, ONE), *kind)
        if kind[0] == "shim_dma":
            text = text.replace("aie.buffer(%t) {", "aie.external_buffer {").replace(", address = 0 : i32", "")
        found = lowered(text)
        if channel == count:
            assert f"MM2S: channel = {count} is outside 0 to {count - 1}" in str(found), f"{kind} {channel}: {found}"
        else:
            assert not isinstance(found, str) or "channels" not in found, f"{kind} {channel}: {found}"


REPEATS = {0: 0, 1: 1, 254: 254, 255: 255, 256: 0, 300: 44}


@pytest.mark.parametrize("repeats", REPEATS)
def test_repeats_are_those_of_the_queues_eight_bits(repeats: int):
    """More are refused; where that check is off the upper bits are lost, and it is told."""
    text = dma(chain(0, ONE).replace("^end)", f"^end, repeat_count = {repeats})"))
    strictness = Strictness.without(["field-width"])
    device = device_of(f"aie.device(npu2) {{\n{text}\n}}")
    found = configuration(device, lambda *_: [], strictness).operations
    assert ArrayState(found).tiles[1, 1].tasks == [PushedTask("MM2S", 0, 0, REPEATS[repeats], False)]
    told = f"repeat_count = {repeats} is outside 0 to 255"
    assert [told in warning for warning in strictness.warnings] == [True] * (repeats > 255)
    assert (told in str(lowered(text))) == (repeats > 255)


TOKENS = {("memtile_dma", 1): (0, 0), ("mem", 2): (0, 0), ("shim_dma", 0): (1, 0)}


@pytest.mark.parametrize("kind", TOKENS, ids=lambda kind: kind[0])
def test_only_shims_tell_that_they_have_received(kind: tuple[str, int]):
    for direction, token in zip(("S2MM", "MM2S"), TOKENS[kind], strict=True):
        text = dma(chain(1, ONE, direction), *kind)
        if kind[0] == "shim_dma":
            text = text.replace("aie.buffer(%t) {", "aie.external_buffer {").replace(", address = 0 : i32", "")
        found = lowered(text)
        assert not isinstance(found, str), found
        (task,) = ArrayState(found).tiles[1, kind[1]].tasks
        assert (task.direction, task.channel, task.token) == (direction, 1, bool(token))


@pytest.mark.parametrize(("channel", "first"), [(0, 0), (1, 24), (4, 0), (5, 24)])
def test_bds_take_the_lowest_free_number_that_their_channel_may_use(channel: int, first: int):
    blocks = {"a": ("", "b"), "b": (f"bd_id = {first + 1} : i32", "c"), "c": ("", "end")}
    assert sorted(bds(lowered(dma(chain(channel, blocks))))) == [first, first + 1, first + 2]


def test_a_channel_has_24_bds_and_no_more():
    def blocks(count: int) -> dict[str, tuple[str, str]]:
        return {f"b{i}": ("", f"b{i + 1}" if i + 1 < count else "end") for i in range(count)}

    assert sorted(bds(lowered(dma(chain(1, blocks(24)))))) == list(range(24, 48))
    assert "no BD is left for channel 1, which may use 24 to 47" in str(lowered(dma(chain(1, blocks(25)))))


def test_a_number_is_given_once():
    blocks = {"a": ("bd_id = 7 : i32", "b"), "b": ("bd_id = 7 : i32", "end")}
    assert "bd_id = 7 is used twice in this tile" in str(lowered(dma(chain(0, blocks))))


FOLLOWED = {  # blocks: which BD each goes on to
    "once": ({"a": ("", "b"), "b": ("", "end")}, {0: 1, 1: None}),
    "over again": ({"a": ("", "b"), "b": ("", "a")}, {0: 1, 1: 0}),
    "back to the second": ({"a": ("", "b"), "b": ("", "c"), "c": ("", "b")}, {0: 1, 1: 2, 2: 1}),
    "itself": ({"a": ("", "a")}, {0: 0}),
    "by number": ({"a": ("next_bd_id = 9 : i32", "")}, {0: 9}),
    "by number against the text": ({"a": ("next_bd_id = 9 : i32", "b"), "b": ("", "end")}, {0: 1, 1: None}),
    "by number at the end": ({"a": ("next_bd_id = 9 : i32", "end")}, {0: None}),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_bds_are_followed_by_those_that_the_text_names(name: str):
    blocks, wanted = FOLLOWED[name]
    found = {
        bd: words["next"] if words["use_next"] else None for bd, words in bds(lowered(dma(chain(0, blocks)))).items()
    }
    assert found == wanted


@pytest.mark.parametrize("channel", range(6))
def test_padding_values_have_a_register_for_each_channel(channel: int):
    text = (
        dma(chain(channel, ONE))
        .replace("^end)", "^end) {pad_value = -3 : i32}")
        .replace(", 0, 4)", " offset = 0 len = 4)")
    )
    found = lowered(text)
    assert not isinstance(found, str), found
    assert Write(1 << 25 | 1 << 20 | 0xA06E0 + 4 * channel, 0xFFFFFFFD) in found, f"channel {channel}: {found}"


FLOWS = {  # cascades: (from the west, to the east) by core
    "down": ([((1, 4), (1, 3))], {(1, 4): (0, 0), (1, 3): (0, 0)}),
    "east": ([((1, 4), (2, 4))], {(1, 4): (0, 1), (2, 4): (1, 0)}),
    "down and east": ([((1, 4), (1, 3)), ((1, 3), (2, 3))], {(1, 4): (0, 0), (1, 3): (0, 1), (2, 3): (1, 0)}),
    "east and down": ([((2, 3), (2, 2)), ((1, 3), (2, 3))], {(1, 3): (0, 1), (2, 3): (1, 0), (2, 2): (0, 0)}),
    **{f"east twice, {order}": ([((1, 3), (2, 3)), ((2, 3), (3, 3))][::step],
                                {(1, 3): (0, 1), (2, 3): (1, 1), (3, 3): (1, 0)})
       for order, step in (("in order", 1), ("the last first", -1))},
    "the same twice": ([((1, 4), (2, 4))] * 2, {(1, 4): (0, 1), (2, 4): (1, 0)}),
    "up": ([((1, 3), (1, 4))], "runs to the core south or east of its source; (1, 3) to (1, 4) is north"),
    "west": ([((2, 3), (1, 3))], "runs to the core south or east of its source; (2, 3) to (1, 3) is west"),
    "two outputs": (
        [((1, 3), (1, 2)), ((1, 3), (2, 3))], "core (1, 3) has one cascade output, which leads to core (1, 2)"),
    "two inputs": (
        [((1, 3), (2, 3)), ((2, 4), (2, 3))], "core (2, 3) has one cascade input, which comes from core (1, 3)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOWS)
def test_cascades_run_south_or_east_from_one_core_to_one(name: str):
    flows, wanted = FLOWS[name]
    places = sorted({place for flow in flows for place in flow})
    lines = [f"%t{column}{row} = aie.tile({column}, {row})" for column, row in places]
    lines += [f"aie.cascade_flow(%t{a}{b}, %t{c}{d})" for (a, b), (c, d) in flows]
    found = lowered("\n".join(lines))
    if isinstance(wanted, str):
        assert wanted in str(found), f"{name}: {found}"
        return
    assert not isinstance(found, str), f"{name}: {found}"
    words = {(r.column, r.row): op.value for op in found if isinstance(op, Write)
             and (r := register_at(op.address)).what is What.CASCADE}  # fmt: skip
    values = {place: CASCADE.decode([word]) for place, word in words.items()}
    sides = {place: (v["input_west"], v["output_east"]) for place, v in values.items()}
    assert sides == wanted, f"{name}: (from the west, to the east) by core is {sides}"
    assert all(op.address & 0xFFFFF == CASCADE_OFFSET for op in found if isinstance(op, Write))


@pytest.mark.parametrize(("value", "held"), [(0, 0), (63, 63), (64, 63), (300, 63), (-1, 0), (-64, 0)])
def test_locks_start_with_what_they_hold(value: int, held: int):
    """Others are refused; where that check is off a lock starts at the nearest value, and it is told."""
    strictness, told = Strictness.without(["lock-range"]), f"lock value = {value} is outside 0 to 63"
    body = f"%t = aie.tile(0, 2)\n%l = aie.lock(%t, 15) {{init = {value} : i32}}"
    device = device_of(f"aie.device(npu2) {{\n{body}\n}}")
    assert configuration(device, lambda *_: [], strictness).operations == (Write(0x21F0F0, held),)
    assert [told in warning for warning in strictness.warnings] == [True] * (value != held)
    assert (told in str(lowered(body))) == (value != held)


@pytest.mark.parametrize(("starts", "number"), [((0, 1), 0), ((1, 0), 24), ((3, 2), 24), ((4, 5), 0)])
def test_a_bd_of_two_channels_has_a_number_that_the_first_may_use(starts: tuple[int, int], number: int):
    first, second = starts
    tasks = f"""aie.dma_start(MM2S, {first}, ^a, ^n)
    ^n:
    aie.dma_start(MM2S, {second}, ^a, ^end)
    ^a:
    aie.dma_bd(%b : memref<64xi32>, 0, 4)
    aie.next_bd ^end"""
    found = lowered(dma(tasks))
    assert list(bds(found)) == [number]
    queued = [(task.channel, task.bd) for task in ArrayState(found).tiles[1, 1].tasks]  # type: ignore[arg-type]
    assert queued == [(first, number), (second, number)]


@pytest.mark.parametrize("era", ["march", "1.4"])
def test_the_last_core_of_a_tile_is_the_one_until_1_4_refuses_two(era: str):
    tile = "%t = aie.tile(0, 2)\n%l = aie.lock(%t, 0) {init = 1 : i32}\n%one = arith.constant 1 : i32\n"
    use = "aie.use_lock(%l, Release, %one)" if era == "1.4" else "aie.use_lock(%l, Release, 1)"
    body = f'{tile}aie.core(%t) {{ {use} aie.end }}\naie.core(%t) {{ aie.end }} {{elf_file = "b.elf"}}'
    strictness, text = Strictness(), f"aie.device(npu2) {{\n{body}\n}}"
    if era == "1.4":
        with pytest.raises(MlirError, match=r"6:1: aie.core: tile \(0, 2\) has a core already \(line 5\)"):
            device_of(text)
        return
    assert len(configuration(device_of(text), lambda *_: [], strictness).elf_files) == 1
    (warning,) = strictness.warnings
    assert warning.endswith("6:1: tile (0, 2) has a core already, at d.mlir:5:1: this one takes its place [core-twice]")
