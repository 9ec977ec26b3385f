"""Loops, branches and regions of core programs."""

import numpy as np
import numpy.typing as npt
import pytest

from bdforge.array.emulator import BudgetExceeded, CoreError, emulate
from support.core_bodies import run_core

ZEROS = np.zeros(8, np.int32)
M = "memref<8xi32>"


def result_of(body: str, values: npt.ArrayLike = ZEROS, **options) -> list[int]:
    return run_core(body, {"d": np.array(values, np.int32)}, **options)["d"].tolist()


def put(value: str, place: int) -> str:
    return f"memref.store {value}, %d[%c{place}] : {M}\n"


@pytest.mark.parametrize(("low", "high", "step"), [(0, 7, 3), (2, 2, 1), (5, 3, 1), (-4, 5, 4)])
def test_a_loop_visits_what_range_does(low, high, step):
    body = f"""
      %l = arith.constant {low} : i32
      %h = arith.constant {high} : i32
      %s = arith.constant {step} : i32
      %z = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %t:2 = scf.for %i = %l to %h step %s iter_args(%n = %z, %sum = %z) -> (i32, i32) : i32 {{
        %m = arith.addi %n, %one : i32
        %a = arith.addi %sum, %i : i32
        scf.yield %m, %a : i32, i32
      }}
      {put("%t#0", 0)} {put("%t#1", 1)}"""
    assert result_of(body)[:2] == [len(range(low, high, step)), sum(range(low, high, step))]


@pytest.mark.parametrize(("value", "expected"), [(2, 20), (5, 50), (3, 99)])
def test_a_switch_over_an_index_takes_its_case(value, expected):
    body = f"""
      %r = scf.index_switch %c{value} -> i32
      case 2 {{
        %k = arith.constant 20 : i32
        scf.yield %k : i32
      }}
      case 5 {{
        %k = arith.constant 50 : i32
        scf.yield %k : i32
      }}
      default {{
        %k = arith.constant 99 : i32
        scf.yield %k : i32
      }}
      {put("%r", 0)}"""
    assert result_of(body)[0] == expected


def test_blocks_exchange_their_arguments_at_once():
    """A loop of five blocks computes a greatest common divisor by swapping its two arguments."""
    body = f"""
      %x = memref.load %d[%c0] : {M}
      %y = memref.load %d[%c1] : {M}
      %z = arith.constant 0 : i32
      cf.br ^head(%x, %y : i32, i32)
    ^head(%a: i32, %b: i32):
      %done = arith.cmpi eq, %b, %z : i32
      cf.cond_br %done, ^end(%a : i32), ^test
    ^test:
      %less = arith.cmpi slt, %a, %b : i32
      cf.cond_br %less, ^head(%b, %a : i32, i32), ^subtract
    ^subtract:
      %n = arith.subi %a, %b : i32
      cf.br ^head(%n, %b : i32, i32)
    ^end(%g: i32):
      {put("%g", 2)}"""
    assert result_of(body, [84, 132, 0, 0, 0, 0, 0, 0])[2] == np.gcd(84, 132)


def test_loops_carry_memrefs_in_turn():
    """Double buffering by exchanging two memrefs."""
    body = """
      %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%now = %d, %next = %e) -> (memref<8xi32>, memref<8xi32>) {
        %x = memref.load %now[%c0] : memref<8xi32>
        %y = arith.addi %x, %x : i32
        memref.store %y, %next[%c0] : memref<8xi32>
        scf.yield %next, %now : memref<8xi32>, memref<8xi32>
      }"""
    got = run_core(body, {"d": np.array([3] + [0] * 7, np.int32), "e": ZEROS})
    assert (got["d"][0], got["e"][0]) == (12, 24)


def test_an_endless_while_loop_ends_by_the_budget():
    forever = """
      %yes = arith.constant true
      scf.while : () -> () {
        scf.condition(%yes)
      } do {
        scf.yield
      }"""
    with pytest.raises(BudgetExceeded, match="no end after 700 loop iterations"):
        result_of(forever, budget=700)


@pytest.mark.parametrize("trips", [3, 4096, 4097])
def test_a_loop_ends_with_its_last_turn_in_the_budget_and_not_one_before(trips):
    """Up to 4096 turns of known bounds are counted at once, more of them one by one."""
    loop = f"""
      %n = arith.constant {trips} : index
      scf.for %i = %c0 to %n step %c1 {{
        scf.for %j = %c0 to %c1 step %c1 {{
        }}
      }}"""
    result_of(loop, budget=2 * trips)
    with pytest.raises(BudgetExceeded, match=f"no end after {2 * trips - 1} loop iterations"):
        result_of(loop, budget=2 * trips - 1)


