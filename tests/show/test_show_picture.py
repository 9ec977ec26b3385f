"""Pictures of designs; skipped without matplotlib, but for the sentence that says so."""

import builtins
import sys
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from show_designs import CHAIN, MIXED, TWO_DEVICES

from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing import Connection, SwitchPort, route
from bdforge.array.show import ShowError, Span, command, picture
from bdforge.array.show.array_use import use_of
from bdforge.array.show.image import _title
from bdforge.array.show.picture_layout import layout_for
from bdforge.array.show.scene import role_label, roles_of
from bdforge.common.files import FileError
from bdforge.devices import PortBundle
from support.differences import as_reviewed
from support.drawn import drawn

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_png_shows_every_tile(tmp_path):
    image = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed")
    text = command(CHAIN, tmp_path / "chain.png")
    assert text.endswith(f"\nwrote {tmp_path / 'chain.png'}\n")
    assert (tmp_path / "chain.png").read_bytes().startswith(PNG)
    pixels = image.imread(tmp_path / "chain.png")
    assert pixels.shape[0] > pixels.shape[1] > 500  # one column of three tiles
    colors = {tuple((pixel[:3] * 255).round().astype(int)) for line in pixels[::5] for pixel in line[::5]}
    assert {(0xEE, 0xF7, 0xEA), (0xEA, 0xF2, 0xFB), (0xFD, 0xF3, 0xE1)} <= colors  # core, memtile, shim


@pytest.mark.daily(".png-text0")
@pytest.mark.parametrize(("suffix", "text"), [(".png", CHAIN.read_text()), (".svg", MIXED)])
def test_pictures_are_the_same_every_time(tmp_path, suffix, text):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    paths = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]
    for path in paths:
        picture(parse(text), path)
    first, second = (path.read_bytes() for path in paths)
    assert len(first) > 20_000
    assert first == second


def words_in(buffers: list[tuple[str, int, int]], inches: float = 2.0) -> list[str]:
    """What stands in a core's square with buffers (name, address, bytes), as strings; each name lies in its memory."""
    matplotlib = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    from bdforge.array.show.draw_tiles import draw_tile
    from bdforge.array.show.scene import scene_of

    lines = [
        f'%b{number} = aie.buffer(%t) {{sym_name = "{name}", address = {at} : i32}} : memref<{size}xi8>'
        for number, (name, at, size) in enumerate(buffers)
    ]
    text = f"module {{ aie.device(npu2_1col) {{ %t = aie.tile(0, 2) {' '.join(lines)} }} }}"
    scene = scene_of(use_of(next(op for op in parse(text).walk() if isinstance(op, DeviceOp))), inches)
    axes = matplotlib.Figure().add_axes((0, 0, 1, 1))
    draw_tile(axes, scene, 0, 2)
    _, bottom, _, top = scene.layout.panel
    for name, at, size in buffers:
        for word in (one for one in axes.texts if one.get_text().startswith(name + " ") and size > 4096):
            middle = 2 + bottom + (top - bottom) * (at + size / 2) / 65536
            assert word.get_position()[1] == pytest.approx(middle), f"{name} is not in the middle of its bar"
    return [one.get_text() for one in axes.texts if one.get_text()[:4] not in ("S2MM", "MM2S")]


def test_a_tile_says_what_its_memory_holds_and_how_much():
    found = words_in([("a", 0, 1023), ("b", 1024, 1024), ("large", 16384, 24 << 10)])
    assert found == ["core (0, 2)\n26 KiB of 64 KiB", "large 24 KiB", "a 1023 B", "b 1 KiB"]


def test_names_of_thin_bars_are_listed_in_free_space_as_far_as_there_is_room():
    """A line takes the height of 3095 bytes here."""
    one, all_ = ["t0 16 B"], ["t0 16 B", "t1 16 B", "t2 16 B"]
    cases = (
        (9300, 3, all_), (9270, 3, [*one, "and 2 more"]), (6180, 3, ["and 3 more"]), (3100, 3, ["and 3 more"]),
        (3080, 3, []), (3100, 1, one), (3080, 1, []),
    )  # fmt: skip
    for free, count, expected in cases:
        first = 65536 - count * 16
        thin = [(f"t{number}", first + 16 * number, 16) for number in range(count)]
        assert words_in([("rest", 0, first - free), *thin])[2:] == expected, (free, count)


