"""From plans of instructions to the fast executor's steps.

An instruction has a buffer for what it has read and made: its address at 0, stepped pointers and counters behind it,
then operands and results. Operands are read where they lie when the results are made in the cycle of their read, else
they are copied in that cycle. Results land from the buffer in theirs.
"""

from bdforge.core.exact.engine_build import OPERATE, READ, REQUEST, STORE
from bdforge.core.exact.instruction_plan import InstructionPlan
from bdforge.core.exact.register_layout import RegisterLayout
from bdforge.core.exact.requests import Asking, answer_bytes, ask
from bdforge.core.exact.steps import Constant, Place, Steps
from bdforge.core.isa.meaning import DATA, AddressWalk, MeaningKind

_WALK_RESULTS = {"ptr_out": 4, "sp": 4, "dc": 8, "dcl": 8, "dch": 12}
_WALKS = {
    AddressWalk.INDEX: "walk_index",
    AddressWalk.STACK: "walk_index",
    AddressWalk.POST: "walk_post",
    AddressWalk.STACK_STEP: "walk_post",
    AddressWalk.WALK_2D: "walk_2d",
    AddressWalk.WALK_3D: "walk_3d",
}
_CONDITIONS = {"always": 0, "zero": 1, "nonzero": 2, "decrement": 2}
_ALIASES = ("move", "store_low")
_PRODUCT_BYTES = 64 + 256  # conf, and the lanes behind it


def steps_of(layout: RegisterLayout, plan: InstructionPlan, known: list[Asking], careful: bool) -> Steps:
    """The steps of an instruction; `known` lists the kinds of requests that the program has."""
    steps = Steps(layout, plan, careful)
    _walk(steps)
    if plan.meaning.kind is MeaningKind.BRANCH:
        _branch(steps)
        return steps
    if plan.meaning.request:
        steps.data_bytes = answer_bytes(plan.meaning)
        steps.data = steps.buffer(steps.data_bytes)
        ask(steps, known)
    _compute(steps)
    if plan.meaning.counts:
        _count(steps, *plan.meaning.counts)
    return steps


def _count(steps: Steps, counter: str, result: str) -> None:
    place = steps.result(result)
    steps.add("count_part", steps.plan.count, READ, steps.source(counter, steps.plan.count), place, steps.flag(result))
    steps.land(steps.plan.writes[result], place)


def _walk(steps: Steps) -> None:
    plan, meaning = steps.plan, steps.plan.meaning
    if meaning.walk is AddressWalk.NONE:
        return
    base = steps.source("sp" if meaning.walk in (AddressWalk.STACK, AddressWalk.STACK_STEP) else "ptr", plan.walk)
    places: list[Place] = [base]
    if meaning.walk in (AddressWalk.WALK_2D, AddressWalk.WALK_3D):
        leaves = plan.read(meaning.offset).leaves
        places += [steps.layout.places[leaf.name] for leaf in leaves if leaf.name.startswith("m")]
    else:
        places.append(steps.source(meaning.offset or 0, plan.walk))
    steps.add(_WALKS[meaning.walk], plan.walk, OPERATE, *places)
    for name, offset in _WALK_RESULTS.items():
        if name in plan.writes:
            steps.land(plan.writes[name], ~offset)


def _compute(steps: Steps) -> None:
    plan, meaning = steps.plan, steps.plan.meaning
    access = meaning.access
    if access:
        steps.data = steps.buffer(access.size_bytes)
        if not access.store:
            name = f"load{access.size_bytes}" if access.size_bytes in (32, 64) else "load"
            steps.add(name, plan.load, READ, 0, steps.data, options=(access.size_bytes,))
    if meaning.operation == "none":
        return
    results = [steps.data if name == DATA else steps.result(name) for name in meaning.outputs]
    if meaning.operation in _ALIASES:
        results = [_moved(steps, results[0])]
    elif meaning.operation == "multiply":
        _multiply(steps, results[0])
    else:
        inputs = [steps.source(name, plan.operate) for name in meaning.inputs]
        flags = [steps.flag(name) for name in meaning.doubtful]
        steps.add(meaning.operation, plan.operate, OPERATE, *inputs, *results, *flags, options=_options(steps))
    for name, place in zip(meaning.outputs, results, strict=True):
        if isinstance(meaning.part, str):
            steps.land_part(plan.writes[name], place, steps.source(meaning.part, 0))
        elif name != DATA:
            steps.land(plan.writes[name], place)
    if access and access.store:
        steps.add("store", plan.store, STORE, steps.data, options=(access.size_bytes,))


def _multiply(steps: Steps, result: int) -> None:
    """The product as soon as its operands are read, the sum when the accumulators are: nothing is copied for later."""
    plan, meaning = steps.plan, steps.plan.meaning
    *accumulators, s1, s2, conf = meaning.inputs
    stages = {operand.name: operand.stage for operand in plan.reads}
    early = max(stages[str(name)] for name in (s1, s2, conf))
    product = steps.buffer(_PRODUCT_BYTES)
    sources = [steps.source(name, early) for name in (s1, s2, conf)]
    steps.add("multiply", early, READ, *sources, product, options=meaning.options[:1])
    places = [steps.source(name, plan.operate) for name in accumulators]
    steps.add("accumulated", plan.operate, OPERATE, *places, product, result, options=meaning.options)


def _options(steps: Steps) -> tuple[int, ...]:
    meaning = steps.plan.meaning
    if meaning.operation == "accumulate":  # the library wants the number of accumulators last
        bits, *minus = meaning.options
        return (bits, *minus, *[0] * (2 - len(minus)), len(minus))
    if meaning.operation == "faccumulate":
        return (*meaning.options[:3], len(meaning.inputs) - 1 | meaning.options[3] << 2)
    return meaning.options


def _moved(steps: Steps, result: int) -> int:
    """A copy, or nothing where what was loaded is the result."""
    plan, meaning = steps.plan, steps.plan.meaning
    (name,) = meaning.inputs
    if name == DATA:
        return steps.data
    source = steps.source(name, plan.operate)
    constant = isinstance(source, Constant)
    source_bytes = 8 if constant else steps.layout.size_bytes(plan.read(str(name)).leaves)
    if meaning.outputs[0] == DATA:
        assert meaning.access
        result_bytes = meaning.access.size_bytes
    else:
        result_bytes = steps.layout.size_bytes(plan.writes[meaning.outputs[0]].leaves)
    steps.copy(source, result, source_bytes, result_bytes, plan.operate)
    return result


def _branch(steps: Steps) -> None:
    plan, meaning = steps.plan, steps.plan.meaning
    places = [steps.source(name, plan.operate) for name in meaning.inputs]
    places += [0] * (2 - len(places))
    buffers = {name: steps.buffer(4) for name in meaning.outputs}
    lr = buffers.get("lr", ~0)
    made = [buffers[name] for name in meaning.outputs if name != "lr"] or [~0, ~0]
    kind, calls = _CONDITIONS[meaning.operation], int("lr" in buffers)
    options = (kind, calls, int(meaning.operation == "decrement"), int(meaning.inputs[0] == "lr"))
    steps.add("branch", plan.operate, REQUEST, *places, lr, *made, options=options)
    for name, place in buffers.items():
        steps.land(plan.writes[name], place)
