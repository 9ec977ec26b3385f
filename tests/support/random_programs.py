"""Random machine code for two executors: single instructions of every form, stretches of bundles, loops and calls."""

import random
from typing import Any

import numpy as np

from bdforge.core import isa
from bdforge.core.exact.core_memory import WINDOW_BYTES, DataMemory
from bdforge.core.exact.requests import GetRegister, GetTimer
from bdforge.core.isa import Form, Instruction, Isa, IsaError, leaves
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.meaning import AddressWalk, MeaningKind, meaning_of
from bdforge.core.python_kernel import GetCascade, GetStream, Request
from support.instructions import draw
from support.machine_code import World, drive

CONFS = (
    0x308,
    0x208,
    0x108,
    0x008,
    0x328,
    0x310,
    0x318,
    0x312,
    0x31A,
    0x302,
    0x35A,
    0x309,
    0x708,
    0xB08,
    0x1308,
    0x2308,
    0x3A8,
    0x352,
    0x3BA,
)
FLOAT_CONFS = (0x30C, 0x03C, 0x004)
_ROUNDINGS, _SATURATIONS = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13), (0, 1, 3)
_EDGES = (b"\x00", b"\xff", b"\x80", b"\x7f", b"\x01")
_POINTED = ("p", "m", "dn", "dj", "dc")
_LOOPS = """
        movxm   ls, #first
        movxm   le, #last
        movx    r4, #3
        j       #start
        {nops}
        .p2align 4
sub:    {body2}
        ret
        {slots}
        .p2align 4
start:  movx    lc, #4
        {body1}
        {nops}
        {nops}
        .p2align 4
first:  {body1}
        .p2align 4
last:   nopa ; nopb ; nops ; nopx ; nopm ; nopv
        jl      #sub
        {slots}
        jnz     r4, #start
        add     r4, r4, #-1
        {slots4}
        {nops}
        done
"""
_BUDGET, _SKEWS = 3000, 4093
_NOISE = np.random.default_rng(1).integers(0, 256, 4 * WINDOW_BYTES + _SKEWS, np.uint8)  # drawn once: runs are many


def forms(generation: str, kind: MeaningKind | None = None) -> list[Form]:
    """Forms that have a meaning; those of one kind."""
    found = []
    for form in isa.load(generation).forms.values():
        try:
            meaning = meaning_of(generation, form)
        except OpenError:
            continue
        if kind is None or meaning.kind is kind:
            found.append(form)
    return found


def registers(isa_: Isa, rng: random.Random) -> dict[str, int]:
    """Random values of all leaves: pointers into memory, steps by vectors, modes and confs that mean something."""
    held = {leaf.name: leaf.bits for name in sorted(isa_.registers) for leaf in leaves(isa_.generation, name)}
    found = {name: _value(name, bits, rng) for name, bits in held.items()}
    for i, conf in enumerate((*rng.sample(CONFS, 3), rng.choice(CONFS + FLOAT_CONFS))):
        found[f"r{i}"] = conf
    return found | {
        "lc": 0,
        "le": 0xFFFF0,
        "sp": 0x70000 + 64 * rng.randrange(64, 512),
        "r29": rng.randrange(16),
        "r31": rng.randrange(5),
    }