def test_long_names_are_cut_to_their_memory():
    for letters, shown in ((25, "n" * 25), (26, "n" * 24 + "…"), (60, "n" * 24 + "…")):
        assert words_in([("n" * letters, 0, 60000)])[1] == f"{shown} 58.6 KiB"


@pytest.mark.parametrize(("letters", "text"), [
    (17, "abcdefghij 1 KiB"), (16, "abcdefghij 1 KiB"), (15, "abcdefgh… 1 KiB"), (11, "abcd… 1 KiB"),
    (10, "abc… 1 KiB"), (9, "abc… 1 KiB"), (0, "abc… 1 KiB"),
])  # fmt: skip
def test_a_name_keeps_four_letters_at_least_and_its_size_always(letters: int, text: str):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from bdforge.array.show.draw_tiles import _sized

    assert _sized(Span(0, 1024, "@abcdefghij"), letters) == text


@pytest.mark.parametrize(("streams", "text"), [
    (0, "0 streams"), (1, "1 stream"), (2, "2 streams"),
])  # fmt: skip
@pytest.mark.parametrize(("title", "head"), [("", "@one on npu2"), ("mine", "mine: @one on npu2")])
def test_a_title_counts_streams_and_names_the_busiest_switch(streams: int, text: str, title: str, head: str):
    array = SimpleNamespace(kind=lambda column, row: f"kind {column} {row}")
    device = SimpleNamespace(symbol="one", device_name="npu2", device=array)
    busiest = SimpleNamespace(column=3, row=1, share=0.256)
    use: Any = SimpleNamespace(device=device, routing=SimpleNamespace(nets=[0] * streams, busiest=None))
    assert _title(use, title) == f"{head}\n{text}"
    use.routing.busiest = busiest
    assert _title(use, title) == f"{head}\n{text}; busiest switch: kind 3 1 (3, 1), 26% of its ports"


