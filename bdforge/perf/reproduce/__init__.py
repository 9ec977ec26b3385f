"""Published tables and figures beside what this project makes of them: modelled, counted or emulated, never tuned.

`entries` is the table of them, data alone (`data/papers.toml`, with the published figures in CSV files beside it);
`figures` compares. What a row of an entry is and which quantities it has, its *producer* says (`producers`).
"""

from bdforge.perf.reproduce.entries import PaperEntry, entries, entry_named
from bdforge.perf.reproduce.figures import Figure, figures_csv, summary
from bdforge.perf.reproduce.producers import figures_by_entry, figures_of

__all__ = [
    "Figure", "PaperEntry", "entries", "entry_named", "figures_by_entry", "figures_csv", "figures_of", "summary",
]  # fmt: skip
