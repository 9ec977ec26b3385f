"""What a BitNet b1.58 is made of, by Hugging Face's config.json or a GGUF file's metadata."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bdforge.common.files import read_json
from bdforge.common.messages import clip
from bdforge.models.bitnet.model_settings import (
    IDLE_OF_GGUF,
    IDLE_OF_JSON,
    OF_GGUF,
    OF_JSON,
    flat,
    overridden,
    refuse_scaled,
    unknown,
)
from bdforge.models.errors import ModelError
from bdforge.models.functions import GATES
from bdforge.models.weights import ARRAY_VALUE

ARCHITECTURES = ("bitnet", "bitnet-b1.58", "bitnet-25")
"""`general.architecture` of GGUF files: llama.cpp's, and bitnet.cpp's for the 2B model."""
_LARGEST = 1 << 20
Size = Annotated[int, Field(ge=1, le=_LARGEST)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class BitNetConfig(BaseModel):
    """Sizes and constants, called as in `transformers`; defaults are those of BitNet-b1.58-2B-4T.

    `divides`: the numbers stored beside the weights divide results instead of multiplying them. `tie_word_embeddings`:
    the embedding is the head; None where nothing is said, and then it is where there is no other. `unknown`: settings
    of the file that nobody here knows.
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
    tie_word_embeddings: bool | None = None
    unknown: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _heads(cls, content: Any) -> Any:
        """Without `head_dim` heads share the hidden size; keys and values of no number have as many as queries."""
        if not isinstance(content, dict):
            return content
        if content.get("num_key_value_heads", 0) is None:
            content = content | {"num_key_value_heads": content.get("num_attention_heads")}
        if not content.get("head_dim"):
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
            raise ValueError(
                f"hidden_act {clip(repr(self.hidden_act))} is not one of {', '.join(GATES)}; "
                "override it where one of these is meant"
            )
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


def from_json(path: Path, override: Mapping[str, Any] = MappingProxyType({})) -> BitNetConfig:
    """The configuration in a config.json, with members of `override` instead of the file's.

    ModelError for a file that is none, is of another kind of model, or sets what is not computed here.
    """
    content = read_json(path, ModelError)
    if not isinstance(content, dict) or content.get("model_type") != "bitnet":
        kind = content.get("model_type") if isinstance(content, dict) else None
        raise ModelError(f"{path}: model_type is {clip(repr(kind))}, expected 'bitnet'; this is another kind of model")
    if odd := [name for name in _GROUPS if not isinstance(content.get(name) or {}, dict)]:
        raise ModelError(f"{path}: {odd[0]} is {clip(repr(content[odd[0]]))}, expected an object")
    settings = flat(content, *_GROUPS)
    names = unknown(path, settings, {*BitNetConfig.model_fields, *_READ}, OF_JSON, IDLE_OF_JSON)
    content |= _rope(path, content) | {"eos": _ends(path.with_name(_GENERATION), content)}
    content["divides"] = override.get("divides") if "divides" in override else _divides(path, content)
    return _checked(content | {"unknown": names}, override, path)


_GENERATION = "generation_config.json"
_GROUPS = ("rope_parameters", "rope_scaling", "quantization_config")
_READ = ("eos_token_id", "quantization_config.linear_class", *(
    f"{group}.{name}" for group in _GROUPS[:2] for name in ("rope_type", "type", "rope_theta")
))  # fmt: skip
_LINEAR_CLASSES = {None: True, "bitlinear": True, "autobitlinear": False}
"""Whether `weight_scale` divides; without a name it is bitlinear (`transformers`, `BitNetQuantConfig`)."""


def _ends(generation: Path, content: Mapping[str, Any]) -> list[Any]:
    """Tokens that end a text, those of the file beside the configuration where it names any, as `transformers` does."""
    beside = read_json(generation, ModelError) if generation.exists() else {}
    if not isinstance(beside, dict):
        raise ModelError(f"{generation}: holds {clip(repr(beside))}, expected an object")
    eos = content.get("eos_token_id") if beside.get("eos_token_id") is None else beside["eos_token_id"]
    return eos if isinstance(eos, list) else [] if eos is None else [eos]


