"""Locks, cascades, streams and the end of a core program."""

from xdsl.dialects.builtin import Float32Type, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from bdforge.array.emulator.cores.interpreted.emit import emits, unsupported
from bdforge.array.emulator.cores.interpreted.number_formats import bytes_of, of_bytes, size_bits
from bdforge.array.emulator.cores.interpreted.translation import Translation
from bdforge.array.emulator.errors import CoreError
from bdforge.array.mlir.enums import LockAction
from bdforge.array.mlir.memory_ops import DECLARATIONS, UseLockOp
from bdforge.array.mlir.stream_ops import GetCascadeOp, GetStreamOp, PutCascadeOp, PutStreamOp
from bdforge.devices.limits import CASCADE_BITS, CORE_STREAM_PORTS

_STREAM_BITS = (32, 128)


@emits(*(kind.name for kind in DECLARATIONS))
def declaration(t: Translation, op: Operation) -> None:
    """Nothing: the array has it before the core runs."""


@emits("aie.use_lock")
def use_lock(t: Translation, op: UseLockOp) -> None:
    name, where = t.lock(op.lock_value), t.where(op)
    if not op.is_acquire:
        t.pass_locks([op.lock_value])
        t.line(f"{name}.add({op.value if op.amount is None else t.value(op.amount)}, {where}, core)")
        return
    if not op.enabled:
        return
    if op.amount is not None:
        amount = t.value(op.amount)
        equal = op.action is LockAction.ACQUIRE or f"{amount} == 0"
        t.line(f"if not {name}.take(core, {amount}, {equal}, {where}): yield")
        return
    t.outside.check_acquire(op)
    equal = op.action is LockAction.ACQUIRE or op.value == 0
    t.line(f"if not {name}.take(core, {op.value}, {equal}, {where}): yield")


def _check_cascade(op: Operation, type_: Attribute) -> None:
    try:
        bits = size_bits(type_)
    except CoreError as error:
        raise unsupported(op, str(error)) from None
    if bits != CASCADE_BITS:
        raise unsupported(op, f"a cascade moves {CASCADE_BITS} bits at a time; {type_} has {bits}")


@emits("aie.put_cascade")
def put_cascade(t: Translation, op: PutCascadeOp) -> None:
    _check_cascade(op, op.cascade_value.type)
    if t.core.cascade_out is None:
        t.require("False", f"puts on the cascade, but no aie.cascade_flow leads away from {t.core.name}", op)
        return
    data = f"{t.helper(bytes_of)}({t.value(op.cascade_value)}, {t.object('T', op.cascade_value.type)})"
    t.line(f"if not {t.object('P', t.core.cascade_out)}.put({data}, {t.where(op)}): yield")


@emits("aie.get_cascade")
def get_cascade(t: Translation, op: GetCascadeOp) -> None:
    type_ = op.cascade_value.type
    _check_cascade(op, type_)
    if t.core.cascade_in is None:
        t.require("False", f"gets from the cascade, but no aie.cascade_flow leads to {t.core.name}", op)
        t.assign(op, "None")
        return
    name = t.object("P", t.core.cascade_in)
    t.line(f"if not {name}.ready({t.where(op)}): yield")
    t.assign(op, f"{t.helper(of_bytes)}({name}.take(), {t.object('T', type_)})")


def _check_stream(t: Translation, op: Operation, channel: SSAValue, type_: Attribute) -> None:
    known = isinstance(type_, Float32Type) or (isinstance(type_, IntegerType) and type_.width.data in _STREAM_BITS)
    if not known:
        raise unsupported(op, f"a core's stream carries i32, f32 or i128, not {type_}")
    if t.constant(channel) not in range(CORE_STREAM_PORTS):
        text = t.value(channel)
        message = f"a core has {CORE_STREAM_PORTS} stream port each way; there is no {{{text}}}"
        t.require(f"0 <= {text} < {CORE_STREAM_PORTS}", message, op)


@emits("aie.put_stream")
def put_stream(t: Translation, op: PutStreamOp) -> None:
    type_ = op.stream_value.type
    _check_stream(t, op, op.channel, type_)
    data = f"{t.helper(bytes_of)}({t.value(op.stream_value)}, {t.object('T', type_)})"
    t.line(f"yield from {t.object('P', t.core.output)}.push(np.frombuffer({data}, np.uint32), {t.where(op)})")


@emits("aie.get_stream")
def get_stream(t: Translation, op: GetStreamOp) -> None:
    type_ = op.stream_value.type
    _check_stream(t, op, op.channel, type_)
    data = f"(yield from core.get_words({size_bits(type_) // 32}, {t.where(op)}))"
    t.assign(op, f"{t.helper(of_bytes)}({data}, {t.object('T', type_)})")


@emits("aie.end")
def end(t: Translation, op: Operation) -> None:
    t.line("return")


@emits("aie.event")
def event(t: Translation, op: Operation) -> None:
    """A trace marker: no effect."""
