"""Which forms of machine code the emulated array runs, which are open, and which test shows what they do."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bdforge.core import isa
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.hazard_layout import PUBLIC_PROGRAMS
from bdforge.core.isa.isa_tables import rows
from bdforge.core.isa.meaning import MeaningKind, bare_name, evidence_of, meaning_of, what_is_open
from tools.docs.markdown import prose, section, table

DATA = Path(__file__).resolve().parents[2] / "tests" / "isa" / "data"
_OPEN = "open"
CASES, NAMED, CONTROL, FLOATS, HAND, AGREE = "recorded", "named", "control", "floats", "hand", "agree"
_PLAIN = {"move", "none"}
_SETTLED = {"divide_step", "exp2", "tanh", "approximate"}
_SPARSE = re.compile(r".*(_sparse_|core_Y_Q)")
_BY_HAND = {"gather", "fill", "pop", "push", "flush"}
_FLOATS = {"fmultiply", "fmatrix", "faccumulate", "blocks_bfp16", "floor_bf16", "to_float", "to_integer"}
SLOTS = {
    "lda": "Slot lda", "ldb": "Slot ldb", "st": "Slot st", "alu": "Slot alu", "mv": "Slot mv",
    "lng": "Slot lng (alu and mv)", "vec": "Slot vec",
}  # fmt: skip
_NO_NAMED_TEST = re.compile(r".*(CONV|bf16|BF16)|VSHUFFLE|V(ADD|SUB|NEG)(_vmac.*)?$")


@cache
def _recorded() -> frozenset[tuple[str, str]]:
    """Generations and forms in recorded cases."""
    cases = (json.loads(line) for line in (DATA / "semantics.jsonl").read_text().splitlines())
    programs = ((case.get("arch", "aie2p"), bytes.fromhex(case["program"])) for case in cases)
    bundles = ((arch, bundle) for arch, code in programs for _, bundle in isa.load(arch).decode_program(code))
    return frozenset((arch, instruction.form.name) for arch, bundle in bundles for instruction in bundle)


def _tests(generation: str, form: isa.Form) -> Iterator[str]:
    meaning = meaning_of(generation, form)
    if (generation, form.name) in _recorded():
        yield CASES
    if meaning.operation in _FLOATS:
        yield FLOATS
    elif (
        meaning.operation in _SETTLED
        or _SPARSE.match(form.name)
        or (meaning.access and meaning.access.kind in _BY_HAND)
    ):
        yield HAND
    elif meaning.kind is not MeaningKind.COMPUTE or meaning.doubtful:
        yield CONTROL
    elif not _NO_NAMED_TEST.match(form.name):
        yield NAMED
    yield AGREE


def status(generation: str, form: isa.Form) -> tuple[str, str, str, str]:
    """(operation, what is known of it, how surely, tests) of a form."""
    try:
        meaning = meaning_of(generation, form)
    except OpenError:
        return "", f"{_OPEN}: {what_is_open(generation, form)}", "", ""
    known = f"exact; {meaning.note}" if meaning.note else "exact"
    done = [meaning.request] * bool(meaning.request) + [meaning.operation] * (meaning.operation not in _PLAIN)
    evidence = evidence_of(generation, form)
    sure = f"{evidence.confidence}: {evidence.source}" if evidence else ""
    done += ["gather"] * bool(meaning.access and meaning.access.addresses)
    return ", ".join(done) or meaning.operation, known, sure, ", ".join(_tests(generation, form))


def _lines(generation: str, slot: str) -> Iterator[tuple[str, ...]]:
    """Forms that differ in addressing, width or sign only, in one line if the same is known of them."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for form in isa.load(generation).forms.values():
        if form.slot == slot and not form.name.startswith("NOP"):
            stem = re.sub(r"(?<=[_SDsu])\d+(?=_|$)|(?<=Sign)\d", "\\*", bare_name(form))
            groups.setdefault((stem, *status(generation, form)), []).append(form.name)
    for (stem, *cells), names in sorted(groups.items()):
        yield f"`{stem}`".replace("\\*", "*"), str(len(names)), *cells


