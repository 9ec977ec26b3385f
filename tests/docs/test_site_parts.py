"""Parts of the site's generated pages, each on a small input."""

import json
from inspect import getdoc
from typing import Annotated, Any

import pytest
import typer
from markdown_it import MarkdownIt

import bdforge
from bdforge.operators import OPERATORS
from support.built_designs import ROOT
from tools.site import api, commands, operators
from tools.site.build import list_versions
from tools.site.parts import escaped
from tools.site.schemas import SchemaTables


@pytest.mark.parametrize("text", [
    "a_b_c and *x* <path> [0<=x<=4] a|b # no", "`code_*` and _text_", r"back\slash", "x `a|b` <b>", "--shape 1_000_000",
])  # fmt: skip
def test_escaped_text_means_itself(text: str):
    inline = MarkdownIt().parseInline(escaped(text))[0].children or []
    assert {token.type for token in inline} <= {"text", "text_special", "code_inline"}
    assert "".join(f"`{token.content}`" if token.type == "code_inline" else token.content for token in inline) == text


def test_a_command_tells_its_arguments_options_and_defaults():
    app = typer.Typer(add_completion=False)

    @app.command()
    def run(
        design: Annotated[str, typer.Argument(help="A folder of <yours>.")],
        seed: Annotated[int, typer.Option("--seed", "-s", min=0, help="Of what is random.")] = 7,
        secret: Annotated[bool, typer.Option("--secret", hidden=True)] = False,
    ) -> None:
        """Run a_design.

        And compare it.
        """

    text = "\n".join(commands.page("run", typer.main.get_command(app)))
    for part in (
        "# bdforge run\n", "Run a\\_design.\n\nAnd compare it.\n", "```text\nbdforge run [OPTIONS] ",
        "A folder of \\<yours\\>.  \\[required\\]", "{option} -s, --seed", "\\[default: 7; x\\>=0\\]",
    ):  # fmt: skip
        assert part in text
    assert "secret" not in text


def test_hidden_commands_have_no_page_and_groups_tell_all_of_theirs():
    made = commands.pages()
    assert "commands/check-run.md" not in made
    assert made["commands/insts.md"].count("\n## bdforge insts ") == 4
    assert "| [`bdforge run`](commands/run.md) | Run a built design" in made["commands.md"]


SCHEMA: dict[str, Any] = {
    "description": "The *whole*.",
    "required": ["name", "parts"],
    "properties": {
        "name": {"type": "string", "pattern": "^a|b$"},
        "mode": {"enum": ["x", 1], "default": "x"},
        "size": {"type": ["integer", "string"], "minimum": 1, "maximum": 8},
        "parts": {"type": "array", "items": {"anyOf": [
            {"type": "object", "required": ["ring"], "properties": {"ring": {"type": "string"}}},
            {"type": "object", "required": ["lock"], "properties": {"lock": {"type": "integer"}, "for": {}}},
            {"type": "object", "required": ["do"], "properties": {"do": {"type": "array"}}},
        ]}},
        "body": {"$ref": "#/$defs/body"},
        "other": {"anyOf": [{"type": "null"}, {"type": "boolean"}], "default": None},
    },
    "$defs": {"body": {"type": "array", "items": {
        "type": "object", "required": ["loop"], "properties": {"loop": {"$ref": "#/$defs/body"}},
    }}},
}  # fmt: skip


def test_a_schema_becomes_tables_that_lead_to_each_other():
    assert (
        "\n".join(SchemaTables(json.loads(json.dumps(SCHEMA))).sections("All"))
        == """\
## All

The \\*whole\\*.

| key | value | default |
| --- | --- | --- |
| `name` | string like `^a\\|b$` | required |
| `mode` | `"x"` or `1` | `"x"` |
| `size` | integer or string, at least 1, at most 8 |  |
| `parts` | array of [`parts.ring`](#partsring) or [`parts.lock`](#partslock) | required |
| `body` | array of [`body`](#body) |  |
| `other` | boolean |  |

## `parts.ring`

| key | value | default |
| --- | --- | --- |
| `ring` | string | required |

## `parts.lock`

| key | value | default |
| --- | --- | --- |
| `lock` | integer | required |

## `body`

| key | value | default |
| --- | --- | --- |
| `loop` | array of [`body`](#body) | required |
"""
    )


@pytest.mark.slow
def test_operators_tell_every_key_that_designs_use():
    made = operators.pages()
    for path in ROOT.glob("designs/*.toml"):
        spec = operators.load_spec(path)
        text = made[f"operators/{spec.kind}.md"]
        assert f"[{path.stem}](../../designs/{path.stem}.toml)" in text
        tables = [spec.content, *(value for value in spec.content.values() if isinstance(value, dict))]
        assert [key for table in tables for key in table if f"| `{key}` |" not in text] == [], path.name
    assert "X bf16, W bf16 → Y bf16 | npu2, npu1 |" in made["operators/rows.md"]
    assert all(f"operators/{kind}.md" in made for kind in OPERATORS)


def test_the_page_of_specs_leads_to_every_kind():
    text = (ROOT / "docs" / "designs.md").read_text(encoding="utf-8")
    assert [kind for kind in operators.KINDS if f"| [`{kind}`](" not in text] == []


def test_the_api_page_has_all_that_is_public():
    text = api.pages()["api.md"]
    assert [name for name in bdforge.__all__ if f":: bdforge.{name}\n" not in text] == []
    assert ":: bdforge.design.sequences.WalkError\n" in api.pages()["api/bdforge.design.sequences.md"]
    assert "WalkError" not in api.pages()["api/bdforge.operators.md"]


def test_what_is_public_has_a_docstring():
    assert [name for name in bdforge.__all__ if name != "__version__" and not getdoc(getattr(bdforge, name))] == []


def test_versions_are_numbers_not_texts(tmp_path):
    for name in ("0.9.1", "0.10.0", "0.2.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / ".git").mkdir()
    list_versions(tmp_path)
    assert (tmp_path / "versions.js").read_text() == 'var versions = ["0.10.0", "0.9.1", "0.2.0"];\n'
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()


def test_every_page_of_docs_stands_in_a_list_of_the_site():
    listed = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tools" / "site" / "pages").glob("*.md"))
    lines = set(listed.splitlines())
    assert [path.stem for path in (ROOT / "docs").glob("*.md") if f"docs/{path.stem}" not in lines] == []
