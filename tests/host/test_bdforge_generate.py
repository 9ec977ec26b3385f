"""bdforge-generate, BitNet on ggml with stock packages: token for token what the Python model makes."""

import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from library_builds import FOREIGN, Done, run
from stock_ggml import HOST, ours, small_design, stock_ggml

from bdforge.models import Products, Sampler, Split, generate
from bdforge.models.bitnet import BitNet, Checkpoint
from bdforge.runtime import load
from support.built_designs import PlannedDesign
from support.processes import ends
from tools.bitnet.content import ROLES, Content, config, random_content, shapes
from tools.bitnet.write import write_gguf
from tools.testing.source_tree import ROOT

LICENCE = ROOT / "examples" / "bitnet" / "licence.gguf"
Generate = Callable[..., Done]
ON_CPU = {"GGML_BACKEND_PATH": ""}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program() -> Generate:
    """Runs it with the packages' libraries."""
    packages = stock_ggml()

    def call(*arguments: Path | str, environ: dict[str, str] = ON_CPU) -> Done:
        command = packages.command(HOST / "bin" / "bdforge-generate", *arguments)
        return run(*command, environ={"OMP_NUM_THREADS": "1"} | FOREIGN | environ)

    return call


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> PlannedDesign:
    return small_design(tmp_path_factory.mktemp("summing"))


def in_python(model: Path, design: PlannedDesign, prompt: Sequence[int], count: int) -> list[int]:
    """The prompt and what comes behind it, products by numpy."""
    bitnet = BitNet.load(model, Products(load(design.folder), Split(design.plan, "cpu")))
    return [*prompt, *generate(bitnet, list(prompt), Sampler(), count)]


@pytest.mark.parametrize(
    ("sizes", "kind", "seed"),
    [((256, 512, 2, 4, 2, 64, 300, 256), "TQ2_0", 5), ((256, 1024, 1, 4, 4, 64, 260, 100), "TQ1_0", 8),
     pytest.param((512, 768, 3, 8, 4, 64, 500, 300), "TQ2_0", 6, marks=pytest.mark.slow)],
)  # fmt: skip
def test_random_models_go_on_as_in_python(
    program: Generate, design: PlannedDesign, tmp_path: Path, sizes: tuple[int, ...], kind: str, seed: int
):
    """Seeds for which no two tokens are nearly as likely: floats that differ in the last bit may then turn a code."""
    model = write_gguf(tmp_path / "model.gguf", random_content(config(*sizes), seed), kind)
    prompt = np.random.default_rng(seed).integers(0, sizes[6], 21).tolist()
    words = (model, "--prompt-ids", ",".join(map(str, prompt)), "-n", "5")
    done = program(*words, environ=ours(design.folder))
    assert [int(token) for token in done.stdout.split()] == in_python(model, design, prompt, 5)
    assert f"ternary products: {5 * 7 * sizes[2]} by bdforge, 0 by others" in done.stderr


def widened(path: Path) -> Content:
    """The same function as the file's, up to rounding, with sizes that are multiples of 256: zeros are added, and norms
    make up for what these do to means."""
    source = Checkpoint.open(path)
    small = source.config
    wide = config(256, 512, small.num_hidden_layers, 8, 4, 32, small.vocab_size, small.max_position_embeddings)

    def padded(x: np.ndarray, *shape: int) -> np.ndarray:
        return np.pad(x, [(0, size - old) for size, old in zip(shape, x.shape, strict=True)])

    def norm(role: str, old: int, new: int, layer: int | None = None) -> np.ndarray:
        weight = source.floats(role, (old,), layer).astype(np.float32)
        return padded(weight * np.float32((old / new) ** 0.5), new)

    embedding = source.floats("embedding", (small.vocab_size, small.hidden_size)).astype(np.float32)
    made = Content(wide, padded(embedding, small.vocab_size, 256), norm("final_norm", small.hidden_size, 256))
    for layer in range(small.num_hidden_layers):
        matrices = {role: source.matrix(layer, [role]) for role in ROLES}
        made.matrices.append({
            role: (padded(matrix.weights, *shapes(wide)[role]), float(matrix.scales[0]))
            for role, matrix in matrices.items()
        })  # fmt: skip
        hidden, query, inner = small.hidden_size, small.query_size, small.intermediate_size
        made.norms.append({
            role: norm(role, size, 512 if size == inner else 256, layer)
            for role, size in (
                ("attn_norm", hidden), ("attn_sub_norm", query), ("ffn_norm", hidden), ("ffn_sub_norm", inner),
            )
        })  # fmt: skip
    return made


