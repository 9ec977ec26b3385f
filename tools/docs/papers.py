"""docs/papers.md: every published table and figure with its command, and how far off ours are (`reproduced.csv`).

`run_all` reproduces them (a minute or two, nothing emulated) and keeps their errors, from which the page is made.
"""

from collections.abc import Iterator
from pathlib import Path

from bdforge.common.files import csv_text, read_csv
from bdforge.perf.reproduce import PaperEntry, entries, figures_of, summary
from tools.docs.markdown import bullet, prose, section, table

TABLE = Path(__file__).with_name("reproduced.csv")
_KINDS = ("modelled", "counted")
_NOT_HERE = (
    "*Striking the Balance*: points and averages of Figs 6 to 8 but for those above, four rows of Tables 2 and 3",
    "*Asymmetric Tile Buffering*: Table 3, three rows of Table 1, one configuration of Table 2, and equations "
    "other than those of its bounds",
    "*TEIR*: the 23 sizes of Fig. 10, of which the text names two, and the bars of Figs 11 to 13",
    "*GPT-2 fine-tuning*: Figs 6 to 9 in milliseconds and joules, and the processor's times; [training](training.md) "
    "has a step of ours on other designs",
    "*NPU kernel design*: rates of its int8 x int2 tiles; [assembled](assembled.md) counts ours",
)


def errors_of(entry: PaperEntry) -> list[tuple[str, ...]]:
    """Rows of the table, one for each kind of ours."""
    return [
        (entry.name, each.kind, str(each.count), f"{each.mean:.3f}", f"{each.median:.3f}", f"{each.worst:.3f}")
        for each in summary(figures_of(entry))
    ]


def run_all() -> Iterator[str]:
    """Reproduce everything, telling of each row, and write the table."""
    rows: list[tuple[str, ...]] = []
    for entry in entries():
        rows += errors_of(entry)
        yield " ".join(rows[-1])
    TABLE.write_text(csv_text([("entry", "kind", "figures", "mean", "median", "worst"), *rows]), encoding="utf-8")


def page() -> str:
    """The whole page."""
    papers = dict.fromkeys(entry.paper for entry in entries())
    return "\n".join([_head(), *map(_paper, papers), _missing()])


def _head() -> str:
    return "\n".join(
        [
            "# Published tables and figures, reproduced\n",
            prose(
                "For whoever checks published figures:",
                "every table and figure beside what is modelled, counted or emulated here.",
            ),
            prose(
                "Made by `python -m tools.docs papers`; a test keeps it current. `bdforge reproduce NAME` prints a",
                "table or figure as published, as it is *modelled* here or *counted* (exactly: bytes, BDs, cycles of",
                "assembled kernels, stages of instructions), and the difference; `--full` runs designs on the emulated",
                "array beside it, `-o` writes a CSV, `--picture` draws it, `--all` does every one. Nothing is tuned",
                "for them: what is missed is printed. `bdforge/perf/data/papers.toml` is the table of them. Where",
                "numbers are in a picture only, what the text says is compared, and the figure is *drawn*: ours alone,",
                "which its note says.",
            ),
            prose(
                "Errors are the mean, median and worst absolute difference of the figures of an entry. Parameters of",
                "the models were fitted to rows of the entries marked *, among others; [accuracy](accuracy.md) says",
                "how far they are off where they are left out.",
            ),
        ]
    )


def _paper(paper: str) -> str:
    found = [entry for entry in entries() if entry.paper == paper]
    notes = [bullet(f"`{entry.name}`: {entry.note}.") for entry in found if entry.note]
    head = ("where", "what", "rows", *_KINDS, "command")
    return section(paper, table(head, map(_line, found)), *(["".join(notes)] if notes else []))


def _line(entry: PaperEntry) -> tuple[str, ...]:
    rows = {row["kind"]: row for row in read_csv(TABLE) if row["entry"] == entry.name}
    errors = (
        f"{float(row['mean']):.1%}, {float(row['median']):.1%}, {float(row['worst']):.1%} of {row['figures']}"
        if (row := rows.get(kind))
        else ""
        for kind in _KINDS
    )
    errors = errors if entry.published else ("none published", "")
    starred = f"{entry.where}{' *' if entry.fitted else ''}"
    return starred, entry.about, str(len(entry.rows)), *errors, f"`bdforge reproduce {entry.name}`"


def _missing() -> str:
    return section("Not here, since nobody has their numbers", "".join(bullet(f"{text}.") for text in _NOT_HERE))
