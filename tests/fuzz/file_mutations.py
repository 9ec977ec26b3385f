"""Seeded mutations of files: what a bad disk, a cut download, a wrong editor or an ill will makes of them."""

import re
from collections.abc import Callable
from random import Random

from fuzz.mutations import mutated as mutated_text

Mutation = Callable[[Random, bytes], bytes]
EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63,
         (1 << 64) - 1)  # fmt: skip
WORDS = (b"\0", b"\x1b[2J", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"\r", b"\n", b",", b"[", b"]", b"{", b"}", b"=",
         b"-1", b"1e999", b"nan", b"null", b"true", b"9" * 30, b"9" * 5000, b"[" * 3000, b"{" * 3000, b"A" * 70_000,
         "é\u202e".encode(), b"\xed\xa0\x80", b"../../..", b"%s%n", b"#")  # fmt: skip
NUMBER = re.compile(rb"\d+")


def flip(random: Random, data: bytes) -> bytes:
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


def cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data))]


def drop(random: Random, data: bytes) -> bytes:
    place = random.randrange(len(data))
    return data[:place] + data[place + random.choice((1, 2, 4, 8, 64)) :]


def repeat(random: Random, data: bytes) -> bytes:
    place = random.randrange(len(data))
    part = data[place : place + random.choice((1, 4, 16, 100))]
    return data[:place] + part * random.choice((2, 3, 50)) + data[place:]


def move(random: Random, data: bytes) -> bytes:
    place, other = random.randrange(len(data)), random.randrange(len(data))
    return data[:other] + data[place : place + 16] + data[other:]


def insert(random: Random, data: bytes) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + random.choice(WORDS) + data[place:]


def put_number(random: Random, data: bytes) -> bytes:
    """A binary number of 1 to 8 bytes at the edge of its type."""
    size = random.choice((1, 2, 4, 8))
    place = random.randrange(len(data))
    value = random.choice(EDGES) & (1 << 8 * size) - 1
    return data[:place] + value.to_bytes(size, random.choice(("little", "big"))) + data[place + size :]


def change_number(random: Random, data: bytes) -> bytes:
    """Another decimal number in the place of one."""
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    match = random.choice(found)
    other = str(random.choice((*EDGES, -1, 3, 17, 10**30, int(match[0][:18]) + 1))).encode()
    return data[: match.start()] + other + data[match.end() :]


def as_text(random: Random, data: bytes) -> bytes:
    """As a person would err."""
    return mutated_text(random, data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


MUTATIONS: tuple[Mutation, ...] = (flip, cut, drop, repeat, move, insert, put_number, change_number, change_number)
TEXTS = (
    "toml",
    "document",
    "mlir",
    "design",
    "manifest",
    "csv",
    "mlir 1.4",
    "template",
    "template spec",
    "assembly",
    "command",
)


def mutated(random: Random, kind: str, data: bytes) -> bytes:
    """`data` after one to four mutations; designs only as a person would err, so that some still run."""
    if kind == "design":
        return as_text(random, data)
    choices = (*MUTATIONS, as_text, as_text, as_text) if kind in TEXTS else MUTATIONS
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        if data:
            data = random.choice(choices)(random, data)
    return data
