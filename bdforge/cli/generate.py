"""`bdforge generate`: tokens of a model, and what ran where."""

from typing import Annotated

import typer

from bdforge.cli.models import (
    DESIGN,
    DesignFolder,
    DeviceName,
    MicroBatch,
    ModelPath,
    Most,
    Override,
    Rule,
    ledger_table,
    opened,
    peak_memory,
    summary,
)
from bdforge.cli.options import Seed
from bdforge.cli.ranges import number, whole_numbers
from bdforge.common.messages import clip
from bdforge.common.screen import put, say, screen
from bdforge.models import Sampler, generate

app = typer.Typer()
_CHARACTERS = 256  # a vocabulary no larger is of bytes


@app.command(name="generate")
def generate_command(
    model: ModelPath,
    prompt_ids: Annotated[str | None, typer.Option(help="The prompt's tokens, such as 128000,791,1938.")] = None,
    prompt: Annotated[
        str | None, typer.Option(help=f"A text instead, for models of at most {_CHARACTERS} tokens: its bytes.")
    ] = None,
    most: Most = "32",
    temperature: Annotated[float, number("0 takes the most likely token.")] = 0.0,
    top_k: Annotated[int, number("Draw from so many of the most likely; 0: from all.")] = 0,
    top_p: Annotated[float, number("Draw from the fewest that are so likely together.", most=1)] = 1.0,
    seed: Seed = 0,
    design: DesignFolder = DESIGN,
    device: DeviceName = "emulated",
    split: Rule = "estimate",
    micro_batch: MicroBatch = 0,
    override: Override = None,
) -> None:
    """Generate tokens with a BitNet b1.58, its linear layers on the array where that is faster."""
    count, *more = whole_numbers(most, "-n", 1)
    if more:
        raise typer.BadParameter(f"-n {clip(repr(most))}: give one number")
    sampler = Sampler(temperature, top_k, top_p, seed)
    ids = _ids(prompt_ids, prompt)
    loaded = opened(model, design, device, split, override)
    loaded.check(ids)
    text = prompt is not None
    if text and loaded.config.vocab_size > _CHARACTERS:
        raise typer.BadParameter(f"--prompt is for {_CHARACTERS} tokens at most; give --prompt-ids of your tokeniser's")
    say(summary(loaded))
    say(_shown(ids, text), nl=False)
    for token in generate(loaded, ids, sampler, count, micro_batch):
        say(_shown([token], text), nl=False)
    say("")
    put(screen(), ledger_table(loaded.products.ledger), peak_memory())


def _ids(numbers: str | None, text: str | None) -> list[int]:
    if (numbers is None) == (text is None):
        raise typer.BadParameter("give either --prompt-ids or --prompt")
    if numbers is None:
        return list((text or "").encode())
    return whole_numbers(",".join(numbers.replace(",", " ").split()), "--prompt-ids", 0)


def _shown(tokens: list[int], text: bool) -> str:
    if text:
        return bytes(tokens).decode(errors="backslashreplace")
    return "".join(f"{token} " for token in tokens)