def pieces(points):
    """(axis, position, from, to) of each piece of a right-angled line."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 == x1:
            yield "up", round(x0, 6), min(y0, y1), max(y0, y1)
        else:
            assert y0 == y1
            yield "across", round(y0, 6), min(x0, x1), max(x0, x1)


def test_streams_of_different_roles_lie_apart():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from bdforge.array.show.scene import scene_of

    use = use_of(next(op for op in parse(MIXED).walk() if isinstance(op, DeviceOp)))
    scene = scene_of(use, inches=2.0)
    drawn = [
        (scene.roles[net], piece)
        for net in use.routing.nets
        for connection in use.routing.connections(net)
        for piece in pieces(scene.way(connection))
    ]
    assert len({role for role, _ in drawn}) == 10
    for (role, (axis, at, low, high)), (other, (axis2, at2, low2, high2)) in combinations(drawn, 2):
        if role != other and (axis, at) == (axis2, at2):
            assert min(high, high2) - max(low, low2) < 1e-6, (role, other, axis, at)


NORTH, SOUTH, EAST, WEST = PortBundle.NORTH, PortBundle.SOUTH, PortBundle.EAST, PortBundle.WEST
LANE = 0.034


@pytest.mark.parametrize(("side", "border"), [(NORTH, 1.0), (SOUTH, 0.0), (EAST, 1.0), (WEST, 0.0)])
def test_words_leave_in_the_lane_in_which_the_neighbour_gets_them(side: PortBundle, border: float):
    layout = layout_for({NORTH: 2, SOUTH: 2, EAST: 2, WEST: 2})
    facing = {NORTH: SOUTH, SOUTH: NORTH, EAST: WEST, WEST: EAST}[side]
    vertical = side in (NORTH, SOUTH)
    for channel in (0, 1):
        leaves, enters = (
            layout.master_lane(SwitchPort(0, 1, side, channel)),
            layout.slave_lane(SwitchPort(0, 1, facing, channel)),
        )
        assert leaves[vertical] == border
        assert enters[vertical] == 1 - border
        assert leaves[not vertical] == enters[not vertical]


@pytest.mark.parametrize("side", [NORTH, SOUTH, EAST, WEST])
def test_a_stream_beside_anothers_end_stays_half_a_lane_off_until_close_to_the_border(side: PortBundle):
    """0.07 before the border it joins its own lane; every piece is right-angled."""
    layout = layout_for({NORTH: 1, SOUTH: 1, EAST: 1, WEST: 1})
    master = SwitchPort(0, 1, side, 0)
    end, start = layout.master_lane(master), (layout.ports_right, 0.5)
    way = layout.polyline(Connection(SwitchPort(0, 1, PortBundle.DMA, 0), master), start, end, 0, True)
    vertical = side in (NORTH, SOUTH)
    assert (way[0], way[-1]) == (start, end)
    assert abs(way[-2][vertical] - end[vertical]) == pytest.approx(0.07)
    assert way[-2][not vertical] == end[not vertical]
    assert way[-3][not vertical] - end[not vertical] == pytest.approx(LANE / 2)
    assert way[-3][vertical] == way[-2][vertical]
    list(pieces(way))


class Stream:
    """A net as pictures see it: (kind, bundle, channel) of its start and of its ends."""

    def __init__(self, start: tuple[str, str, int], *ends: tuple[str, str, int], packet: int | None = None):
        self.start, *found = (
            SimpleNamespace(tile=SimpleNamespace(kind=kind), bundle=bundle, channel=channel)
            for kind, bundle, channel in (start, *ends)
        )
        self.ends, self.packet_id = dict(enumerate(found)), packet


@pytest.mark.parametrize(("channels", "roles"), [(11, 11), (12, 12), (13, 1)])
def test_a_streams_channel_counts_as_long_as_there_is_a_colour_for_each(channels: int, roles: int):
    """There are twelve colours."""
    nets: list[Any] = [Stream(("memtile", "DMA", i), ("core", "DMA", 0)) for i in range(channels)]
    assert len(set(roles_of(nets).values())) == roles


@pytest.mark.parametrize(("nets", "text"), [
    ([Stream(("shim", "DMA", 0), ("memtile", "DMA", 1))], "shim MM2S 0 to memtile S2MM 1 (1 stream)"),
    ([Stream(("shim", "DMA", 0), ("core", "DMA", 0), ("core", "DMA", 1))],
     "shim MM2S 0 to core S2MM 0, 1 (1 stream, 2 ends)"),
    ([Stream(("shim", "DMA", 0), ("core", "DMA", 0))] * 2, "shim MM2S 0 to core S2MM 0 (2 streams)"),
    ([Stream(("core", "TileControl", 0), ("shim", "South", 0), packet=i) for i in (15, 4, 5, 6)],
     "core TileControl 0 to shim South 0 (4 streams, packets 4-6, 15)"),
    ([Stream(("core", "Core", 0), ("shim", "South", 2), ("core", "FIFO", 0), packet=0)],
     "core Core 0 to core/shim FIFO 0, South 2 (1 stream, 2 ends, packets 0)"),
])  # fmt: skip
def test_a_role_says_from_where_to_where_and_how_many(nets: list[Any], text: str):
    (role,) = set(roles_of(nets).values())
    assert role_label(role, nets) == text


def test_a_role_without_its_port_names_the_kind_alone():
    nets: list[Any] = [Stream(("memtile", "DMA", i), ("core", "DMA", 0)) for i in range(13)]
    assert role_label(roles_of(nets)[nets[0]], nets) == "memtile to core S2MM 0 (13 streams)"


def test_other_formats_and_unwritable_places_are_refused(tmp_path):
    with pytest.raises(ShowError, match=r"chain\.pdf: pictures are written as \.png or \.svg"):
        command(CHAIN, tmp_path / "chain.pdf")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    with pytest.raises(FileError, match="there is no folder"):
        command(CHAIN, tmp_path / "nowhere" / "chain.png")


def test_one_of_several_devices_is_drawn_by_name(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    module = parse(TWO_DEVICES)
    with pytest.raises(ShowError, match=r"several devices \(@one, @two\); name the one to draw"):
        picture(module, tmp_path / "some.png")
    with pytest.raises(ShowError, match=r"no device @three to draw; the module has @one, @two"):
        picture(module, tmp_path / "some.png", device="three")
    picture(module, tmp_path / "some.png", device="two")
    assert route(next(op for op in module.walk() if isinstance(op, DeviceOp))).nets == []


def test_without_matplotlib_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.startswith(("matplotlib", "bdforge.array.show.draw"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ShowError, match=r"pictures need matplotlib.*pip install 'bdforge\[plot\]'"):
        command(CHAIN, tmp_path / "chain.png")
    assert "device @main" in command(CHAIN)


def test_a_picture_is_drawn_as_reviewed(file_regression):
    """Every tile, bar, port, stream, arrow and word of a design that has one of each kind."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from bdforge.array.show.draw import figure_of

    use = use_of(next(op for op in parse(MIXED).walk() if isinstance(op, DeviceOp)))
    file_regression.check(drawn(figure_of(use, "mixed")), check_fn=as_reviewed)
