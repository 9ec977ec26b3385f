"""Limits of BDs: patterns that are planned, texts in both forms, and transfers at run time."""

from collections.abc import Callable, Iterator, Sequence

from limit_table import Case, Place, dma_program, read, refuses

from bd_patterns import Pattern, problems
from bdforge.devices.limits import CORE, MEMTILE, SHIM, TileLimits
from bdforge.devices.txn_format.bd_encoding import BdError, task_transfer

WORD = 32
ELEMENTS = 1 << 30  # of a buffer that every pattern below stays in; only its type is read


def _pattern(limits: TileLimits, made: Callable[[int], Pattern], *, static: bool = True) -> Case:
    return refuses(lambda n: problems(made(n), limits, WORD, static=static))


def _at_run_time(
    limits: TileLimits, sizes: Callable[[int], Sequence[int]], strides: Callable[[int], Sequence[int]]
) -> Case:
    return lambda n: task_transfer(limits, sizes(n), strides(n), WORD)


def _march(tile: str, dims: Callable[[int], Sequence[tuple[int, int]]]) -> Case:
    def case(n: int) -> None:
        shown = ", ".join(f"<size = {size}, stride = {stride}>" for size, stride in dims(n))
        bd = f"aie.dma_bd(%b : memref<{ELEMENTS}xi32>, 0, 64, [{shown}])"
        read(dma_program(tile, 1, ["^b0:", bd, "aie.end"], ELEMENTS))

    return case


def _modern(tile: str, length: int, sizes: Sequence[int], strides: Sequence[int]) -> None:
    walk = f"offset = 0 len = {length} sizes = {list(sizes)} strides = {list(strides)}"
    bd = f"aie.dma_bd(%b : memref<{ELEMENTS}xi32> {walk})"
    read(dma_program(tile, 1, ["^b0:", bd, "aie.end"], ELEMENTS))


def _memcpy(sizes: Callable[[int], Sequence[int]], strides: Callable[[int], Sequence[int]]) -> Case:
    def case(n: int) -> None:
        moved = f"%a[0, 0, 0, 0]{list(sizes(n))}{list(strides(n))}"
        line = f"aiex.npu.dma_memcpy_nd({moved}) {{id = 0 : i64, metadata = @in}} : memref<{ELEMENTS}xi32>"
        read(
            f"aie.shim_dma_allocation @in (%s, MM2S, 0)\n"
            f"aie.runtime_sequence(%a: memref<{ELEMENTS}xi32>) {{\n{line}\n}}"
        )

    return case


def _dims(limits: TileLimits, tile: str, _: int) -> Iterator[Place]:
    yield Place(_march(tile, lambda n: [(2, 1)] * n), "dimensions, but")
    made = lambda n: Pattern((2,) * n, tuple(2 ** (2 * i + 1) for i in reversed(range(n))))  # noqa: E731
    yield Place(_pattern(limits, made), "dimensions exceed", ValueError)


def _wraps(limits: TileLimits, tile: str, number: int) -> Iterator[Place]:
    def sizes(n: int, rank: int = 4) -> list[int]:
        return [n if number == place else 1 if place == 3 else 2 for place in reversed(range(rank))]

    strides = (0, 4096, 2048, 2)
    if number < 2:
        yield Place(_at_run_time(limits, sizes, lambda _: strides), f"size of dimension {number} is", BdError)
    if limits is SHIM:
        yield Place(_memcpy(sizes, lambda _: strides), f"size of dimension {number} is")
    pattern = lambda n: Pattern(tuple(sizes(n, limits.dims)), tuple(range(3 + 4 * limits.dims, 3, -4)))  # noqa: E731
    yield Place(_pattern(limits, pattern, static=False), f"exceeds the {limits.wraps[number]} of a", ValueError)
    if number == 0:
        yield Place(lambda n: _modern(tile, 64, [2, n], [8192, 1]), "holds sizes up to")


def _step_max(limits: TileLimits, tile: str, _: int) -> Iterator[Place]:
    for number in range(4):
        sizes = lambda _, runs=number == 3: (1 + runs, 2, 2, 2)  # noqa: E731
        strides = lambda n, number=number: [n if place == number else 2 for place in (3, 2, 1, 0)]  # noqa: E731
        yield Place(_at_run_time(limits, sizes, strides), f"stride of dimension {number} is", BdError)
        if limits is SHIM:
            yield Place(_memcpy(sizes, strides), f"stride of dimension {number} is")
    for place in range(3):
        strides = lambda n, place=place: tuple(n if i == place else 2 for i in range(3))  # noqa: E731
        made = lambda n, strides=strides: Pattern((2, 2, 2), strides(n))  # noqa: E731
        yield Place(_pattern(limits, made, static=False), "granules in", ValueError)
    yield Place(lambda n: _modern(tile, 64, [2, 2], [n, 1]), "holds strides up to")


def _length_max(limits: TileLimits, tile: str, _: int) -> Iterator[Place]:
    yield Place(_pattern(limits, lambda n: Pattern((n,), (1,))), "granules exceeds the", ValueError)
    if limits is not SHIM:
        yield Place(lambda n: _modern(tile, n, [2, 2], [8, 1]), "holds at most")


def _iterations(limits: TileLimits, *_: object) -> Iterator[Place]:
    sizes, strides = (lambda n: (n, 2, 2, 2)), (lambda _: (8, 4, 2, 1))
    yield Place(_at_run_time(limits, sizes, strides), "size of dimension 3", BdError)
    yield Place(
        _pattern(limits, lambda n: Pattern((n, 2, 2, 2), (8, 64, 16, 4)), static=False), "runs of the", ValueError
    )
    if limits is SHIM:
        yield Place(_memcpy(sizes, strides), "size of dimension 3 is")


def _static_size(limits: TileLimits, tile: str, _: int) -> Iterator[Place]:
    yield Place(_pattern(limits, lambda n: Pattern((2, n, 2), (4096, 4, 2))), "that aie.dma_bd takes", ValueError)
    if limits is not CORE:  # mlir-aie's own limit is that of memtiles everywhere
        yield Place(_march(tile, lambda n: [(2, 1024), (n, 1)]), f"may not exceed {MEMTILE.static_size}")


def _pad_max(limits: TileLimits, _: str, number: int) -> Iterator[Place]:
    for pair in ((1, 0), (0, 1)):
        padding = lambda n, pair=pair: tuple(  # noqa: E731
            (pair[0] * n, pair[1] * n) if place == number else (0, 0) for place in (2, 1, 0)
        )
        found = lambda n, padding=padding: problems(  # noqa: E731
            Pattern((4, 4, 4), (64, 8, 1)), limits, WORD, static=True, padding=padding(n)
        )
        yield Place(refuses(found), f"exceeds the {limits.pad_max[number]}", ValueError)


BD_PLACES: dict[str, Callable[[TileLimits, str, int], Iterator[Place]]] = {
    "dims": _dims, "wraps": _wraps, "step_max": _step_max, "length_max": _length_max,
    "iteration_wrap_max": _iterations, "static_size": _static_size, "pad_max": _pad_max,
}  # fmt: skip
