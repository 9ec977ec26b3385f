"""Whose a program is, in words."""

from bdforge.array.images.programs import DistinctProgram
from bdforge.array.show.array_use import places


def cores_text(found: DistinctProgram) -> str:
    """How many cores run a program, and which: `32 cores (0-7, 2-5)`, by configuration where a file has several."""
    groups: dict[str, list[tuple[int, int]]] = {}
    for program in found.same:
        groups.setdefault(program.name.rpartition("tile")[0], []).extend([program.tile] if program.tile else [])
    where = "; ".join(f"{group}{places(tiles)}" for group, tiles in groups.items() if tiles)
    return f"{len(found.same)} core{'s' * (len(found.same) != 1)} {where}".strip()
