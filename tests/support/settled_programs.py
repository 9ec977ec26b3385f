"""Random programs of forms whose meaning evidence settled, in registers with which they do something known."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bdforge.core import isa
from bdforge.core.isa import Form, Instruction, Isa, IsaError
from bdforge.core.isa.meaning import Approximation, MeaningKind, evidence_of, meaning_of
from support.machine_code import bits
from support.random_programs import forms, harmless, instruction, registers

_SPARSE = {"aie2p": (0x308, 0x309, 0xB08), "aie2": (0x3A8, 0x352, 0x3BA)}
_CONFS = {"aie2p": (0x3C, 0x30C, 4), "aie2": (0x1C, 0x1C, 4)}
_KEPT = ("p0", "p1", "p2", "r24", "r25", "r26", "r30")
"""What FIFOs count with, which nothing else may write; and a shift."""
_ADDRESSES = ("wl4", "wh4", "wl5", "wh5")


@cache
def settled(generation: str) -> tuple[Form, ...]:
    """Forms whose meaning rests on evidence, but of the cascade and of what only one more operand makes known."""
    found = (form for form in forms(generation) if evidence_of(generation, form))
    return tuple(f for f in found if meaning_of(generation, f).kind is not MeaningKind.BRANCH and "_scd" not in f.name)


def prepared(isa_: Isa, rng: random.Random) -> dict[str, int]:
    """Registers: FIFOs with a line, floats in vectors, addresses for gathers, confs for each kind of product."""
    values = registers(isa_, rng)
    drawn = np.random.default_rng(rng.randrange(1 << 30))
    for name in values:
        stem = name.rstrip("0123456789")
        if stem[:2] in ("bm", "am"):
            values[name] = bits(drawn.normal(size=16 if stem[0] == "b" else 8).astype(np.float32))
        if stem in ("wl", "wh"):
            values[name] = bits((drawn.normal(size=16).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
        if name in _ADDRESSES:
            values[name] = bits(drawn.integers(0x70100, 0x7FF00, 8).astype(np.uint32))
        if stem in ("s", "el", "eh"):
            values[name] = rng.randrange(5) if stem == "s" else bits(drawn.integers(120, 135, 4).astype(np.uint8))
    kept = dict.fromkeys(("r24", "r25"), 64) | {"r26": rng.randrange(65), "r30": rng.randrange(65), "crRnd": 0}
    kept |= {f"p{i}": 0x70000 + 64 * rng.randrange(32, 900) + 8 * rng.randrange(8) * (i == 2) for i in range(3)}
    confs = rng.choice(_SPARSE[isa_.generation]), *_CONFS[isa_.generation]
    return values | {name: kept[name] for name in kept if name in values} | {f"r{i}": c for i, c in enumerate(confs)}


def _conf(form: Form, generation: str) -> tuple[str, str]:
    """The operand that says how a product is made, and the register that says it as it is known."""
    meaning = meaning_of(generation, form)
    number = {"multiply": 0, "fmatrix": 1, "fmultiply": 2, "faccumulate": 3}.get(meaning.operation)
    if number is None:
        return "", ""
    return str(meaning.inputs[-1]), f"r{number - (number == 2 and bool(meaning.options[2]))}"


def _drawn(generation: str, form: Form, rng: random.Random) -> Instruction | None:
    """A form with operands that leave alone what others count with."""
    drawn, access = instruction(form, rng), meaning_of(generation, form).access
    conf, register = _conf(form, generation)
    chosen = {conf: register, access.addresses if access else "": rng.choice(_ADDRESSES)}
    drawn = Instruction(
        form, tuple(chosen.get(name, value) if name else value for name, value in drawn.operands.items())
    )
    results = {str(drawn.operands.get(name, "")) for name in form.timing.defs}
    walks = "mod" in drawn.operands and bool(access and access.counter)
    if walks or results & {*_KEPT, *_ADDRESSES, "x4", "x5", "ex4", "ex5"}:
        return None
    return drawn if (access and access.counter) or harmless(generation, drawn) else None


def program(generation: str, count: int, rng: random.Random) -> bytes:
    """Bundles of one to three settled instructions."""
    isa_, pool, code = isa.load(generation), settled(generation), b""
    while count:
        drawn = [_drawn(generation, form, rng) for form in rng.sample(pool, rng.randrange(1, 4))]
        chosen = {one.form.slot: one for one in drawn if one is not None}
        try:
            code += isa_.encode(chosen.values())
        except IsaError:
            continue
        count -= 1
    return code


def allowing(executor: Any) -> Callable[..., Any]:
    """The executor, with approximations and assumptions."""

    def made(*given: Any) -> Any:
        core = executor(*given)
        core.approximate(Approximation.NEAREST)
        core.assume()
        return core

    return made
