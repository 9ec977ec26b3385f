"""Tensors on a loaded array: `bdforge.einsum` of numpy arrays."""

from bdforge.models.tensors.einsum import Einsum, einsum

__all__ = ["Einsum", "einsum"]
