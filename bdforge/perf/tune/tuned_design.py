"""A tuned design as TOML that `load_spec` reads, with the reasons as comments. Every figure is modelled or emulated."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from bdforge.perf.tune.choice_reasons import LIFTS, alternatives, verdicts
from bdforge.perf.tune.free_numbers import DesignChoice, TunedNumbers
from bdforge.perf.tune.space import B_LAYOUTS, Candidate
from bdforge.perf.tune.tuner import Finalist, Tuned

_WIDTH = 116
_BASIS = {
    "compiled": "compiled kernels: a loop nest's schedule at the share of it that published compiled kernels reach",
    "ideal": "the ideal kernel schedule",
    "assembled": "what cores with assembled kernels were counted to take",
    "fitted": "kernels by their form fitted to published rates",
}


def design_toml(tuned: Tuned) -> str:
    told = [*_found(tuned), "", *_speeds(tuned), "", *_choices(tuned), "", *_finalists(tuned)]
    named = [{**({"name": p.name} if p.name else {}), **p.sizes} for p, _ in tuned.wanted.problems]
    times = [f" # {count} times" if count > 1 else "" for _, count in tuned.wanted.problems]
    content = tuned.wanted.space.content(tuned.best.ranked.candidate)
    return _toml(told, content | {"problems": named}, times)


def numbers_toml(tuned: TunedNumbers, name: str) -> str:
    best, content = tuned.best[0], tuned.best[0].content
    told = [
        f"{name}, tuned by bdforge for {best.plan.device.name}: {best}. Nothing here was measured.",
        f"Searched: {tuned.legal:,} designs that can be built of {tuned.examined:,} choices, by what their runs cost.",
        "Microseconds for all problems:",
        *(f"- {choice_line(choice)}" for choice in tuned.best[:8]),
        *([f"- as it was: {choice_line(tuned.given)}"] if tuned.given else []),
    ]
    return _toml(told, content)


def _toml(told: Iterable[str], content: Mapping[str, Any], remarks: Sequence[str] = ()) -> str:
    """Comments, then a spec's content; `remarks` stand behind the last entries of its problems."""
    wrapped = [line for part in told for line in (wrap(part, _WIDTH, subsequent_indent="  ") or [""])]
    lines = [f"# {line}".rstrip() for line in wrapped]
    lines += _entries({key: value for key, value in content.items() if not isinstance(value, dict | list)})
    for key, value in content.items():
        for number, table in enumerate(value if isinstance(value, list) else [value] * isinstance(value, dict)):
            lines += ["", f"[[{key}]]" if isinstance(value, list) else f"[{key}]", *_entries(table)]
            lines[-1] += remarks[number] if key == "problems" and remarks else ""
    return "\n".join(lines) + "\n"


def choice_line(choice: DesignChoice) -> str:
    told = f"{str(choice) or 'its own numbers'}: {choice.modelled_us:.0f} modelled"
    if choice.passed_over:
        return f"{told}, passed over: {choice.passed_over}"
    return told if choice.emulated_us is None else f"{told}, {choice.emulated_us:.0f} emulated"


def _entries(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items()]


def _found(tuned: Tuned) -> Iterator[str]:
    space = tuned.wanted.space
    types = f"{space.a} x {space.b} -> {space.c}, accumulated as {space.accumulator}"
    yield f"Tuned by bdforge for {space.device.name}: {types}. Nothing here was measured."
    yield (
        f"Searched: all {tuned.legal:,} designs that can be built, of {tuned.examined:,} whose buffers fit a core, by "
        f"the analytical model with {_BASIS[tuned.wanted.basis]}."
    )


def _speeds(tuned: Tuned) -> Iterator[str]:
    found = verdicts(tuned.wanted, tuned.best.ranked.candidate)
    yield "Modelled, dispatch included:"
    yield from (f"- {verdict.sentence()}" for verdict in found)
    bounds = dict.fromkeys(next(iter(verdict.estimates.values())).bound for verdict in found)
    yield from (f"What would lift {bound}: {LIFTS[bound]}." for bound in bounds)


def _choices(tuned: Tuned) -> Iterator[str]:
    yield "Each choice against the best other value with all else equal (modelled):"
    yield from (f"- {line}" for line in alternatives(tuned.wanted, tuned.best.ranked.candidate))


def _finalists(tuned: Tuned) -> Iterator[str]:
    yield "Finalists (microseconds for all problems, each as often as it is run):"
    yield from (f"- {finalist_line(finalist)}" for finalist in tuned.finalists[:8])
    if tuned.best.emulated is not None:
        yield (
            "Emulated with kernels that only take time, on problems of whole tiles with two counts of column steps: "
            "the ratio of both differences scales all modelled time that is not dispatch, first slabs or last tiles."
        )


def finalist_line(finalist: Finalist) -> str:
    told = f"{design_name(finalist.ranked.candidate)}: {finalist.ranked.time_us:.0f} modelled"
    if finalist.passed_over:
        return f"{told}, passed over: {finalist.passed_over}"
    if finalist.emulated is None:
        return told
    found = finalist.emulated
    size = "x".join(map(str, found.problem))
    return (
        f"{told}, {finalist.time_us:.0f} as emulation corrects it "
        f"(additional tiles up to {size}: {found.emulated_us:.0f} emulated, {found.modelled_us:.0f} modelled)"
    )


def design_name(c: Candidate) -> str:
    """A candidate in short."""
    return (
        f"{c.m}x{c.k}x{c.n}, k_mt {c.k_mt}, {c.c_buffers} C buffer{'s' * (c.c_buffers > 1)}, rho {c.rho}, "
        f"{c.a_shims} shim{'s' * (c.a_shims > 1)} a row's A, B {B_LAYOUTS[c.b_layout]}"
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return f"{{ {', '.join(_entries(value))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if not isinstance(value, str):
        return str(value)
    plain = "".join(letter if letter.isprintable() else " " for letter in value)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
