"""What a BitNet b1.58 is made of, by Hugging Face's config.json or a GGUF file's metadata."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bdforge.files import read_json
from bdforge.messages import word
from bdforge.models.errors import ModelError
from bdforge.models.functions import GATES

ARCHITECTURES = ("bitnet", "bitnet-b1.58", "bitnet-25")
"""`general.architecture` of GGUF files: llama.cpp's, and bitnet.cpp's for the 2B model."""
_LARGEST = 1 << 20
Size = Annotated[int, Field(ge=1, le=_LARGEST)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class BitNetConfig(BaseModel):
    """Sizes and constants, called as in `transformers`; defaults are those of BitNet-b1.58-2B-4T.

    `divides`: the numbers stored beside the weights divide results instead of multiplying them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Annotated[int, Field(ge=1, le=1024)]
    num_attention_heads: Size
    num_key_value_heads: Size
    vocab_size: Annotated[int, Field(ge=2, le=1 << 24)]
    head_dim: Annotated[int, Field(ge=2, le=_LARGEST, multiple_of=2)]
    rms_norm_eps: Positive = 1e-5
    rope_theta: Positive = 500_000.0
    max_position_embeddings: Size = 4096
    hidden_act: str = "relu2"
    eos: tuple[int, ...] = ()
    divides: bool = False

    @model_validator(mode="before")
    @classmethod
    def _head_dim(cls, content: Any) -> Any:
        """Without `head_dim` heads share the hidden size."""
        if isinstance(content, dict) and not content.get("head_dim"):
            hidden, heads = content.get("hidden_size"), content.get("num_attention_heads")
            if isinstance(hidden, int) and isinstance(heads, int) and heads > 0 and hidden % heads == 0:
                return content | {"head_dim": hidden // heads}
        return content

    @model_validator(mode="after")
    def _whole(self) -> "BitNetConfig":
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"{self.num_attention_heads} query heads do not share {self.num_key_value_heads} key and value heads"
            )
        if self.hidden_act not in GATES:
            raise ValueError(f"hidden_act {word(repr(self.hidden_act))} is not one of {', '.join(GATES)}")
        return self

    @property
    def query_size(self) -> int:
        """Outputs of all query heads."""
        return self.num_attention_heads * self.head_dim

    @property
    def key_size(self) -> int:
        """Outputs of all key heads; values have as many."""
        return self.num_key_value_heads * self.head_dim

    def __str__(self) -> str:
        return (
            f"BitNet of {self.num_hidden_layers} layers, {self.hidden_size} / {self.intermediate_size}, "
            f"{self.num_attention_heads} heads on {self.num_key_value_heads}, vocabulary {self.vocab_size}"
        )


def from_json(path: Path) -> BitNetConfig:
    """The configuration in a config.json; ModelError for a file that is none, or is of another kind of model."""
    content = read_json(path, ModelError)
    if not isinstance(content, dict) or content.get("model_type") != "bitnet":
        kind = content.get("model_type") if isinstance(content, dict) else None
        raise ModelError(f"{path}: model_type is {word(repr(kind))}, expected 'bitnet'; this is another kind of model")
    for scaled in ("rope_parameters", "rope_scaling"):
        rope = content.get(scaled) or {}
        if not isinstance(rope, dict) or rope.get("rope_type", "default") != "default":
            raise ModelError(f"{path}: {scaled} is not the default; scaled rotary embeddings are not there")
        content |= {key: value for key, value in rope.items() if key == "rope_theta"}
    eos = content.get("eos_token_id")
    content["eos"] = eos if isinstance(eos, list) else [] if eos is None else [eos]
    quantisation = content.get("quantization_config") or {}
    content["divides"] = isinstance(quantisation, dict) and quantisation.get("linear_class") == "bitlinear"
    return _checked(content, path)


def from_metadata(path: Path, metadata: Mapping[str, Any], vocabulary: int) -> BitNetConfig:
    """The configuration in a GGUF file's metadata; its embedding has `vocabulary` rows. Errors as of `from_json`."""
    kind = metadata.get("general.architecture")
    if kind not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelError(f"{path}: general.architecture is {word(repr(kind))}, expected one of {known}")
    if metadata.get(f"{kind}.rope.scaling.type", "none") != "none" and metadata.get(f"{kind}.rope.scaling.factor") != 1:
        raise ModelError(f"{path}: {kind}.rope.scaling is not the default; scaled rotary embeddings are not there")
    found = {ours: metadata.get(f"{kind}.{theirs}") for ours, theirs in _KEYS.items()}
    found = {key: value for key, value in found.items() if value is not None}
    found.setdefault("num_key_value_heads", found.get("num_attention_heads"))
    eos = metadata.get("tokenizer.ggml.eos_token_id")
    return _checked(found | {"vocab_size": vocabulary, "eos": [] if eos is None else [eos]}, path)


_KEYS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
    "max_position_embeddings": "context_length",
}
"""Members of the configuration by GGUF's keys, behind the architecture's name."""


def _checked(content: Mapping[str, Any], path: Path) -> BitNetConfig:
    try:
        return BitNetConfig.model_validate(dict(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "configuration"
        got = "" if isinstance(first["input"], dict) else f", got {word(repr(first['input']))}"
        raise ModelError(f"{path}: {place}: {first['msg'].removeprefix('Value error, ')}{got}") from None
