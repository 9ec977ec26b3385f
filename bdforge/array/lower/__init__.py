"""MLIR to register writes: the static configuration of an array, each write with the operation that it comes from.

`configuration` lowers a device of the text; what a runtime sequence writes is `bdforge.array.txn`'s.
"""

from bdforge.array.lower.configuration import StaticConfiguration, allocated, configuration
from bdforge.array.lower.core_writes import ProgramSegment

__all__ = ["ProgramSegment", "StaticConfiguration", "allocated", "configuration"]