@pytest.fixture(scope="module")
def licence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("licence") / "licence.gguf", widened(LICENCE), "TQ2_0")


def test_a_trained_model_writes_what_it_learnt(program: Generate, design: PlannedDesign, licence: Path):
    prompt = "Subject to the terms"
    done = program(licence, "--prompt", prompt, "-n", "30", environ=ours(design.folder, rows="2"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == bytes(in_python(licence, design, prompt.encode(), 30)).decode() + "\n"
    assert done.stdout.strip() in " ".join((ROOT / "LICENSE").read_text().split())
    assert "ternary products: 14 by bdforge, 406 by others" in done.stderr


def test_without_our_device_it_says_so(program: Generate, licence: Path):
    done = program(licence, "--prompt", "Subject to", "-n", "2", "-t", "2")
    assert (done.returncode, done.stdout[:10], len(done.stdout)) == (0, "Subject to", 13)
    assert "no device bdforge, so all runs on the CPU" in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--prompt", "x"], "which model?"),
        (["m.gguf"], "give either --prompt-ids or --prompt"),
        (["m.gguf", "--prompt", "x", "--prompt-ids", "1"], "give either --prompt-ids or --prompt"),
        (["m.gguf", "n.gguf", "--prompt", "x"], "two models, m.gguf and n.gguf"),
        (["m.gguf", "--prompt-ids", "1,,2"], "--prompt-ids : give a number from 0 to 2147483647"),
        (["m.gguf", "--prompt-ids", "1", "-n", "0"], "-n 0: give a number from 1 to 1000000"),
        (["m.gguf", "--prompt-ids"], "--prompt-ids needs a value"),
        (["m.gguf", "--promt", "x"], "there is no option --promt"),
        (["m.gguf", "--prompt", "x", "--design"], "--design needs a value"),
        (["/nowhere.gguf", "--prompt", "x"], "/nowhere.gguf: is no GGUF file that ggml reads"),
    ],
)
def test_words_that_make_no_sense_are_refused(program: Generate, words: list[str], reason: str):
    done = program(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr.splitlines()[-1]


def changed(model: Path, old: bytes, new: bytes) -> None:
    """Other bytes, as many, in the file, once."""
    content = model.read_bytes()
    assert len(old) == len(new)
    assert old in content
    model.write_bytes(content.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"bitnet-b1.58", b"llama-is-big", "general.architecture is 'llama-is-big', expected bitnet"),
        (b"bitnet-b1.58.block_count", b"bitnet-b1.58.block_coun_", "bitnet-b1.58.block_count is missing"),
        (b"blk.1.ffn_up.weight", b"blk.1.ffn_xx.weight", "has no tensor blk.1.ffn_up.weight; this is no whole BitNet"),
        (b"attention.head_count_kv\4\0\0\0\4", b"attention.head_count_kv\4\0\0\0\3", "do not share 3 key heads"),
        (b"attention.key_length\4\0\0\0\x20", b"attention.key_length\4\0\0\0\x40", "has 256 x 256 elements, expected"),
        (b"attention.key_length\4\0\0\0\x20", b"attention.key_length\4\0\0\0\x21", "8 query heads of 33 do not share"),
        (b"block_count\4\0\0\0\2\0\0\0", b"block_count\4\0\0\0\0\0\0\1", "has no tensor blk.2."),
        (b"block_count\4\0\0\0\2\0\0\0", b"block_count\4\0\0\0\1\0\0\1", "no number from 1 to 16777216"),
        (b"rms_epsilon\6\0\0\0\xac\xc5\x27\x37", b"rms_epsilon\6\0\0\0\0\0\0\0", "rms_epsilon is no number above 0"),
        (b"rope.freq_base\6\0\0\0\0\x24\xf4\x48", b"rope.freq_base\6\0\0\0\0\0\xc0\x7f", "rope.freq_base is no number"),
    ],
)  # fmt: skip
def test_files_that_are_no_bitnet_are_refused(
    program: Generate, licence: Path, tmp_path: Path, old: bytes, new: bytes, reason: str
):
    model = tmp_path / "model.gguf"
    model.write_bytes(licence.read_bytes())
    changed(model, old, new)
    done = program(model, "--prompt", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(rf"bdforge-generate: {re.escape(str(model))}: .*{re.escape(reason)}", done.stderr.splitlines()[-1])


def test_a_file_that_is_cut_off_and_one_of_another_type_are_refused(program: Generate, licence: Path, tmp_path: Path):
    model = tmp_path / "model.gguf"
    model.write_bytes(licence.read_bytes()[:-100])
    ends(program(model, "--prompt", "x"), 2)
    done = program(LICENCE, "--prompt", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "matrices of I2_S have to be written anew as TQ2_0" in done.stderr


def test_prompts_that_the_model_cannot_take_are_refused(program: Generate, licence: Path):
    for prompt, reason in (
        ("1,128", "tokens 0 to 127, not 128"),
        (",".join(["1"] * 600), "600 tokens are more than the"),
    ):
        done = program(licence, "--prompt-ids", prompt)
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr.splitlines()[-1]


POSITIONS, LONG = 24, 22


def sensitive(vocabulary: int, scale: float = 2.0**-17, **more: int) -> Content:
    """A random model of few positions. Its values are so small that what attention adds depends on the eps of norms."""
    made = random_content(config(256, 256, 1, 4, 4, 64, 256, POSITIONS), 9)
    weights, _ = made.matrices[0]["v"]
    made.matrices[0]["v"] = weights, scale
    made.config |= {"vocab_size": vocabulary} | more
    made.embedding = np.pad(made.embedding, [(0, vocabulary - 256), (0, 0)])
    return made


def tokens(program: Generate, model: Path, length: int, count: int) -> list[int]:
    """What stands behind a prompt of so many tokens."""
    prompt = [(37 * i + 11) % 256 for i in range(length)]
    done = program(model, "--prompt-ids", ",".join(map(str, prompt)), "-n", str(count))
    assert done.returncode == 0, done.stderr
    found = [int(token) for token in done.stdout.split()]
    assert found[:length] == prompt
    return found[length:]


@pytest.fixture(scope="module")
def few_positions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("few") / "few.gguf", sensitive(256), "TQ2_0")


@pytest.fixture(scope="module")
def behind(program: Generate, few_positions: Path) -> list[int]:
    """Its tokens behind a prompt that leaves room for two: the third needs no position of its own."""
    found = tokens(program, few_positions, LONG, 9)
    assert len(found) == POSITIONS - LONG + 1
    return found


def test_the_last_position_may_be_the_prompts(program: Generate, few_positions: Path):
    assert len(tokens(program, few_positions, POSITIONS, 9)) == 1
    done = program(few_positions, "--prompt", "x" * (POSITIONS + 1))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{POSITIONS + 1} tokens are more than the {POSITIONS} positions" in done.stderr


def test_text_is_for_vocabularies_of_256_at_most(program: Generate, tmp_path: Path):
    """256 tokens are taken above: the refusal is of the positions there."""
    model = write_gguf(tmp_path / "model.gguf", sensitive(257), "TQ2_0")
    done = program(model, "--prompt", "x" * (POSITIONS + 1))
    assert (done.returncode, done.stdout) == (2, "")
    assert "--prompt is for 256 tokens at most" in done.stderr


def test_a_text_ends_with_the_token_that_ends_it(program: Generate, behind: list[int], tmp_path: Path):
    end = behind[1]
    model = write_gguf(tmp_path / "model.gguf", sensitive(256, eos_token_id=end), "TQ2_0")
    assert tokens(program, model, LONG, 9) == behind[: behind.index(end) + 1]


def entry(key: str, kind: str, value: float) -> bytes:
    """A number in a file's metadata, with the end of its key."""
    code = {"I": 4, "i": 5, "f": 6, "Q": 10, "d": 12}[kind]
    return key.encode() + struct.pack(f"<I{kind}", code, value)


SIZES = {
    "context_length": POSITIONS, "embedding_length": 256, "block_count": 1, "feed_forward_length": 256,
    "attention.head_count": 4, "attention.head_count_kv": 4, "attention.key_length": 64,
}  # fmt: skip
EPSILON = "attention.layer_norm_rms_epsilon"


def rewritten(model: Path, folder: Path, entries: list[tuple[bytes, bytes]]) -> Path:
    """A copy with other metadata, of which 32 bytes more keep the tensors where they belong."""
    content = model.read_bytes()
    for old, new in entries:
        assert content.count(old) == 1, old
        content = content.replace(old, new)
    assert (len(content) - model.stat().st_size) % 32 == 0
    copy = folder / "model.gguf"
    copy.write_bytes(content)
    return copy


def test_numbers_of_every_kind_are_read(program: Generate, few_positions: Path, behind: list[int], tmp_path: Path):
    """Unsigned and signed, of 32 and 64 bits, and floats that are whole."""
    wide = [(entry(key, "I", size), entry(key, "Q", size)) for key, size in SIZES.items()]
    wide.append((entry(EPSILON, "f", 1e-5), entry(EPSILON, "d", 1e-5)))
    assert tokens(program, rewritten(few_positions, tmp_path, wide), LONG, 9) == behind
    kinds = zip(SIZES.items(), "iffiiff", strict=True)
    narrow = [(entry(key, "I", size), entry(key, kind, size)) for (key, size), kind in kinds]
    assert tokens(program, rewritten(few_positions, tmp_path, narrow), LONG, 9) == behind


def test_numbers_that_are_missing_are_bitnets(
    program: Generate, few_positions: Path, behind: list[int], tmp_path: Path
):
    """eps 1e-5, theta 500000, as many key heads as heads, heads that share the width, 4096 positions."""
    missing = ("context_length", EPSILON, "rope.freq_base", "attention.head_count_kv", "attention.key_length")
    entries = [(f"{key}{end}".encode(), f"{key[:-1]}?{end}".encode()) for key in missing for end in "\4\6"]
    entries = [(old, new) for old, new in entries if old in few_positions.read_bytes()]
    assert len(entries) == len(missing)
    model = rewritten(few_positions, tmp_path, entries)
    found = tokens(program, model, LONG, 9)
    assert (found[: len(behind)], len(found)) == (behind, 9)
    done = program(model, "--prompt-ids", ",".join(["1"] * 4097))
    assert (done.returncode, done.stdout) == (2, "")
    assert "4097 tokens are more than the 4096 positions" in done.stderr


def test_all_names_of_the_architecture_are_taken(program: Generate, behind: list[int], tmp_path: Path):
    """Stock llama.cpp's says that positions are scaled by 1; another factor is refused, as another activation is."""
    model = write_gguf(tmp_path / "25.gguf", sensitive(256), "TQ2_0", "bitnet-25")
    assert tokens(program, model, LONG, 9) == behind
    model = write_gguf(tmp_path / "stock.gguf", sensitive(256), "TQ2_0", "bitnet")
    assert tokens(program, model, LONG, 9) == behind
    one, two = (entry("bitnet.rope.scaling.factor", "f", factor) for factor in (1, 2))
    activation = b"bitnet.hidden_activation"
    text = struct.pack(f"<Q{len(activation)}sIQ30s", len(activation), activation, 8, 30, b"gelu")  # 32 bytes longer
    for old, new, said in (
        (one, two, "rope.scaling is not the default"),
        (struct.pack("<Q", 26) + one, text, "bitnet.hidden_activation is 'gelu"),
    ):
        done = program(rewritten(model, tmp_path, [(old, new)]), "--prompt", "x")
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def with_tensor(model: Path, copy: Path, name: str, dims: tuple[int, ...], number: int, content: bytes) -> Path:
    """The file with another tensor, of ggml's type `number`, behind all others."""
    old, last = model.read_bytes(), b"blk.0.ffn_down.weight"
    end = old.index(last) + len(last) + 4 + 2 * 8 + 4 + 8  # dimensions, type, offset: the last of the list
    start = end + -end % 32
    data = old[start:] + bytes(-len(old[start:]) % 32)
    named = struct.pack("<Q", len(name)) + name.encode()
    info = named + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, len(data))
    (count,) = struct.unpack_from("<Q", old, 8)
    head = old[:8] + struct.pack("<Q", count + 1) + old[16:end] + info
    copy.write_bytes(head + bytes(-len(head) % 32) + data + content)
    return copy


def test_a_head_of_its_own_is_used(program: Generate, few_positions: Path, behind: list[int], tmp_path: Path):
    """Whose rows are those of the embedding, 100 further on."""
    rows = np.roll(sensitive(256).embedding.astype("<f2"), 100, axis=0)
    model = with_tensor(few_positions, tmp_path / "m.gguf", "output.weight", rows.shape[::-1], 1, rows.tobytes())
    assert tokens(program, model, LONG, 1) == [(behind[0] + 100) % 256]


def test_a_matrix_is_scaled_by_a_number_beside_it(
    program: Generate, few_positions: Path, behind: list[int], tmp_path: Path
):
    scale = np.float32(64).tobytes()
    model = with_tensor(few_positions, tmp_path / "m.gguf", "blk.0.attn_v.scale", (1,), 0, scale)
    expected = write_gguf(tmp_path / "expected.gguf", sensitive(256, scale=2.0**-11), "TQ2_0")
    found = tokens(program, model, LONG, 9)
    assert found == tokens(program, expected, LONG, 9)
    assert found != behind
