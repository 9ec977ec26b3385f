"""One core with buffers of a test's choice: values go in as initial values, results come out as memory."""

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

import bdforge

MLIR_TYPES = {
    np.dtype(np.int8): "i8", np.dtype(np.int16): "i16", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64",
    np.dtype(np.float16): "f16", np.dtype(np.float32): "f32", np.dtype(np.float64): "f64",
}  # fmt: skip

DESIGN = """module {{
  aie.device({device}) {{
    %tile = aie.tile(1, 3)
{outside}
{buffers}
    %core = aie.core(%tile) {{
{constants}
{body}
      aie.end
    }} {{stack_size = 4096 : i32}}
  }}
}}
"""


class Bf16(np.ndarray):
    """The 16 bits of bf16 values, as memory holds them."""


def bf16(values) -> np.ndarray:
    """The bits of the nearest bf16 values, ties to even, by integer arithmetic on float32 bits."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return rounded.astype(np.uint16).view(Bf16)


def widened(bits: np.ndarray) -> np.ndarray:
    """float32 values of bf16 bits."""
    return (np.asarray(bits, np.uint32) << 16).view(np.float32)


def memref(array: np.ndarray) -> str:
    """The memref type of an array."""
    return f"memref<{''.join(f'{n}x' for n in array.shape)}{element_of(array)}>"


def element_of(array: np.ndarray) -> str:
    """What MLIR calls its elements."""
    return "bf16" if isinstance(array, Bf16) else MLIR_TYPES[array.dtype]


def design(
    body: str, buffers: Mapping[str, np.ndarray], outside: str = "", device: str = "npu2", constants: int = 9
) -> str:
    """Text of a design whose core runs `body`; its values are %c0 to %c8 (index) and one memref for each buffer."""
    lines = [
        f'    %{name} = aie.buffer(%tile) {{sym_name = "{name}"}} : {memref(array)} = dense<"0x{_bytes(array)}">'
        for name, array in buffers.items()
    ]
    numbers = [f"      %c{i} = arith.constant {i} : index" for i in range(constants)]
    return DESIGN.format(
        device=device, outside=outside, buffers="\n".join(lines), constants="\n".join(numbers), body=body
    )


def _bytes(array: np.ndarray) -> str:
    return np.ascontiguousarray(array).tobytes().hex().upper()


def run_core(
    body: str,
    buffers: Mapping[str, np.ndarray],
    outside: str = "",
    device: str = "npu2",
    kernels: Mapping[str, Callable] | None = None,
    permissive: Collection[str] = ("start-modes",),
    **options,
) -> Mapping[str, np.ndarray]:
    """Memory of the buffers after the core has ended; bf16 rounds as IEEE 754 has it, unless `permissive` is given."""
    text = design(body, buffers, outside, device)
    return bdforge.emulate(text, kernels=kernels, permissive=permissive, **options).buffers


def computed(
    lines: Callable[[Callable[[str], str]], Iterable[str]],
    inputs: Mapping[str, np.ndarray],
    results: Mapping[str, np.ndarray],
    vector: bool = False,
    **options,
) -> dict[str, np.ndarray]:
    """What lines make of %name of each input: %name of each result, element by element or in one vector.

    `lines` gets what tells the type of elements: `i8`, or a vector of all of them.
    """
    (count,) = {len(array) for array in inputs.values()}
    place, dialect = ("%c0", "vector") if vector else ("%i", "memref")

    def of(element: str) -> str:
        return f"vector<{count}x{element}>" if vector else element

    def typed(array: np.ndarray) -> str:
        return memref(array) + (f", {of(element_of(array))}" if vector else "")

    body = [f"%{name} = {dialect}.load %{name}_in[{place}] : {typed(array)}" for name, array in inputs.items()]
    body += lines(of)
    body += [f"{dialect}.store %{name}, %{name}_out[{place}] : {typed(array)}" for name, array in results.items()]
    if not vector:
        body = [f"%count = arith.constant {count} : index", "scf.for %i = %c0 to %count step %c1 {", *body, "}"]
    buffers = {f"{name}_in": array for name, array in inputs.items()}
    buffers |= {f"{name}_out": array for name, array in results.items()}
    found = run_core("\n".join(body), buffers, **options)
    return {name: found[f"{name}_out"] for name in results}