def _value(leaf: str, bits: int, rng: random.Random) -> int:
    stem = leaf.rstrip("0123456789")
    if stem == "p":
        return 0x10000 * rng.randrange(4, 8) + 64 * rng.randrange(32, 992)
    if stem in ("m", "dj"):
        return 64 * rng.randrange(-4, 5) & 0xFFFFF
    if stem in ("dn", "dc"):
        return rng.randrange(3)
    if stem == "s":
        return (rng.randrange(44) - 4) % 64
    if leaf in ("crRnd", "crSat"):
        return rng.choice(_ROUNDINGS if leaf == "crRnd" else _SATURATIONS)
    if leaf.startswith("sr") and "Sign" not in leaf:
        return 0
    if leaf in ("crSCDEn", "crMCDEn"):
        return 1
    if rng.random() < 0.3:
        return int.from_bytes(b"".join(rng.choices(_EDGES, k=-(-bits // 8)))) & ((1 << bits) - 1)
    return rng.getrandbits(bits)


def instruction(form: Form, rng: random.Random) -> Instruction:
    """A form with random operands; those that configure the multiplier are registers with confs."""
    drawn = draw(form, rng)
    values = [
        f"r{rng.randrange(4)}" if form.slot == "vec" and field.kind.name == "eR" else value
        for field, value in zip(form.fields, drawn.values, strict=True)
    ]
    return Instruction(form, tuple(values))


def harmless(generation: str, drawn: Instruction) -> bool:
    """Whether it leaves pointers and loops alone, besides by walks that wrap, so that programs go on for long."""
    meaning = meaning_of(generation, drawn.form)
    if meaning.access and meaning.access.counter:
        return False
    if meaning.walk in (AddressWalk.STACK_STEP, AddressWalk.WALK_2D, AddressWalk.WALK_3D):
        return True
    timing = drawn.form.timing
    for name in timing.defs:
        register = str(drawn.operands.get(name, ""))
        if name != "ptr_out" and register.rstrip("0123456789") in (*_POINTED, "lc", "ls", "le", "sp", "s"):
            return False
        if register.startswith(("cr", "sr")) or register in ("r0", "r1", "r2", "r3", "l0", "l1"):
            return False
    return True


def bundles(generation: str, count: int, rng: random.Random, pool: list[Form]) -> bytes:
    """Random bundles of instructions that compute, load and store."""
    isa_ = isa.load(generation)
    code = b""
    while count:
        chosen: dict[str, Instruction] = {}
        for form in rng.sample(pool, rng.randrange(1, 5)):
            drawn = instruction(form, rng)
            if harmless(generation, drawn):
                chosen[form.slot] = drawn
        try:
            code += isa_.encode(chosen.values())
        except IsaError:
            continue
        count -= 1
    return code


def raw(generation: str, count: int, rng: random.Random) -> str:
    """Random bundles as bytes of a source; scalar loads and stores keep memory accesses apart."""
    pool = [
        form for form in forms(generation, MeaningKind.COMPUTE) if not form.timing.memory_stages and form.slot != "lng"
    ]
    code = bundles(generation, count, rng, pool)
    return ".byte " + ", ".join(str(byte) for byte in code)


def looping(generation: str, rng: random.Random) -> bytes:
    """A program of random bundles in loops, calls, branches and their delay slots."""
    nops = "\n".join(["nop"] * 5)
    text = _LOOPS.format(
        nops=nops, slots=raw(generation, 5, rng), slots4=raw(generation, 4, rng),
        body1=raw(generation, rng.randrange(1, 9), rng), body2=raw(generation, 3, rng),
    )  # fmt: skip
    if generation == "aie2":
        text = text.replace("movx    lc", "movxm lc").replace("movx    r4", "movxm r4")
    return assembled(text.replace("add     r4", "add r4"), generation)


def assembled(text: str, generation: str) -> bytes:
    """Code of a text."""
    ((_, code),) = assemble(text, generation, "random.s").code
    return code


class Granting(World):
    """Serves every request at once, with numbers that count up, and logs it."""

    def answer(self, request: Request) -> Any:
        self.log.append([type(request).__name__, request])
        if isinstance(request, GetStream):
            return -len(self.log) if request.wait or len(self.log) % 2 else None
        if isinstance(request, GetRegister | GetTimer):
            return 5 * len(self.log)
        if isinstance(request, GetCascade):
            return np.arange(64, dtype=np.uint8) + np.uint8(len(self.log))
        return None


def outcome(executor: Any, isa_: Isa, code: bytes, values: dict[str, int], seed: int) -> dict[str, Any]:
    """All that is left of a run: registers, memory, counters, events, what was sent, and how it ended."""
    memory = filled(seed)
    core = executor(isa_, code, memory)
    for name, value in values.items():
        core.write(name, value)
    world = Granting()
    end = "done"
    try:
        drive(core, world, _BUDGET)
    except IsaError as error:
        end = f"{type(error).__name__}: {error}"
    left = {name: core.read(name) for name in values}
    counted = (
        (core.bundles, core.cycle, core.conflicts, core.pc, core.uses, dict(core.macs)) if end == "done" else (core.pc,)
    )
    held = [None if m is None else m.tobytes() for m in memory.windows]
    return {"end": end, "registers": left, "memory": held, "counted": counted, "sent": world.sent, "log": world.log}


def filled(seed: int, west: bool = False) -> DataMemory:
    """Random memories, with or without one to the west."""
    first = seed % _SKEWS
    windows = [_NOISE[at + first : at + first + WINDOW_BYTES].copy() for at in range(0, 4 * WINDOW_BYTES, WINDOW_BYTES)]
    return DataMemory([windows[0], windows[1] if west else None, windows[2], windows[3]])


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What two outcomes disagree on, in short."""
    found = [
        f"{key}: {one[key]} or {other[key]}" for key in ("end", "counted", "sent", "log") if one[key] != other[key]
    ]
    if one["end"] != "done":  # within the cycle of a fault the order of steps is open
        return found
    mine, theirs = one["registers"], other["registers"]
    found += [f"{name}: {mine[name]:#x} or {theirs[name]:#x}" for name in mine if mine[name] != theirs[name]]
    return found + ([] if one["memory"] == other["memory"] else ["memory differs"])
