"""Text of a lowered whole-array design of any length."""

from collections.abc import Iterator

DIRECTIONS = ("S2MM", "MM2S", "S2MM")


def program(column: int, row: int) -> Iterator[str]:
    """A DMA program of three ping-pong channels."""
    yield f"aie.{'memtile_dma' if row == 1 else 'mem'}(%t{column}_{row}) {{"
    for k, direction in enumerate(DIRECTIONS):
        yield f"^s{k}:" if k else ""
        yield f"%{k} = aie.dma_start({direction}, {k // 2}, ^b{2 * k}, {f'^s{k + 1}' if k < 2 else '^end'})"
        for q in (2 * k, 2 * k + 1):
            yield f"^b{q}:"
            yield f"aie.use_lock(%l{column}_{row}_{2 * k}, AcquireGreaterEqual, 1)"
            dims = "[<size = 4, stride = 64>, <size = 16, stride = 4>, <size = 4, stride = 1>]"
            yield f"aie.dma_bd(%b{column}_{row}_{q} : memref<16x16xi32>, 0, 256, {dims}) {{bd_id = {q} : i32}}"
            yield f"aie.use_lock(%l{column}_{row}_{2 * k + 1}, Release, 1)"
            yield f"aie.next_bd ^b{q ^ 1}"
    yield from ("^end:", "aie.end", "}")


def tile(column: int, row: int) -> Iterator[str]:
    """A tile with buffers, locks, DMA program and, above the memtiles, a core."""
    name = f"{column}_{row}"
    yield f"%t{name} = aie.tile({column}, {row})"
    for n in range(6):
        given = f'{{address = {1024 * n + 1024} : i32, sym_name = "b{name}_{n}"}}'
        yield f"%b{name}_{n} = aie.buffer(%t{name}) {given} : memref<16x16xi32>"
        yield f'%l{name}_{n} = aie.lock(%t{name}, {n}) {{init = {n % 2} : i32, sym_name = "l{name}_{n}"}}'
    yield from program(column, row)
    if row > 1:
        yield f"aie.core(%t{name}) {{\n%c0 = arith.constant 0 : index\n%i = arith.constant 3 : i32"
        for n in range(30):
            yield f"aie.use_lock(%l{name}_1, AcquireGreaterEqual, 1)"
            yield f"func.call @k(%b{name}_0, %i) : (memref<16x16xi32>, i32) -> ()"
            yield f"%v{n} = memref.load %b{name}_0[%c0, %c0] : memref<16x16xi32>"
            yield f"aie.use_lock(%l{name}_2, Release, 1)"
        yield "aie.end\n}"


def design(lines: int) -> str:
    """A lowered design of at least `lines` lines on all 40 tiles with memory."""
    text = ["aie.device(npu2) {", "%s = aie.tile(0, 0)", "aie.shim_dma_allocation @in(%s, MM2S, 0)"]
    text.append("func.func private @k(memref<16x16xi32>, i32)")
    for column in range(8):
        for row in range(1, 6):
            text += tile(column, row)
    text.append("aie.runtime_sequence(%a: memref<1024x1024xi32>) {")
    for n in range((lines - len(text)) // 6 + 1):
        dims = "[<size = 4, stride = 64>, <size = 16, stride = 1024>, <size = 64, stride = 1>]"
        text.append(f"%t{n} = aiex.dma_configure_task_for @in {{")
        text.append(f"aie.dma_bd(%a : memref<1024x1024xi32>, {n * 256}, 4096, {dims}) {{bd_id = {n % 16} : i32}}")
        text += ["aie.end", "} {issue_token = true}", f"aiex.dma_start_task(%t{n})", f"aiex.dma_await_task(%t{n})"]
    return "\n".join([*text, "}", "}"])
