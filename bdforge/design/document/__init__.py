"""Descriptor documents: a whole design as TOML that people read and write, and back.

`document` writes the one of a design, `design_of` reads one. docs/document.md explains the grammar.
"""

from bdforge.design.document.document_values import DocumentError
from bdforge.design.document.from_design import document
from bdforge.design.document.program_reading import Surrounding, program_of
from bdforge.design.document.to_design import STDIN, design_of, document_in

__all__ = ["STDIN", "DocumentError", "Surrounding", "design_of", "document", "document_in", "program_of"]
