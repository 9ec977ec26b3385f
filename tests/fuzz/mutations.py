"""Seeded mutations of MLIR text: what a slip of the keyboard, a bad merge or a buggy generator would make of it."""

import re
from collections.abc import Callable
from random import Random

TOKEN = re.compile(r"0x[0-9a-fA-F]+|-?\d+|[%@^#!]?[A-Za-z_][\w.$]*|\"[^\"\n]*\"|\s+|.", re.DOTALL)
NUMBER = re.compile(r"0x[0-9a-fA-F]+|-?\d+")
WORD = re.compile(r"[%@^#!]?[A-Za-z_]")
NUMBERS = (0, 1, -1, 2, 3, 5, 7, 15, 16, 31, 32, 47, 48, 63, 64, 127, 128, 255, 256, 511, 513, 1023, 1024, 8191, 65535,
           1 << 17, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63,
           -(1 << 63), 1 << 64, 10**30)  # fmt: skip
CHARACTERS = "{}[]()<>\"'%@^#!:,;=->*/\\\0\n\t é→𝔸?0x-"

Mutation = Callable[[Random, str], str]


def tokens_of(text: str) -> list[str]:
    return TOKEN.findall(text)


def places(tokens: list[str], pattern: re.Pattern) -> list[int]:
    return [i for i, token in enumerate(tokens) if pattern.match(token)]


def solid(tokens: list[str]) -> list[int]:
    return [i for i, token in enumerate(tokens) if not token.isspace()]


def token_edit(edit: Callable[[Random, list[str], int], None]) -> Mutation:
    """A mutation at a random token that is no blank."""

    def mutate(random: Random, text: str) -> str:
        tokens = tokens_of(text)
        if where := solid(tokens):
            edit(random, tokens, random.choice(where))
        return "".join(tokens)

    return mutate


@token_edit
def delete_token(random: Random, tokens: list[str], index: int) -> None:
    tokens[index] = ""


@token_edit
def double_token(random: Random, tokens: list[str], index: int) -> None:
    tokens[index] = tokens[index] + random.choice((" ", "", ", ")) + tokens[index]


@token_edit
def swap_tokens(random: Random, tokens: list[str], index: int) -> None:
    other = random.choice(solid(tokens))
    tokens[index], tokens[other] = tokens[other], tokens[index]


def change_number(random: Random, text: str) -> str:
    tokens = tokens_of(text)
    if where := places(tokens, NUMBER):
        index = random.choice(where)
        short = not tokens[index].startswith("0") and len(tokens[index]) < 4000  # Python reads no longer ones
        near = int(tokens[index], 0) + random.choice((-2, -1, 1, 2, 4)) if short else 1
        tokens[index] = str(random.choice((near, near, near * 2, random.choice(NUMBERS), random.choice(NUMBERS))))
    return "".join(tokens)


def exchange_name(random: Random, text: str) -> str:
    """Another name of the same text, mostly one of the same kind."""
    tokens = tokens_of(text)
    where = places(tokens, WORD)
    if where:
        index = random.choice(where)
        alike = [i for i in where if tokens[i][0] == tokens[index][0]]
        tokens[index] = tokens[random.choice(alike if random.random() < 0.8 else where)]
    return "".join(tokens)


def change_match(pattern: re.Pattern, others: Callable[[Random, list[str]], str]) -> Mutation:
    """Exchanges one match of a pattern, or now and then all that are alike."""

    def mutate(random: Random, text: str) -> str:
        found = list(pattern.finditer(text))
        if not found:
            return text
        match = random.choice(found)
        other = others(random, [m.group() for m in found])
        if random.random() < 0.3:
            return text.replace(match.group(), other)
        return text[: match.start()] + other + text[match.end() :]

    return mutate


TYPES = ("i1", "i8", "i16", "i32", "i64", "index", "f16", "bf16", "f32", "f64", "i5", "i128", "i512", "ui32", "none",
         "vector<4xi32>", "vector<16xf32>", "vector<[4]xi8>", "memref<8xi32>", "memref<?xi32>", "memref<4x4xbf16>",
         "tensor<4xi32>", "tuple<>", "(i32) -> i32", "complex<f32>", '!aiex.bfp<"v8bfp16ebs8">')  # fmt: skip
change_type = change_match(re.compile(r"(?<![%@^a-wyz_])(?:i|f|bf)\d+\b|\bindex\b"), lambda r, _: r.choice(TYPES))
change_operation = change_match(
    re.compile(r"\b(?:arith|memref|vector|scf|cf|affine|aie|aiex|func|math)\.[a-z_.]+"),
    lambda r, names: r.choice(names),
)
change_shape = change_match(
    re.compile(r"\d+x"), lambda r, _: r.choice(("0x", "1x", "3x", "16x", "?x", "4x4x", "9999999x"))
)


def line_edit(edit: Callable[[Random, list[str]], None]) -> Mutation:
    def mutate(random: Random, text: str) -> str:
        lines = text.splitlines(keepends=True)
        if lines:
            edit(random, lines)
        return "".join(lines)

    return mutate


@line_edit
def delete_line(random: Random, lines: list[str]) -> None:
    del lines[random.randrange(len(lines))]


@line_edit
def double_line(random: Random, lines: list[str]) -> None:
    index = random.randrange(len(lines))
    lines.insert(random.randrange(len(lines)), lines[index])


@line_edit
def swap_lines(random: Random, lines: list[str]) -> None:
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


@line_edit
def shuffle_lines(random: Random, lines: list[str]) -> None:
    start = random.randrange(len(lines))
    part = lines[start : start + 6]
    random.shuffle(part)
    lines[start : start + 6] = part


def cut_off(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) + 1)]


def insert_character(random: Random, text: str) -> str:
    index = random.randrange(len(text) + 1)
    return text[:index] + random.choice(CHARACTERS) + text[index:]


SLIPS: tuple[Mutation, ...] = (
    delete_token, double_token, swap_tokens, delete_line, double_line, swap_lines, shuffle_lines, cut_off,
    insert_character,
)  # fmt: skip
CHANGES: tuple[Mutation, ...] = (
    change_number, change_number, change_number, exchange_name, exchange_name, delete_line, double_line, change_type,
    change_operation, change_shape,
)  # fmt: skip


def mutated(random: Random, text: str) -> str:
    """`text` after one to four mutations: slips that mostly break its syntax, or changes that mostly keep it."""
    mutations = SLIPS if random.random() < 0.3 else CHANGES
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        text = random.choice(mutations)(random, text)
    return text
