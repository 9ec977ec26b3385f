"""Random bodies of `aie.core`: arithmetic, memory, locks, loops with constant and run-time ends, choices and calls."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

WORDS, BYTES, LIMITS = 32, 64, 8
ADDED = 3  # what the kernel `bump` adds beside its argument

KERNEL = """
bump:   // (i32 words, i32 amount): words[i] += amount + 3 for the first four
        lda r8, [p0, #0]
        lda r9, [p0, #4]
        lda r10, [p0, #8]
        lda r11, [p0, #12]
        add r0, r0, #3
        nop
        nop
        add r8, r8, r0
        add r9, r9, r0
        add r10, r10, r0
        add r11, r11, r0
        st r8, [p0, #0]
        ret
        st r9, [p0, #4]
        st r10, [p0, #8]
        st r11, [p0, #12]
        nop
        nop
"""
"""The kernel as machine code. Its last store is under way when it returns."""


def bump(words: np.ndarray, amount: int) -> None:
    """The kernel as a host runs it."""
    words[:4] += np.int32(np.int64(amount + ADDED).astype(np.int32))


class _Writer:
    """Writes one body; values in scope are kept by type."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 2
        self.count = 0
        self.scope: dict[str, list[str]] = {"i32": [], "i1": [], "index": [], "i8": []}

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("  " * self.depth + text)

    def name(self) -> str:
        """A new value."""
        self.count += 1
        return f"%v{self.count}"

    def any(self, kind: str) -> str:
        """A value of a type, by chance a new constant."""
        known = self.scope[kind]
        if known and self.random.random() < 0.8:
            return self.random.choice(known)
        values = {"i1": [0, 1], "index": range(4), "i8": range(-128, 128)}
        number = self.random.choice(values.get(kind) or [0, 1, -1, 5, 1023, -1025, 70000, 2**31 - 1, -(2**31)])
        return self.put(
            kind,
            f"arith.constant {'true' if number else 'false'}" if kind == "i1" else f"arith.constant {number} : {kind}",
        )

    def put(self, kind: str, text: str) -> str:
        """Define a value."""
        name = self.name()
        self.line(f"{name} = {text}")
        self.scope[kind].append(name)
        return name

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A region: what is defined in it ends with it."""
        outer = {kind: list(names) for kind, names in self.scope.items()}
        self.depth += 1
        yield
        self.depth -= 1
        self.scope = outer


def _arithmetic(w: _Writer) -> None:
    kind = w.random.choice(["i32", "i32", "i8", "i1"])
    names = ["addi", "subi", "muli", "andi", "ori", "xori"] + (
        ["maxsi", "minsi", "maxui", "minui"] if kind != "i1" else []
    )
    w.put(kind, f"arith.{w.random.choice(names)} {w.any(kind)}, {w.any(kind)} : {kind}")


def _comparison(w: _Writer) -> None:
    kind = w.random.choice(["i32", "index", "i8", "i1"])
    word = w.random.choice(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
    w.put("i1", f"arith.cmpi {word}, {w.any(kind)}, {w.any(kind)} : {kind}")


def _selection(w: _Writer) -> None:
    kind = w.random.choice(["i32", "i8", "i1"])
    w.put(kind, f"arith.select {w.any('i1')}, {w.any(kind)}, {w.any(kind)} : {kind}")


def _cast(w: _Writer) -> None:
    text, kind, source = w.random.choice(
        [("trunci", "i8", "i32"), ("extsi", "i32", "i8"), ("extui", "i32", "i8"), ("extui", "i32", "i1"),
         ("extsi", "i32", "i1"), ("index_cast", "i32", "index")]
    )  # fmt: skip
    w.put(kind, f"arith.{text} {w.any(source)} : {source} to {kind}")


def _shift(w: _Writer) -> None:
    count = w.put("i32", f"arith.constant {w.random.randrange(32)} : i32")
    w.put("i32", f"arith.{w.random.choice(['shli', 'shrsi', 'shrui'])} {w.any('i32')}, {count} : i32")


def _place(w: _Writer, size: int) -> str:
    """An index inside: a constant, or a computed one with its upper bits cut."""
    if w.random.random() < 0.5:
        return w.put("index", f"arith.constant {w.random.randrange(size)} : index")
    mask = w.put("i32", f"arith.constant {size - 1} : i32")
    low = w.put("i32", f"arith.andi {w.any('i32')}, {mask} : i32")
    name = w.name()
    w.line(f"{name} = arith.index_cast {low} : i32 to index")
    return name


def _load(w: _Writer) -> None:
    kind, buffer, size = w.random.choice([("i32", "words", WORDS), ("i8", "bytes", BYTES)])
    w.put(kind, f"memref.load %{buffer}[{_place(w, size)}] : memref<{size}x{kind}>")


def _store(w: _Writer) -> None:
    kind, buffer, size = w.random.choice([("i32", "words", WORDS), ("i8", "bytes", BYTES)])
    w.line(f"memref.store {w.any(kind)}, %{buffer}[{_place(w, size)}] : memref<{size}x{kind}>")


def _locks(w: _Writer) -> None:
    count = w.random.randint(1, 3)
    w.line(f"aie.use_lock(%turn, AcquireGreaterEqual, {count})")
    _store(w)
    w.line(f"aie.use_lock(%turn, Release, {count})")


def _call(w: _Writer) -> None:
    buffer = w.random.choice(["words", "more"])
    w.line(f"func.call @bump(%{buffer}, {w.any('i32')}) : (memref<{WORDS}xi32>, i32) -> ()")


def _choice(w: _Writer) -> None:
    condition = w.any("i1")
    if w.random.random() < 0.3:  # arms that only differ in what they give a function
        amounts = w.any("i32"), w.any("i32")
        for word, buffer, amount in ((f"scf.if {condition} {{", "words", amounts[0]), ("} else {", "more", amounts[1])):
            w.line(word)
            w.line(f"  func.call @bump(%{buffer}, {amount}) : (memref<{WORDS}xi32>, i32) -> ()")
        w.line("}")
        return
    gives = w.random.random() < 0.6
    result = w.name()
    w.line(f"{f'{result} = ' if gives else ''}scf.if {condition} {'-> (i32) ' if gives else ''}{{")
    for arm in range(2):
        with w.inside():
            _some(w, 2)
            if gives:
                w.line(f"scf.yield {w.any('i32')} : i32")
        w.line("} else {" if arm == 0 else "}")
    if gives:
        w.scope["i32"].append(result)


def _switch(w: _Writer) -> None:
    if w.depth > 4:
        return _arithmetic(w)
    place, result = w.any("index"), w.name()
    gives = w.random.random() < 0.6
    w.line(f"{f'{result} = ' if gives else ''}scf.index_switch {place} {'-> i32' if gives else ''}")
    for arm in (*(f"case {n}" for n in w.random.sample(range(-1, 4), w.random.randint(1, 3))), "default"):
        w.line(f"{arm} {{")
        with w.inside():
            _some(w, 2)
            w.line(f"scf.yield {w.any('i32')} : i32" if gives else "scf.yield")
        w.line("}")
    if gives:
        w.scope["i32"].append(result)
    return None


def _loop(w: _Writer) -> None:
    if w.depth > 4:
        return _arithmetic(w)
    ends = [
        w.put("index", f"arith.constant {n} : index")
        for n in (w.random.randint(-1, 2), w.random.randint(0, 4), w.random.randint(1, 2))
    ]
    if w.random.random() < 0.5:
        word = w.put("i32", f"memref.load %limits[{_place(w, LIMITS)}] : memref<{LIMITS}xi32>")
        ends[1] = w.put("index", f"arith.index_cast {word} : i32 to index")
    results, starts = [w.name(), w.name()], [w.any("i32"), w.any("i32")]
    index, carried = w.name(), [w.name(), w.name()]
    start = ", ".join(f"{c} = {s}" for c, s in zip(carried, starts, strict=True))
    walk = f"{index} = {ends[0]} to {ends[1]} step {ends[2]}"
    w.line(f"{', '.join(results)} = scf.for {walk} iter_args({start}) -> (i32, i32) {{")
    with w.inside():
        w.scope["i32"] += carried
        w.scope["index"].append(index)
        _some(w, 3)
        given = carried[::-1] if w.random.random() < 0.4 else [w.any("i32"), w.any("i32")]
        w.line(f"scf.yield {given[0]}, {given[1]} : i32, i32")
    w.line("}")
    w.scope["i32"] += results
    return None


_KINDS = (
    _arithmetic, _arithmetic, _comparison, _selection, _cast, _shift, _load, _store, _store, _locks, _call, _choice,
    _switch, _loop, _loop,
)  # fmt: skip


def _some(w: _Writer, most: int) -> None:
    for _ in range(w.random.randint(1, most)):
        w.random.choice(_KINDS)(w)


def random_design(seed: int, device: str = "npu2", calls: bool = True) -> str:
    """A design of one core with a random body. Its memory is `words`, `more`, `bytes` and `limits`."""
    w = _Writer(seed)
    kinds = [kind for kind in _KINDS if calls or kind not in (_call, _choice)]
    while len(w.lines) < 30:
        w.random.choice(kinds)(w)
    for slot, name in enumerate(w.scope["i32"][-4:]):
        place = w.put("index", f"arith.constant {WORDS - 1 - slot} : index")
        w.line(f"memref.store {name}, %words[{place}] : memref<{WORDS}xi32>")
    numbers = np.random.default_rng(seed)
    words = ", ".join(map(str, numbers.integers(-(1 << 31), 1 << 31, WORDS)))
    small = ", ".join(map(str, numbers.integers(-128, 128, BYTES)))
    limits = ", ".join(map(str, numbers.integers(-2, 4, LIMITS)))
    body = "\n".join(w.lines)
    return f"""module {{ aie.device({device}) {{
    %tile = aie.tile(0, 2)
    %words = aie.buffer(%tile) {{sym_name = "words", address = 2048 : i32}} : memref<{WORDS}xi32> = dense<[{words}]>
    %more = aie.buffer(%tile) {{sym_name = "more", address = 4096 : i32}} : memref<{WORDS}xi32> = dense<[{words}]>
    %bytes = aie.buffer(%tile) {{sym_name = "bytes", address = 8192 : i32}} : memref<{BYTES}xi8> = dense<[{small}]>
    %limits = aie.buffer(%tile) {{sym_name = "limits", address = 12288 : i32}} : memref<{LIMITS}xi32>
        = dense<[{limits}]>
    %turn = aie.lock(%tile, 5) {{init = 3 : i32, sym_name = "turn"}}
    func.func private @bump(memref<{WORDS}xi32>, i32)
    %core = aie.core(%tile) {{
{body}
      aie.end
    }} {{stack_size = 1024 : i32}}
  }} }}
"""