def _rope(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Theta where it stands in a group; ModelError for a group that scales."""
    found = {}
    for name in _GROUPS[:2]:
        rope = content.get(name) or {}
        refuse_scaled(path, name, rope.get("rope_type") or rope.get("type"), rope.get("factor"))
        if rope.get("partial_rotary_factor", 1) != 1:
            raise ModelError(f"{path}: {name}.partial_rotary_factor is not 1; heads are turned whole here")
        found |= {key: value for key, value in rope.items() if key == "rope_theta"}
    return found


def _divides(path: Path, content: Mapping[str, Any]) -> bool:
    quantisation = content.get("quantization_config")
    if not quantisation:
        raise ModelError(
            f"{path}: without quantization_config nothing says whether weight_scale multiplies or divides; "
            "override divides with false or true"
        )
    kind = quantisation.get("linear_class")
    if not isinstance(kind, str | None) or kind not in _LINEAR_CLASSES:
        raise ModelError(f"{path}: linear_class {clip(repr(kind))} is not one of bitlinear, autobitlinear")
    return _LINEAR_CLASSES[kind]


def from_metadata(
    path: Path, metadata: Mapping[str, Any], vocabulary: int, override: Mapping[str, Any] = MappingProxyType({})
) -> BitNetConfig:
    """The configuration in a GGUF file's metadata; its embedding has `vocabulary` rows. Errors as of `from_json`."""
    kind = metadata.get("general.architecture")
    if kind not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelError(f"{path}: general.architecture is {clip(repr(kind))}, expected one of {known}")
    settings = {key.removeprefix(f"{kind}."): value for key, value in metadata.items()}
    if odd := [key for key in metadata if key.startswith(f"{kind}.") and metadata[key] == ARRAY_VALUE]:
        raise ModelError(f"{path}: {odd[0]} is an array; layers that differ are not computed here, one value is read")
    names = unknown(path, settings, {*_KEYS.values(), *_JUDGED}, OF_GGUF, IDLE_OF_GGUF)
    factor = settings.get("rope.scaling.factor", settings.get("rope.scale_linear"))
    refuse_scaled(path, f"{kind}.rope.scaling", settings.get("rope.scaling.type", "linear"), factor)
    found = {ours: _decimal(settings[theirs]) for ours, theirs in _KEYS.items() if theirs in settings}
    found = {"rope_theta": _THETA, "num_key_value_heads": found.get("num_attention_heads")} | found
    eos = [metadata[f"tokenizer.ggml.{end}_token_id"] for end in _ENDS if f"tokenizer.ggml.{end}_token_id" in metadata]
    more = {"vocab_size": vocabulary, "eos": eos, "unknown": names}
    config = _checked(found | more, override, path)
    for key, right in (*((key, config.head_dim) for key in _WIDTHS), ("vocab_size", vocabulary)):
        if (value := settings.get(key, right)) != right:
            raise ModelError(f"{path}: {kind}.{key} is {clip(repr(value))}, only {right} is computed here")
    return config


def _decimal(value: Any) -> Any:
    """A float32, as GGUF has most, as the shortest decimal that rounds to it: as specs and config.json say it."""
    if not isinstance(value, float) or float(np.float32(value)) != value:
        return value
    return float(str(np.float32(value)))


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
    "hidden_act": "hidden_activation",
}
"""Members of the configuration by GGUF's keys, behind the architecture's name."""
_ENDS = ("eos", "eot", "eom")  # of a text, a turn, a message: llama.cpp ends at each
_THETA = 10_000.0  # llama.cpp's, where a file has no rope.freq_base
_WIDTHS = ("rope.dimension_count", "attention.value_length")  # as wide as a head
_JUDGED = (*_WIDTHS, "vocab_size", "rope.scaling.type", "rope.scaling.factor", "rope.scale_linear")


def _checked(content: Mapping[str, Any], override: Mapping[str, Any], path: Path) -> BitNetConfig:
    members = [name for name in BitNetConfig.model_fields if name != "unknown"]
    try:
        return BitNetConfig.model_validate(overridden(content, override, members))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "configuration"
        got = "" if isinstance(first["input"], dict) else f", got {clip(repr(first['input']))}"
        raise ModelError(f"{path}: {place}: {first['msg'].removeprefix('Value error, ')}{got}") from None