def page() -> str:
    """The whole page."""
    parts = []
    for generation in isa.GENERATIONS:
        forms = [f for f in isa.load(generation).forms.values() if not f.name.startswith("NOP")]
        found = [status(generation, form)[1] for form in forms]
        reasons = Counter(known.partition(": ")[2] for known in found if known.startswith(_OPEN))
        parts.append(f"# {generation.upper()}: {len(forms) - reasons.total()} of {len(forms)} forms\n")
        counted = [(str(count), reason) for reason, count in reasons.most_common()]
        parts.append(section("What is open, and why", table(("forms", "reason"), counted)))
        for slot, title in SLOTS.items():
            head = ("form", "forms", "operation", "known", "evidence", "tests")
            parts.append(section(title, table(head, _lines(generation, slot))))
    return "\n".join([_HEAD, *parts, _products(), _hazards()])


def _products() -> str:
    """What the multiplier makes of integers, by the bits of its conf."""
    found = [
        (
            f"{row['generation'].upper()}{' sparse' * int(row['sparse'])}",
            ", ".join(row[name] for name in ("amode", "bmode", "variant")),
            f"{row['rows']} x {row['depth']} x {row['columns']}" if row["depth"] != "0" else f"{row['rows']} lanes",
            f"int{row['bits1']} x int{row['bits2']}", f"int{row['lane']}", row["confidence"],
        )
        for row in rows("products")
    ]  # fmt: skip
    head = ("multiplier", "amode, bmode, variant", "shape", "factors", "sums", "evidence")
    return section("Products of integers", table(head, found))


def _hazards() -> str:
    """What public programs do that the checker judges."""
    found = [(row["rule"], row["programs"], row["verdict"], row["what"]) for row in rows("public_hazards")]
    head = ("rule", "public programs", "checker", "what they do")
    return section("What compiled programs do that the checker judges", prose(_HAZARDS) + "\n" + table(head, found))


_HAZARDS = (
    f"Of {PUBLIC_PROGRAMS} distinct public core programs, made by Chess and Peano (`public_hazards.csv`); an error is "
    "what none does, or one of which nobody knows whether it ran."
)


_HEAD = "# Machine code: which forms run, and what shows it\n\n" + "\n".join(
    (
        prose("For whoever wonders whether an instruction runs here:", "every form, with what shows it."),
        prose(
            "Made by `python -m tools.docs isa_forms`; a test keeps it current. *Exact*: every bit of the result is as",
            "sources have it, on integers; on floats as far as the remark says. *Open*: no source tells what the form",
            "does, so cores that reach it stop with its name. Operands for which an exact form's result is not known",
            "(an index beyond the last lane, an unassigned mode, a conf that nobody explained) stop the core too.",
        ),
        prose(
            "*Evidence* is empty where all sources say the same; else H: two independent sources, or a public",
            "program with a known answer; M: one source, or what real programs show; L: a guess that fits. What",
            "contradicts it one day is a row of `bdforge/core/isa/data`: of `evidence.csv` and of the meanings.",
        ),
        prose(
            "A line stands for all forms that differ in addressing, width or sign only. Tests, all in",
            "`tests/emulator/cores/isa`: *recorded*: cases from llvm-aie's tests, its simulator's rules, silicon",
            "routings and a reference model (`test_recorded_cases.py`); *named*: against a second description that",
            "knows the form's name only (`test_integer_forms.py`); *control*: programs worked by hand",
            "(`test_control_forms.py`, `test_request_forms.py`); *floats*: against numpy (`test_float_forms.py`);",
            "*hand*: worked by hand (`test_settled_forms.py`, `test_fifo_forms.py`, `test_approximations.py`);",
            "*agree*: both executors do the same with random operands (`test_executors_agree.py`,",
            "`test_settled_programs.py`).",
        ),
    )
)
