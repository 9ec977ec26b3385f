"""The playground in Chromium: designs are mended, run, dropped and linked, puzzles solved, and the flagship runs."""

from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from cli.test_puzzle_command import STEPS, solve
from support.browser import MISSING, Browser, browser, serving
from support.built_designs import ROOT
from tools.site.playground.assemble import NoPlaygroundError, assemble

_WANTED = [*MISSING, *(name for name in ("npm", "node") if which(name) is None)]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(_WANTED), reason=f"no {' and no '.join(_WANTED)}")]
ADD_ONE = (ROOT / "examples/add_one/add_one.mlir").read_text()
WAIT = """
const [wanted] = arguments, state = () => document.body.dataset.state;
return new Promise((done) => {
  const look = () => { if (wanted.includes(state())) { seen.disconnect(); done(state()); } };
  const seen = new MutationObserver(look);
  seen.observe(document.body, { attributes: true });
  look();
});
"""


CHOSEN = """
const marks = document.querySelector(`.editor[data-file=${arguments[0]}] .marks`);
return new Promise((done) => {
  const seen = (mark, box) => box.top <= mark.top && mark.bottom <= box.bottom && mark.height > 0;
  const look = () => {
    const mark = marks.querySelector(".chosen");
    if (mark) setTimeout(() => done(seen(mark.getBoundingClientRect(), marks.parentNode.getBoundingClientRect())));
  };
  new MutationObserver(look).observe(marks, { childList: true });
  look();
});
"""


