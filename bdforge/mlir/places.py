"""Where operations stood in the text they were parsed from."""

from xdsl.ir import Operation

from bdforge.mlir.errors import Location, MlirError, Source

_PLACE = "_bdforge_place"


def place(op: Operation, source: Source, offset: int) -> None:
    """Remember where an operation's name stands."""
    setattr(op, _PLACE, (source, offset))


def source_of(op: Operation) -> tuple[Source, int] | None:
    """Text and offset of a parsed operation; of the nearest one around it for an operation the parser added."""
    current: Operation | None = op
    while current is not None:
        if (found := getattr(current, _PLACE, None)) is not None:
            return found
        current = current.parent_op()
    return None


def location(op: Operation) -> Location:
    """Where an operation's name stands in the text it was parsed from."""
    found = source_of(op)
    if found is None:
        return Location("<built>", 1, 1)
    source, offset = found
    return source.location(offset)


def error_at(op: Operation, message: str) -> MlirError:
    """An error about a parsed operation."""
    found = source_of(op)
    if found is None:
        return MlirError(message, Location("<built>", 1, 1))
    return MlirError.at(*found, message)
