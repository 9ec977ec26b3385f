"""Compiling kernels with g++ against the host stand-in of the AIE API, and calling them through ctypes."""

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
HERE = Path(__file__).resolve().parent
REFERENCES = KERNELS / "reference"
SYMBOLS = [f"{source.stem}{end}" for source in (KERNELS / "aie2p").glob("*.cc") for end in ("", "_ref")]
ALIGNMENT_BYTES = 64
MESSAGE_BYTES = 512
PLAIN = "-DHOSTAPI_PLAIN"  # no SIMD builtins
ARCH = {"aie2p": (), "aie2": ("-D__AIE_ARCH__=20",)}


class KernelError(Exception):
    """A refusal of the stand-in, with its sentence."""


class Build(NamedTuple):
    """Kernels, or references, of a generation for a tile, with further options of g++."""

    generation: str
    names: tuple[str, ...]
    tile: tuple[int, int, int]
    options: tuple[str, ...] = ()

    @property
    def flags(self) -> list[str]:
        """All options but those of speed."""
        return [*self.options, *tile_options(*self.tile)]


def gxx(*options: str | Path) -> subprocess.CompletedProcess[str]:
    """Run g++ with the stand-in's include path."""
    command = ["g++", "-std=c++20", "-Wall", "-Wextra", f"-I{KERNELS / 'hostapi'}", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def tile_options(m: int, k: int, n: int) -> list[str]:
    """The tile as g++ options."""
    return [f"-DDIM_M={m}", f"-DDIM_K={k}", f"-DDIM_N={n}"]


def sources(*names: str) -> list[Path]:
    """Files of kernels by symbol; "reference" and "floats" are those of all references."""
    files = [(REFERENCES / f"{name}.cc", KERNELS / "aie2p" / f"{name}.cc") for name in names]
    return [reference if reference.is_file() else kernel for reference, kernel in files]


def compile_without_warning(*options: str | Path) -> str:
    """Run g++ for position-independent code and demand silence; gives what it prints."""
    result = gxx("-fPIC", *options)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def unit(builds: Sequence[Build], api: Sequence[str]) -> str:
    """One source for all builds: each preprocessed file in a namespace of its own, as their macros differ, and the
    symbols of the build number i with the suffix _i."""
    text = ""
    for i, build in enumerate(builds):
        renamed = [f"-D{symbol}={symbol}_{i}" for symbol in SYMBOLS]
        for j, source in enumerate(sources(*build.names)):
            lines = compile_without_warning("-E", "-fpch-preprocess", *api, *build.flags, *renamed, source).splitlines()
            kept = "\n".join(line for line in lines if "pch_preprocess" not in line)
            text += f"namespace build_{i}_{j} {{\n{kept}\n}}\n"
    return text


class Library:
    """Kernels of a shared library; those that `unit` gave a suffix are called without it."""

    def __init__(self, path: Path, suffix: str = ""):
        self.library, self.suffix = ctypes.CDLL(str(path)), suffix
        self.reset()

    def call(self, name: str, *args: np.ndarray | int, core: int = 0) -> None:
        """Call a kernel with arrays and integers as one core. Raises KernelError with the stand-in's sentence."""
        symbol = f"{name}{self.suffix}" if name in SYMBOLS else name
        function = ctypes.cast(getattr(self.library, symbol), ctypes.c_void_p)
        words = [arg.ctypes.data if isinstance(arg, np.ndarray) else arg % 2**64 for arg in args]
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        state = self.states.setdefault(core, ctypes.create_string_buffer(self.library.hostapi_state_bytes()))
        array = (ctypes.c_uint64 * max(len(words), 1))(*words)
        if self.library.hostapi_call(function, state, array, len(words), message, ctypes.c_size_t(MESSAGE_BYTES)):
            raise KernelError(message.value.decode())

    def reset(self) -> None:
        """Rounding and saturation of all cores as after a reset."""
        self.states: dict[int, Any] = {}


def aligned(shape: int | tuple[int, ...], dtype: Any, skew_bytes: int = 0) -> np.ndarray:
    """A zeroed array that starts `skew_bytes` past an alignment boundary."""
    size_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size_bytes + 2 * ALIGNMENT_BYTES, np.uint8)
    start = -room.ctypes.data % ALIGNMENT_BYTES + skew_bytes
    return room[start : start + size_bytes].view(dtype).reshape(shape)


def aligned_copy(values: Any, dtype: Any) -> np.ndarray:
    """An aligned array with these values."""
    values = np.asarray(values)
    array = aligned(values.shape, dtype)
    array[...] = values
    return array