class Playground:
    """The page, and what is done on it; `run` answers when Python has."""

    def __init__(self, browser: Browser, url: str):
        self.browser, self.site, self.loaded = browser, url, False

    def open(self, fragment: str) -> str:
        """What a link with this fragment shows; its state when the design was checked."""
        if not self.loaded:
            self.browser.open(f"{self.site}playground/index.html#{fragment}")
            self.loaded = True
        else:
            self.browser.run(
                "document.body.dataset.state = ''; history.replaceState(null, '', '#'); location.hash = arguments[0]",
                fragment,
            )
        return self.wait("checked", "wrong")

    def wait(self, *states: str) -> str:
        return self.browser.run(WAIT, states)

    def write(self, text: str, box: str = ".editor textarea") -> str:
        """Another text in the editor, or in another box, and the design's state."""
        self.browser.run(
            "document.body.dataset.state = ''; const text = document.querySelector(arguments[1]);"
            "text.value = arguments[0]; text.dispatchEvent(new Event('input'))", text, box,
        )  # fmt: skip
        return self.wait("checked", "wrong")

    def start(self) -> str:
        self.browser.run("document.body.dataset.state = ''; document.getElementById('start').click()")
        return self.wait("failed", "ended", "different", "right", "solved", "wrong")

    def drop(self, name: str, text: str) -> None:
        """Drop a file on the page."""
        self.browser.run(
            "document.body.dataset.state = ''; const dropped = new DataTransfer();"
            "dropped.items.add(new File([arguments[1]], arguments[0]));"
            "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: dropped, bubbles: true}))", name, text,
        )  # fmt: skip

    @property
    def text(self) -> str:
        return self.browser.run("return document.querySelector('.editor textarea').value")

    @property
    def said(self) -> str:
        return self.browser.run("return document.getElementById('messages').innerText")

    @property
    def mlir(self) -> str:
        """What a document made, "" where its tab is not there."""
        return self.browser.run(
            "return document.querySelector('nav [data-file=mlir]').hidden ? ''"
            " : document.querySelector('.editor[data-file=mlir] textarea').value"
        )

    @property
    def tab(self) -> str:
        """Of the text that is seen."""
        return self.browser.run("return document.querySelector('.editor:not([hidden])').dataset.file")

    def marked(self, kind: str, file: str = "text") -> list[int]:
        """Lines of a text that are marked so."""
        marks = "document.querySelectorAll(`.editor[data-file=${arguments[1]}] .marks .${arguments[0]}`)"
        return self.browser.run(f"return [...{marks}].map((mark) => +mark.dataset.line)", kind, file)

    def click(self, item: str, file: str) -> bool:
        """Click on something of the array, an expression there, and wait for its mark in a text: whether it is seen."""
        self.browser.run("document.querySelectorAll('.marks .chosen').forEach((mark) => mark.remove())")
        self.browser.inside(0)
        self.browser.run(f"{item}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
        self.browser.inside(None)
        return self.browser.run(CHOSEN, file)


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    folder = tmp_path_factory.mktemp("site")
    try:
        assemble(folder / "playground")
    except NoPlaygroundError as error:
        pytest.skip(str(error))
    with serving(folder) as url, browser() as found:
        yield Playground(found, url)
        assert found.complaints() == []


def line(text: str, part: str) -> int:
    (found,) = [number for number, each in enumerate(text.splitlines(), 1) if part in each]
    return found


def test_a_design_is_edited_mended_and_run(playground: Playground):
    assert playground.open("task=add_one") == "checked"
    text = playground.text
    assert text == ADD_ONE
    broken = text.replace("aie.flow(%shim", "aie.fl0w(%shim", 1)
    assert playground.write(broken) == "wrong"
    assert playground.marked("error") == [line(broken, "aie.fl0w")]
    assert f"add_one.mlir:{line(broken, 'aie.fl0w')}:" in playground.said
    assert playground.start() == "wrong"
    assert playground.write(text) == "checked"
    assert playground.marked("error") == []
    assert playground.start() == "right"
    assert "all 96 elements equal the reference's" in playground.said


def test_array_and_text_lead_to_each_other(playground: Playground):
    playground.open("task=chain")
    place = line(playground.text, "%scaler = aie.tile")
    playground.start()
    playground.browser.inside(0)
    assert playground.browser.run("return [design.tiles.length, run.events.length > 50]") == [3, True]
    assert playground.browser.run("return getComputedStyle(at('text')).display") == "none"
    playground.browser.inside(None)
    assert playground.click("shown.tiles.get('0,2')", "text")
    assert playground.marked("chosen") == [place]


@pytest.mark.parametrize("number", [2, 14])
def test_a_puzzles_start_fails_and_its_solution_passes(playground: Playground, number: int):
    file = next(path.name for path in (ROOT / "examples/puzzles").glob(f"{number:02}_*"))
    assert playground.open(f"task={Path(file).stem}") == "checked"
    assert playground.start() in ("failed", "different")
    solution = solve(file, STEPS[number])
    assert solution != playground.text
    playground.write(solution)
    assert playground.start() == "solved"


def test_a_document_is_broken_mended_and_run(playground: Playground):
    assert playground.open("task=01_copy") == "checked"
    text = playground.text
    assert text == (ROOT / "examples/puzzles/01_copy.toml").read_text()
    assert playground.mlir.startswith("module {")
    broken = text.replace("send =", "sent =")
    assert playground.write(broken) == "wrong"
    assert (playground.marked("error"), playground.mlir) == ([line(broken, "sent =")], "")
    assert f"01_copy.toml:{line(broken, 'sent =')}:30: " in playground.said
    assert playground.write(text.replace("id = 1", "id = 17")) == "wrong"  # a document, but no MLIR to run
    assert playground.marked("error") == []
    assert playground.marked("error", "mlir") == [line(playground.mlir, "bd_id = 17")]
    assert f"01_copy.toml's MLIR:{line(playground.mlir, 'bd_id = 17')}:9: " in playground.said
    playground.browser.run("document.querySelector('#messages a').click()")
    assert playground.tab == "mlir"
    playground.browser.run("document.querySelector('nav [data-file=text]').click()")
    assert playground.write(text.replace("[[64, 1]]", "[[96, 1]]")) == "checked"
    assert playground.start() == "solved"
    assert "all 96 elements equal the reference's" in playground.said


def test_the_array_of_a_document_leads_to_its_mlir(playground: Playground):
    playground.open("task=01_copy")
    place = line(playground.mlir, "%mem = aie.tile")
    assert not playground.click("shown.tiles.get('0,1')", "mlir")
    assert playground.marked("chosen", "mlir") == [place]
    assert (playground.marked("chosen"), playground.tab) == ([], "text")
    links = "[...document.querySelectorAll('#details a')]"
    assert playground.click(f"{links}.find((one) => one.textContent === 'line {place}')", "mlir")
    assert (playground.marked("chosen", "mlir"), playground.tab) == ([place], "mlir")


def test_lines_are_marked_only_in_the_text_that_was_drawn(playground: Playground):
    playground.open("task=chain")
    marks = playground.browser.run(
        "const [text, view] = ['.editor textarea', '#view'].map((name) => document.querySelector(name));"
        "const told = { source: view.contentWindow, data: { lines: [2] } }, marks = () => {"
        "  dispatchEvent(new MessageEvent('message', told)); return document.querySelectorAll('.chosen').length; };"
        "const before = marks();"
        "text.value = `// more\n${text.value}`; text.dispatchEvent(new Event('input'));"
        "return [before, marks()]"
    )
    assert marks == [1, 0]


def test_a_document_runs_for_sizes_that_are_written(playground: Playground):
    assert playground.open("task=transpose") == "checked"
    assert playground.browser.run("return document.getElementById('shape').value") == "32x64"
    assert playground.start() == "right"
    assert "all 2,048 elements equal" in playground.said
    assert playground.write("48x16", "#shape") == "checked"
    assert "%a: memref<768xi32>" in playground.mlir
    assert playground.start() == "ended"  # the task's reference is for its sizes
    assert playground.write("48x17", "#shape") == "wrong"
    assert "48 x 17 is no number of blocks" in playground.said
    assert playground.write("", "#shape") == "checked"
    assert playground.browser.run("return document.getElementById('shape').placeholder") == "16x16"
    playground.open("task=add_one")
    assert playground.browser.run("return document.getElementById('sizes').hidden")
    assert playground.mlir == ""


CURSOR = """
const [count] = arguments;
return new Promise((done) => {
  const look = () => cursor === count && done(at("now").textContent);
  new MutationObserver(look).observe(at("position"), { childList: true });
  look();
});
"""


def test_a_run_goes_on_by_steps(playground: Playground):
    playground.open("task=chain")
    said = []
    playground.browser.run("document.body.dataset.state = ''")
    for count in range(3):  # nothing ran before the first
        playground.browser.run("document.getElementById('step').click()")
        playground.wait("right")
        playground.browser.inside(0)
        said.append(playground.browser.run(CURSOR, count))
        playground.browser.inside(None)
    assert said[0] == "before the first event"
    assert said[1] != said[2]


def test_a_deadlock_is_shown_where_it_stands(playground: Playground):
    playground.open("task=deadlock")
    assert playground.start() == "failed"
    assert "deadlock: nothing can move" in playground.said
    playground.browser.inside(0)
    assert playground.browser.run("return document.querySelectorAll('.port.stuck').length") == 3
    playground.browser.inside(None)


def test_a_file_is_dropped_and_a_link_holds_it(playground: Playground):
    playground.open("task=pass_through")
    mine = "// mine: <b>&\n" + ADD_ONE
    playground.drop("mine.mlir", mine)
    assert playground.wait("checked", "wrong") == "checked"
    assert (playground.text, playground.said.split(":")[0]) == (mine, "mine.mlir")
    assert playground.start() == "ended"
    playground.drop("spec.toml", "kind = 'gemm'")
    assert playground.wait("checked", "wrong") == "wrong"
    assert "open what bdforge render spec.toml writes" in playground.said
    mine = "# mine: <b>&\n" + (ROOT / "examples/documents/add_one.toml").read_text()
    playground.drop("mine.toml", mine)
    assert playground.wait("checked", "wrong") == "checked"
    assert playground.write("48", "#shape") == "checked"
    fragment = playground.browser.run(
        "document.getElementById('link').click();"
        "return new Promise((done) => { const seen = new MutationObserver(() => done(location.hash));"
        " seen.observe(document.getElementById('state'), {childList: true}); })"
    )
    assert playground.open(fragment.removeprefix("#")) == "checked"
    assert playground.text == mine
    assert "memref<48xi32>" in playground.mlir
    playground.open("design=cut")
    assert "this link cannot be read" in playground.said


def test_what_never_ends_is_stopped(playground: Playground):
    playground.open("task=add_one")
    playground.browser.run(
        "const kernels = document.querySelectorAll('.editor textarea')[1];"
        "kernels.value = 'while True:\\n    pass\\n'; kernels.dispatchEvent(new Event('input'))"
    )
    playground.wait("checked")
    playground.browser.run("document.getElementById('start').click(); document.getElementById('stop').click()")
    playground.browser.run("return new Promise((done) => setTimeout(done, 0))")
    assert "stopped; Python starts again" in playground.said
    assert playground.write(ADD_ONE) == "checked"


def test_the_flagship_runs_in_seconds(playground: Playground):
    playground.open("task=gemm_i8_i2")
    assert playground.start() == "right"
    assert "all 163,840 elements equal the reference's" in playground.said
    loaded = playground.browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [url for url in loaded if not url.startswith(playground.site)] == []
    print(playground.said.splitlines()[0])


@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_the_window(playground: Playground, width: int):
    playground.browser.resize(width, 800)
    playground.open("task=12_gemm")
    assert playground.browser.run("return document.documentElement.scrollWidth <= innerWidth")
