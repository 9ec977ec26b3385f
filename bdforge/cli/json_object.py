"""What every `--json` output is, and what is printed instead of one where a command cannot do its work."""

from pydantic import BaseModel, ConfigDict, Field

from bdforge.common.screen import say


class JsonObject(BaseModel):
    """One JSON object of a command's output."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def print(self) -> None:
        """Print it on the screen."""
        say(self.model_dump_json(indent=1))


class Refusal(JsonObject):
    """Any command with `--json` that cannot print its object: what was given cannot be used, or a run failed."""

    refused: str = Field(description="why, as the standard error stream tells it; of a text its place first")
    exit_code: int = Field(description="1 of a run that failed, 2 of what was given, 3 of a fault of bdforge's own")


OUTPUTS: tuple[type[JsonObject], ...] = (Refusal,)
"""Objects in the order of docs/json.md."""
