"""Kernels for the emulated array: shared libraries built from the AIE sources, or Python modules."""

import ctypes
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from bdforge.common.messages import Fault, InputError, clip, clip_path, listed
from bdforge.common.watched import foreign, running

MESSAGE_BYTES = 512
MOST_ARGUMENTS = 24


class KernelLibraryError(InputError):
    """A kernel library that cannot be loaded."""


class KernelFault(Fault, RuntimeError):
    """A kernel broke a rule of its core: misaligned access, use of undefined values, and so on."""


class SharedLibrary(Mapping[str, Callable[..., Any]]):
    """Kernels of a shared library by symbol name.

    Libraries built with `kernels/hostapi/entry.cc` are called through `hostapi_call` with the modes of the core that
    calls, and turn faults into messages; others are called directly.
    """

    def __init__(self, path: Path):
        self._path, self._data = path, _data_symbols(path)
        try:
            with running(f"{clip_path(path)}: loading it"):
                self._library = ctypes.CDLL(str(path.resolve()))
        except OSError as error:
            raise KernelLibraryError(f"{clip_path(path)}: cannot load this kernel library: {error}") from None
        self._entry = getattr(self._library, "hostapi_call", None)
        if self._entry is not None and not hasattr(self._library, "hostapi_state_bytes"):
            raise KernelLibraryError(f"{clip_path(path)}: was built by another version of bdforge; build it again")
        self._direct: dict[object, Any] = {}  # the modes of calls that no core makes

    def __getitem__(self, name: str) -> "NativeKernel":
        if name in self._data:
            raise KernelLibraryError(
                f"{clip_path(self._path)}: its symbol {clip(name)} is data, not a function; no kernel"
            )
        try:
            function = self._library[name]
        except AttributeError:
            raise KeyError(name) from None
        return NativeKernel(self._library, function, self._entry, self._direct)

    def __iter__(self) -> Iterator[str]:
        """Nothing: a shared library is asked by name."""
        return iter(())

    def __len__(self) -> int:
        return 0


class NativeKernel:
    """One compiled kernel, as it runs on a core, of which `kept` has what its kernels remember."""

    def __init__(self, library, function, entry, kept: MutableMapping[object, Any]):
        self._library, self._function, self._entry = library, function, entry
        if entry is not None:
            # By core of an array: kept by the library, two arrays wrote over each other's modes.
            self._state = kept.setdefault(library, ctypes.create_string_buffer(library.hostapi_state_bytes()))
        self._address = ctypes.cast(function, ctypes.c_void_p)
        self._message = ctypes.create_string_buffer(MESSAGE_BYTES)
        self._prepared: dict[tuple[int, ...], tuple[tuple, ctypes.Array[ctypes.c_uint64]]] = {}

    def for_core(self, kept: MutableMapping[object, Any]) -> "NativeKernel":
        """The same kernel on another core, whose modes are in `kept`, those of each library apart."""
        return NativeKernel(self._library, self._function, self._entry, kept)

    def __call__(self, *arguments: np.ndarray | int) -> None:
        """Call with memory views and integers; KernelFault says what the kernel did wrong."""
        words = self._words(arguments)
        if self._entry is None:
            self._function(*[ctypes.c_uint64(w) for w in words])
            return
        if self._entry(self._address, self._state, words, len(words), self._message, MESSAGE_BYTES):
            raise KernelFault(self._message.value.decode(errors="replace"))

    def _words(self, arguments: tuple[np.ndarray | int, ...]) -> ctypes.Array[ctypes.c_uint64]:
        """Arguments as registers; kept for views, since a core calls with the same few buffers again and again."""
        key = tuple(map(id, arguments))
        if (known := self._prepared.get(key)) is not None:
            return known[1]
        if len(arguments) > MOST_ARGUMENTS:
            raise KernelFault(f"{len(arguments)} arguments; compiled kernels take at most {MOST_ARGUMENTS}")
        words = (ctypes.c_uint64 * len(arguments))(*[_word(a) for a in arguments])
        if all(isinstance(a, np.ndarray) for a in arguments):
            self._prepared[key] = arguments, words  # holding the views keeps their ids their own
        return words


def _word(argument: np.ndarray | int) -> int:
    if isinstance(argument, np.ndarray):
        return argument.__array_interface__["data"][0]
    if isinstance(argument, int):
        return argument & 0xFFFF_FFFF_FFFF_FFFF
    raise KernelFault(f"an argument of type {type(argument).__name__} cannot be passed to a compiled kernel")


def _symbols(path: Path) -> list[tuple[str, str, bool]]:
    """Symbols of a library with their types, and whether it holds them itself."""
    try:
        with path.open("rb") as file:
            tables = [part for part in ELFFile(file).iter_sections() if isinstance(part, SymbolTableSection)]
            symbols = [symbol for table in tables if table.name == ".dynsym" for symbol in table.iter_symbols()]
            return [(one.name, one["st_info"]["type"], one["st_shndx"] != "SHN_UNDEF") for one in symbols]
    except (OSError, ELFError, ValueError, KeyError):
        return []  # the loader says what is wrong with it


def _data_symbols(path: Path) -> set[str]:
    """Symbols of a library that are no functions: calling one ends the process."""
    return {name for name, kind, _ in _symbols(path) if kind in ("STT_OBJECT", "STT_TLS")}


def check_called(library: Path, functions: Iterable[str], design: str, sources: Iterable[str]) -> None:
    """KernelLibraryError where a library that was built of `sources` lacks functions that a design's cores call."""
    there = {name for name, kind, own in _symbols(library) if own and kind not in ("STT_OBJECT", "STT_TLS")}
    missing = [name for name in functions if name not in there]
    if there and missing:
        raise KernelLibraryError(
            f"{design}: its cores call {listed(map(clip, missing))}, which none of its kernels defines "
            f'({listed(map(clip_path, sources))}); define it there as extern "C", or name its source in kernels'
        )


def load_kernels(path: Path | str) -> Mapping[str, Callable[..., Any]]:
    """Kernels from `lib.so` or `module.py`; KernelLibraryError says why not."""
    path = Path(path)
    if not path.is_file():
        raise KernelLibraryError(f"{path}: no such kernel library")
    return _module(path) if path.suffix == ".py" else SharedLibrary(path)


def _module(path: Path) -> Mapping[str, Callable[..., Any]]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with foreign(clip_path(path), KernelLibraryError):
        spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if callable(value) and not name.startswith("_")}
