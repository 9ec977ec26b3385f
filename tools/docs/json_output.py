"""docs/json.md: the objects that commands print with `--json`, from the classes that make them."""

import re

from bdforge.cli import json_design, json_figures, json_object, json_output
from bdforge.cli.json_object import JsonObject
from tools.docs.markdown import prose, section, table

OUTPUTS = (*json_object.OUTPUTS, *json_output.OUTPUTS, *json_design.OUTPUTS, *json_figures.OUTPUTS)
_FOR = "For whoever calls commands from a program: the objects that `--json` prints.\n"
_START = (
    prose(
        "`--json` prints one JSON object instead of lines; what is told besides goes to the standard error stream, and",
        "exit codes are as without it. A command that cannot print its object, since an argument or a file cannot be",
        "used, prints a [Refusal](#refusal) in its place.",
    ),
    prose(
        "`bdforge verify`, `doctor`, `reproduce`, `estimate` and `show` of a design have the objects below. `bdforge",
        "explain` and `insts decode` print the values of their tables by the names that these have. JSON Schema of an",
        "object:",
    ),
    """```python
import json

from bdforge.cli.json_output import VerifiedDesign

print(json.dumps(VerifiedDesign.model_json_schema(), indent=1))
```
""",
)


def page() -> str:
    """The page as it should be."""
    return "\n".join(["# Output for other programs\n", _FOR, *_START, *(_of(one) for one in OUTPUTS)])


def _of(output: type[JsonObject]) -> str:
    lines = [
        (f"`{name}`", _type(field.annotation), field.description or "") for name, field in output.model_fields.items()
    ]
    assert output.__doc__
    return section(output.__name__, f"{output.__doc__}\n", table(("field", "type", ""), lines))


def _type(annotation: object) -> str:
    text = (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)
    )
    return re.sub(r"bdforge\.cli\.json_\w+\.", "", text).replace("|", "or")
