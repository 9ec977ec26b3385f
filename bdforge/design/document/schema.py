"""The JSON Schema of documents, for editors: generated from the tables by which they are read."""

import json

from bdforge.design.document.document_values import schema_of
from bdforge.design.document.program_reading import STATEMENTS
from bdforge.design.document.to_design import DOCUMENT
from bdforge.design.document.to_programs import STATEMENT
from bdforge.design.manifest import DIALECT


def json_schema() -> str:
    """The schema as JSON text."""
    of_sequence = [{"type": "string"}, *(table.schema() for table in STATEMENTS.values())]
    together = {"type": "object", "properties": {"do": {"type": "array"}}, "required": ["do"]}
    definitions = {
        "statement": {"anyOf": [schema_of(STATEMENT), together]},
        "statements": {"type": "array", "items": {"anyOf": of_sequence}},
    }
    found = {"$schema": DIALECT, "title": "Descriptor document"} | DOCUMENT.schema() | {"$defs": definitions}
    return json.dumps(found, indent=2) + "\n"