def test_functions_that_call_each_other_twice_end_by_the_budget():
    """Thirty of them are a thousand million calls, without a loop."""
    twice = "func.func private @f{0}() {{ func.call @f{1}() : () -> () func.call @f{1}() : () -> () return }}"
    functions = "".join(twice.format(i, i - 1) for i in range(1, 31))
    core = "%t = aie.tile(0, 2) %c = aie.core(%t) { func.call @f30() : () -> () aie.end }"
    text = f"module {{ aie.device(npu2) {{ func.func private @f0() {{ return }} {functions} {core} }} }}"
    with pytest.raises(BudgetExceeded, match=r"no end after 100000 loop iterations and calls \(.*:1:\d+\)"):
        emulate(text, budget=100_000)


def test_twenty_loops_inside_one_another_run_and_more_are_refused_by_a_sentence():
    def nest(depth: int) -> str:
        loops = "".join(f"scf.for %i{k} = %c0 to %c1 step %c1 {{\n" for k in range(depth))
        return f"%v = arith.constant 5 : i32\n{loops}{put('%v', 0)}{'}' * depth}"

    assert result_of(nest(19))[0] == 5
    with pytest.raises(CoreError, match=r":\d+:\d+: the program of core \(1, 3\) is nested too deeply .* func\.func"):
        result_of(nest(21))


def test_a_hundred_conditions_inside_one_another_are_refused_by_a_sentence():
    def nest(depth: int) -> str:
        start = "%yes = arith.constant true\n%v = arith.constant 5 : i32\n"
        return f"{start}{'scf.if %yes {' * depth}{put('%v', 0)}{'}' * depth}"

    assert result_of(nest(90))[0] == 5
    with pytest.raises(CoreError, match=r":\d+:\d+: the program of core \(1, 3\) is nested too deeply"):
        result_of(nest(99))


def test_a_chain_of_two_hundred_blocks_runs():
    links = "\n".join(
        f"^b{k}(%x{k}: i32):\n%y{k} = arith.addi %x{k}, %one : i32\ncf.br ^b{k + 1}(%y{k} : i32)" for k in range(200)
    )
    body = f"%one = arith.constant 1 : i32\ncf.br ^b0(%one : i32)\n{links}\n^b200(%x: i32):\n{put('%x', 0)}"
    assert result_of(body)[0] == 201


def test_poison_stands_for_a_value_that_nobody_uses():
    body = f"""%p = ub.poison : i32
      %v = arith.constant 3 : i32
      %y = arith.constant true
      %s = arith.select %y, %v, %p : i32
      {put("%s", 0)}"""
    assert result_of(body)[0] == 3


def test_a_switch_without_cases_takes_its_default():
    body = f"""%v = arith.constant 3 : i32
      %r = scf.index_switch %c1 -> i32 default {{ scf.yield %v : i32 }}
      {put("%r", 0)}"""
    assert result_of(body)[0] == 3


def test_a_branch_yields_its_value():
    body = f"""%x = arith.constant 7 : i32
      %y = arith.constant 2 : i32
      %more = arith.cmpi sgt, %x, %y : i32
      %r = scf.if %more -> (i32) {{
        scf.yield %y : i32
      }} else {{
        scf.yield %x : i32
      }}
      %s = arith.select %more, %x, %r : i32
      {put("%r", 0)} {put("%s", 1)}"""
    assert result_of(body)[:2] == [2, 7]


def test_a_while_loop_halves_until_nothing_is_left():
    body = f"""%x = arith.constant 37 : i32
      %two = arith.constant 2 : i32
      %none = arith.constant 0 : i32
      %r:2 = scf.while (%v = %x, %n = %none) : (i32, i32) -> (i32, i32) {{
        %go = arith.cmpi sgt, %v, %none : i32
        scf.condition(%go) %v, %n : i32, i32
      }} do {{
      ^bb0(%v: i32, %n: i32):
        %h = arith.divsi %v, %two : i32
        %m = arith.addi %n, %two : i32
        scf.yield %h, %m : i32, i32
      }}
      {put("%r#1", 0)}"""
    assert result_of(body)[0] == 12
