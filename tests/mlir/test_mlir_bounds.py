"""What is said of texts that no person wrote: where, in few words, and before long."""

import gc
from collections.abc import Iterator

import pytest

from bdforge.array.mlir import MlirError, parse
from bdforge.array.mlir import parser as parser_module

DEVICE = "module {{ aie.device(npu2) {{\n%t = aie.tile(0, 2)\n{}\n}} }}"
DEEP = {
    "regions": ("module {" * 3000, 1),
    "closed": ("module {" * 3000 + "}" * 3000, 1),
    "types": (DEVICE.format(f"func.func private @f({'tuple<' * 4000}i32{'>' * 4000})"), 3),
    "attributes": (DEVICE.format(f"%b = aie.buffer(%t) {{a = {'[' * 4000}{']' * 4000}}} : memref<4xi32>"), 3),
}


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """What other tests left isn't freed where the stack has no room for its finalizers: pytest reports these."""
    gc.disable()
    yield
    gc.enable()


def fault(text: str) -> MlirError:
    with pytest.raises(MlirError) as caught:
        parse(text, "d.mlir")
    assert len(str(caught.value).encode()) <= 4096
    return caught.value


@pytest.mark.parametrize("name", DEEP)
def test_deep_texts_are_refused_where_it_became_too_much(name):
    text, line = DEEP[name]
    error = fault(text)
    assert "brackets are open here" in error.message
    assert error.line == line
    assert error.column > 100


def test_operations_that_are_too_deep_to_check_are_named():
    error = fault("module {" * 60 + "scf.execute_region {" * 200 + "}" * 260)
    assert "too deeply" in error.message


@pytest.mark.parametrize("text", ["", " \n\t", "// a comment\n", "\n\n"])
def test_a_text_without_operations_is_called_that(text):
    assert "holds no operation; a design is an aie.device" in fault(text).message


@pytest.mark.parametrize("sign", "%@^#!")
def test_a_sign_without_a_name_is_named(sign):
    assert "{" not in fault(f"module {{\n {sign} = 1 }}").message
    if sign != "@":
        assert fault(f"module {{\n {sign} = 1 }}").message == f"a name must follow '{sign}'"


HUGE = {
    "word": "module { " + "x" * 10_000_000 + " }",
    "blanks": "module { " + " " * 10_000_000 + "aie.bogus }",
    "start": "x" * 1_000_000,
    "string": 'module { "' + "é" * 1_000_000 + '"() : () -> () }',
    "names": "module @" + "a" * 1_000_000 + " { %" + "b" * 1_000_000 + " }",
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_line_is_not_echoed(name):
    fault(HUGE[name])


def test_terminal_controls_of_a_text_are_shown_not_sent():
    text = str(fault('module {\n "\x1b[2Jaie.tile"() : () -> () }'))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_a_text_of_too_many_operations_is_left(monkeypatch):
    monkeypatch.setattr(parser_module, "OPERATIONS_MAX", 50)
    tiles = "".join(f"%t{i} = aie.tile(0, 2)\n" for i in range(60))
    error = fault(f"module {{ aie.device(npu2) {{\n{tiles}}} }}")
    assert error.message.startswith("this is operation 51 of the text, more than 50 are not read")
    assert error.line == 50
