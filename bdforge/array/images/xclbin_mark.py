"""The section that marks an xclbin as one for the emulated array only: what the host runs for which core."""

from pydantic import BaseModel, ValidationError

from bdforge.array.images.xclbin import HostKernels


class _Mark(BaseModel):
    bdforge_host_kernels: list[tuple[tuple[int, int], tuple[str, ...]]]


def marked(host_kernels: HostKernels) -> bytes:
    """The section's content."""
    return _Mark(bdforge_host_kernels=sorted(host_kernels.items())).model_dump_json().encode()


def mark_of(content: bytes) -> HostKernels | None:
    """What a section of this kind says; None for somebody else's."""
    try:
        return dict(_Mark.model_validate_json(content).bdforge_host_kernels)
    except ValidationError:
        return None
