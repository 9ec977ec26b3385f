"""Prints core programs of array designs as MLIR."""

from itertools import count

from oracle.array_design import (
    Access,
    Alternate,
    Call,
    Combine,
    Copy,
    Core,
    Design,
    Fetch,
    Statement,
    Sum,
    Times,
    UseLock,
)

FOREVER = 9223372036854775807


def memref(elements: int, element: str) -> str:
    return f"memref<{elements}x{element}>"


def type_of(design: Design, name: str) -> str:
    for memory in (*design.buffers, *design.arguments):
        if memory.name == name:
            return memref(memory.elements, memory.element)
    raise KeyError(name)


def use_text(use: UseLock) -> str:
    return f"aie.use_lock(%{use.lock}, {use.action}, {use.value})"


class CoreText:
    """Writes the body of one core."""

    def __init__(self, design: Design, core: Core):
        self.design = design
        self.core = core
        self.names = count()
        self.constants: dict[tuple[int, str], str] = {}
        self.indices: list[str] = []

    def lines(self) -> list[str]:
        body = self.body(self.core.body)
        constants = [f"{name} = arith.constant {value} : {kind}" for (value, kind), name in self.constants.items()]
        inner = ["  " + line for line in (*constants, *body, "aie.end")]
        tile = self.core.tile.name
        return [f"%core_{tile} = aie.core(%{tile}) {{", *inner, "}"]

    def fresh(self) -> str:
        return f"%v{next(self.names)}"

    def constant(self, value: int, kind: str = "index") -> str:
        return self.constants.setdefault((value, kind), f"%const_{kind}_{str(value).replace('-', 'm')}")

    def body(self, body: tuple[Statement, ...]) -> list[str]:
        return [line for statement in body for line in self.statement(statement)]

    def statement(self, statement: Statement) -> list[str]:
        match statement:
            case UseLock():
                return [use_text(statement)]
            case Combine():
                return self.combine(statement)
            case Sum():
                return self.sum(statement)
            case Copy(source, target):
                return [f"memref.copy %{source}, %{target} : {self.type(source)} to {self.type(target)}"]
            case Call():
                return self.call(statement)
            case Fetch(value, buffer, index):
                return [f"%{value} = memref.load %{buffer}[{self.constant(index)}] : {self.type(buffer)}"]
            case Times(times, inner):
                return self.loop(FOREVER if times is None else times, lambda: self.body(inner))
            case Alternate(bodies):
                return self.alternate(bodies)

    def type(self, buffer: str) -> str:
        return type_of(self.design, buffer)

    def element(self, buffer: str) -> str:
        return self.design.buffer(buffer).element

    def loop(self, times: int, inner) -> list[str]:
        index = self.fresh()
        self.indices.append(index)
        body = inner()
        self.indices.pop()
        head = f"scf.for {index} = {self.constant(0)} to {self.constant(times)} step {self.constant(1)} {{"
        return [head, *("  " + line for line in body), "}"]

    def nest(self, loops: tuple[int, ...], inner) -> list[str]:
        return self.loop(loops[0], lambda: self.nest(loops[1:], inner)) if loops else inner()

    def alternate(self, bodies) -> list[str]:
        turn = self.fresh()
        lines = [f"{turn} = arith.remui {self.indices[-1]}, {self.constant(len(bodies))} : index"]
        for number, body in enumerate(bodies):
            mine = self.fresh()
            lines += [f"{mine} = arith.cmpi eq, {turn}, {self.constant(number)} : index", f"scf.if {mine} {{"]
            lines += [*("  " + line for line in self.body(body)), "}"]
        return lines

    def address(self, access: Access) -> tuple[list[str], str]:
        """Lines that compute an element's index, and its name."""
        lines, total = [], self.constant(access.offset)
        loops = self.indices[len(self.indices) - len(access.strides) :]
        for index, stride in zip(loops, access.strides, strict=True):
            scaled, moved = self.fresh(), self.fresh()
            lines.append(f"{scaled} = arith.muli {index}, {self.constant(stride)} : index")
            lines.append(f"{moved} = arith.addi {total}, {scaled} : index")
            total = moved
        return lines, total

    def load(self, access: Access, kind: str) -> tuple[list[str], str]:
        """Lines that load an element as `kind`, and its name."""
        lines, index = self.address(access)
        name, own = self.fresh(), self.element(access.buffer)
        lines.append(f"{name} = memref.load %{access.buffer}[{index}] : {self.type(access.buffer)}")
        more, name = self.convert(name, own, kind)
        return [*lines, *more], name

    def convert(self, name: str, own: str, kind: str) -> tuple[list[str], str]:
        if own == kind:
            return [], name
        operation = "extsi" if int(own[1:]) < int(kind[1:]) else "trunci"
        result = self.fresh()
        return [f"{result} = arith.{operation} {name} : {own} to {kind}"], result

    def operand(self, operand: "Access | int | str", kind: str) -> tuple[list[str], str]:
        match operand:
            case Access():
                return self.load(operand, kind)
            case str():
                return self.convert(f"%{operand}", "i32", kind)
            case int():
                return [], self.constant(operand, kind)

    def store(self, value: str, target: Access) -> list[str]:
        lines, index = self.address(target)
        return [*lines, f"memref.store {value}, %{target.buffer}[{index}] : {self.type(target.buffer)}"]

    def combine(self, combine: Combine) -> list[str]:
        kind = self.element(combine.target.buffer)

        def inner() -> list[str]:
            lines, value = self.load(combine.source, kind)
            if combine.operation != "copy":
                more, operand = self.operand(combine.operand, kind)
                result = self.fresh()
                lines += [*more, f"{result} = arith.{combine.operation} {value}, {operand} : {kind}"]
                value = result
            return [*lines, *self.store(value, combine.target)]

        return self.nest(combine.loops, inner)

    def sum(self, statement: Sum) -> list[str]:
        kind = self.element(statement.target.buffer)
        result, index, carried, added = (self.fresh() for _ in range(4))
        zero = self.constant(0, kind)
        self.indices.append(index)
        load, value = self.load(statement.source, kind)
        self.indices.pop()
        head = f"{result} = scf.for {index} = {self.constant(0)} to {self.constant(statement.count)}"
        return [
            f"{head} step {self.constant(1)} iter_args({carried} = {zero}) -> ({kind}) {{",
            *("  " + line for line in load),
            f"  {added} = arith.addi {carried}, {value} : {kind}",
            f"  scf.yield {added} : {kind}",
            "}",
            *self.store(result, statement.target),
        ]

    def call(self, call: Call) -> list[str]:
        more, value = self.operand(call.value, "i32")
        kinds = f"({self.type(call.source)}, {self.type(call.target)}, i32) -> ()"
        return [*more, f"func.call @{call.kernel}(%{call.source}, %{call.target}, {value}) : {kinds}"]
