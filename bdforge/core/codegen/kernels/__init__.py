"""Kernels that this project assembles: the integer family, by the names and options of those in `kernels/`."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from bdforge.core.codegen.abi import AssemblyKernel, Callee
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels.elementwise_kernels import elementwise
from bdforge.core.codegen.kernels.kernel_function import Options
from bdforge.core.codegen.kernels.products import multiply
from bdforge.core.codegen.kernels.scaled import scaled
from bdforge.core.codegen.kernels.tile_kernels import finish, zero
from bdforge.core.codegen.pipeline import Pipelined

_MAKERS = {"mm": multiply, "zero": zero, "unscale": finish, "finish": finish, "elementwise": elementwise}
_MAKERS_BY_NAME = {"finish_i32_bf16": scaled}


def assembled(name: str, generation: str, defines: Iterable[str]) -> AssemblyKernel:
    """The kernel of a name for a tile, with options as `-D` gives them (docs/kernels.md).

    CodegenError where there is none, with the reason.
    """
    made, source = _made(name, generation, tuple(defines)), f"bdforge.core.codegen.kernels: {name}"
    if isinstance(made, str):
        return AssemblyKernel(Callee(name, quiet=True), made, source)
    return AssemblyKernel(Callee(name, quiet=True), made.text, source, made.cycles)


def refusal(name: str, generation: str, defines: Iterable[str]) -> str | None:
    """Why there is no assembled kernel of a name; None where there is one."""
    try:
        _maker(name, generation, tuple(defines))
    except CodegenError as error:
        return str(error)
    return None


@lru_cache(maxsize=64)
def _made(name: str, generation: str, defines: tuple[str, ...]) -> Pipelined | str:
    return _maker(name, generation, defines)()


def _maker(name: str, generation: str, defines: tuple[str, ...]) -> Callable[[], Pipelined | str]:
    maker = _MAKERS_BY_NAME.get(name) or _MAKERS.get(name.partition("_")[0])
    if maker is None:
        raise CodegenError(f"{name} is not assembled: there are {', '.join(f'{prefix}_*' for prefix in _MAKERS)}")
    return maker(name, generation, Options.of(defines))
