"""Designs with their routes written as switch settings."""

from bdforge.array.mlir import parse, print_module
from bdforge.array.routing.write import write_routes


def physical_form(text: str) -> str:
    """The text of a design after our router."""
    module = parse(text)
    write_routes(module)
    return print_module(module)
