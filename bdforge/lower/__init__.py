"""MLIR to register writes: the static configuration of an array, each write with the operation that it comes from.

`configuration` lowers a device of the text; what a runtime sequence writes is `bdforge.txn`'s.
"""

from bdforge.lower.configuration import Configuration, allocated, configuration
from bdforge.lower.cores import Piece

__all__ = ["Configuration", "Piece", "allocated", "configuration"]
