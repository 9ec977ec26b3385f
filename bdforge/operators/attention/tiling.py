"""How attention's work is cut: heads, the tile of a core, cores in use; and the kernels that a core calls."""

from dataclasses import dataclass

_JOINING = "meet", "align", "join"
PARTS = ("begin", "queries", "scores", "cap", "mask", "weights", "rescale", "values", *_JOINING, "end")
"""Of a core's work, each a kernel; `cap` where scores have one, `meet`, `align` and `join` where keys are split."""
SYMBOLS = {part: f"attention_{part}_bf16" for part in PARTS}


@dataclass(frozen=True, slots=True)
class AttentionTiling:
    """Heads, the tile of a core (`queries` x `keys`), and cores in use: two columns or more for each row.

    For `few` queries a tile's lines are those of all query heads that share a KV head, and cores, one of each column,
    have keys and values of their own: those of a KV head are `splits` ranges, for as many columns side by side.
    """

    heads: int
    kv_heads: int
    head_dim: int
    queries: int
    keys: int
    rows: int
    columns: int
    capped: bool = False
    few: bool = False
    splits: int = 1

    @property
    def symbols(self) -> tuple[str, ...]:
        """Of the kernels that cores call."""
        without = {*(() if self.capped else ("cap",)), *(() if self.splits > 1 else _JOINING)}
        return tuple(SYMBOLS[part] for part in PARTS if part not in without)

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.heads // self.kv_heads

    @property
    def heads_of_item(self) -> int:
        """Query heads whose lines lie side by side in a tile."""
        return self.group if self.few else 1

    @property
    def item_queries(self) -> int:
        """Queries of an item; what its tile has beside their lines is as the last of them."""
        return self.queries // self.heads_of_item

    @property
    def streams(self) -> int:
        """KV heads that are under way at a time: one to a row of cores, or to the columns that split its keys."""
        return self.columns // self.splits if self.few else self.rows

    @property
    def readers(self) -> int:
        """Runs of blocks under way at a time: each goes by a row of cores, or by a core."""
        return self.streams * self.splits

    @property
    def sharing(self) -> int:
        """Items that have a stream in common: of the cores along a row, or one."""
        return 1 if self.few else self.columns

    def stream_column(self, stream: int) -> int:
        """The column by which a stream's first K comes; V comes by the next one, or by the same for few queries."""
        return stream * self.columns // self.streams

    def place_of(self, column: int) -> tuple[int, int]:
        """Of few queries' core in a column its stream, and which range of the keys it has."""
        return divmod(column, self.splits)

    def joins(self, column: int) -> bool:
        """Whether few queries' core in a column adds the result of the one to the west to its own."""
        return column % self.splits > 0

    def ends(self, column: int) -> bool:
        """Whether few queries' core in a column has the result of all ranges."""
        return (column + 1) % self.splits == 0

    @property
    def q_elements(self) -> int:
        """Of an item's Q, and of its Y."""
        return self.queries * self.head_dim

    @property
    def pairs(self) -> int:
        """Of rows of a tile's 8 x 8: what Q and Y come and go by."""
        return self.queries // 16

    @property
    def pair_elements(self) -> int:
        """Of such a pair's Q, and of its Y."""
        return self.q_elements // self.pairs

    @property
    def block_elements(self) -> int:
        """Of a block of K, and of V."""
        return self.keys * self.head_dim
