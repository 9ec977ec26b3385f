"""A BitNet's tensors by role, from a folder as Hugging Face has it or from a GGUF file; read when asked for."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from bdforge.common.messages import clip_path, listed
from bdforge.models import weights
from bdforge.models.bitnet.model_config import BitNetConfig, from_json, from_metadata
from bdforge.models.errors import ModelError
from bdforge.models.weights import QuantisedRows, TernaryMatrix, check_shape, fuse

_GGUF = {
    "embedding": "token_embd", "final_norm": "output_norm", "head": "output", "attn_norm": "attn_norm", "q": "attn_q",
    "k": "attn_k", "v": "attn_v", "attn_sub_norm": "attn_sub_norm", "o": "attn_output", "ffn_norm": "ffn_norm",
    "gate": "ffn_gate", "up": "ffn_up", "ffn_sub_norm": "ffn_sub_norm", "down": "ffn_down",
}  # fmt: skip
_HUGGING_FACE = {
    "embedding": "model.embed_tokens", "final_norm": "model.norm", "head": "lm_head", "attn_norm": "input_layernorm",
    "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj",
    "attn_sub_norm": "self_attn.attn_sub_norm", "o": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj", "up": "mlp.up_proj", "ffn_sub_norm": "mlp.ffn_sub_norm", "down": "mlp.down_proj",
}  # fmt: skip
"""Names by role; those of layers stand behind `blk.N.` and `model.layers.N.`."""
_ENDS = ("embedding", "final_norm", "head")
_MATRICES = ("q", "k", "v", "o", "gate", "up", "down")
_log = logging.getLogger("bdforge.models")


@dataclass(frozen=True)
class Checkpoint:
    """The files of a model: `files` hold tensors, `names` says how they are called, `layer` what stands before."""

    path: Path
    files: tuple[Path, ...]
    config: BitNetConfig
    names: dict[str, str]
    layer: str

    @classmethod
    def open(cls, path: str | PathLike[str], override: Mapping[str, Any] = MappingProxyType({})) -> "Checkpoint":
        """The model at `path`: a .gguf file, or a folder with config.json and .safetensors.

        `override` has members of the configuration that are not the file's. What the file says and nobody here knows is
        logged, once. ModelError for what is no BitNet or changes it, WeightError for a damaged file.
        """
        path = Path(path)
        found = _folder(path, override) if path.is_dir() else _gguf(path, override)
        beyond = found.beyond()
        if beyond and not path.is_dir():
            raise ModelError(f"{clip_path(path)}: a BitNet b1.58 has no tensors called {listed(beyond)}: another model")
        if odd := [*found.config.unknown, *beyond]:
            _log.warning("%s: %s: not known here, and without effect", clip_path(path), listed(odd))
        return found

    def beyond(self) -> list[str]:
        """Names of tensors that have no place in the model."""
        places = {self._name(role) for role in _ENDS}
        for layer in range(self.config.num_hidden_layers):
            for role in self.names.keys() - set(_ENDS):
                name = self._name(role, layer)
                places |= {name, f"{name}_scale", name.replace(".weight", ".scale")} if role in _MATRICES else {name}
        return [name for file in self.files for name in weights.names(file) if name not in places]

    def matrix(self, layer: int, roles: Sequence[str]) -> TernaryMatrix:
        """The ternary matrices of a layer side by side, with scales that multiply; errors as of `weights.read`."""
        return fuse([self._one(layer, role) for role in roles])

    def floats(self, role: str, shape: tuple[int, ...], layer: int | None = None) -> np.ndarray:
        """A tensor of floats, mapped; ModelError where it is missing, has another shape or is quantised."""
        found = self.table(role, shape, layer)
        if isinstance(found, QuantisedRows):
            raise ModelError(f"{clip_path(self.path)}: tensor {self._name(role, layer)} is quantised, expected floats")
        return found

    def table(self, role: str, shape: tuple[int, ...], layer: int | None = None) -> np.ndarray | QuantisedRows:
        """As `floats`, of a tensor that may be quantised."""
        name = self._name(role, layer)
        found = self._found(name)
        if found is None:
            raise ModelError(f"{clip_path(self.path)}: has no tensor {name}; this is no whole BitNet b1.58")
        if found.shape != shape:
            raise ModelError(f"{clip_path(self.path)}: tensor {name} has shape {found.shape}, expected {shape}")
        return found

    def head(self) -> np.ndarray | QuantisedRows | None:
        """The output matrix where it is not the embedding; ModelError where a model says so and has none."""
        config = self.config
        if config.tie_word_embeddings is not False and self._found(self._name("head")) is None:
            return None
        return self.table("head", (config.vocab_size, config.hidden_size))

    def _one(self, layer: int, role: str) -> TernaryMatrix:
        config = self.config
        wide, narrow, inner = config.query_size, config.key_size, config.intermediate_size
        sizes = {
            "q": (config.hidden_size, wide), "k": (config.hidden_size, narrow), "v": (config.hidden_size, narrow),
            "o": (wide, config.hidden_size), "gate": (config.hidden_size, inner), "up": (config.hidden_size, inner),
            "down": (inner, config.hidden_size),
        }  # fmt: skip
        name = self._name(role, layer)
        matrix = weights.read(self._holders.get(name, self.files[0]), [name])
        check_shape(matrix, *sizes[role])
        stored = self._number(f"{name}_scale")  # Hugging Face's; it may lie in another file
        if stored is None and self.path.is_dir():
            raise ModelError(f"{clip_path(self.path)}: has no tensor {name}_scale; this is no whole BitNet b1.58")
        scale = matrix.scales[0] if stored is None else stored
        if config.divides and scale == 0:
            raise ModelError(f"{clip_path(self.path)}: tensor {name} has scale 0, by which results would be divided")
        beside = self._number(name.replace(".weight", ".scale"))  # what ggml multiplies with after the product
        factor = 1.0 if beside is None else beside
        return replace(matrix, scales=((1 / scale if config.divides else scale) * factor,))

    def _number(self, name: str) -> float | None:
        """A tensor of one number, None where there is none; ModelError where it holds another."""
        if (found := self._found(name)) is None:
            return None
        number = found.reshape(-1)[0] if isinstance(found, np.ndarray) and found.size == 1 else np.nan
        if not isfinite(number):
            raise ModelError(f"{clip_path(self.path)}: tensor {name} is not one finite number; get the file again")
        return float(number)

    def _name(self, role: str, layer: int | None = None) -> str:
        return f"{'' if layer is None else self.layer.format(layer)}{self.names[role]}.weight"

    def _found(self, name: str) -> np.ndarray | QuantisedRows | None:
        for file in self.files:
            if (found := weights.floats(file, name)) is not None:
                return found
        return None

    @cached_property
    def _holders(self) -> dict[str, Path]:
        """The file of each ternary matrix."""
        return {name: file for file in self.files for name, _ in weights.tensors(file)}


def _folder(path: Path, override: Mapping[str, Any]) -> Checkpoint:
    config, files = path / "config.json", tuple(sorted(path.glob("*.safetensors")))
    if not config.is_file() or not files:
        missing = "*.safetensors" if config.is_file() else "config.json"
        raise ModelError(f"{clip_path(path)}: a folder without {missing}; give one as Hugging Face has it, or a .gguf")
    return Checkpoint(path, files, from_json(config, override), _HUGGING_FACE, "model.layers.{}.")


def _gguf(path: Path, override: Mapping[str, Any]) -> Checkpoint:
    metadata = weights.metadata(path)
    if metadata is None:
        raise ModelError(f"{clip_path(path)}: safetensors alone do not say a model's sizes; give the folder it is in")
    embedding = weights.floats(path, "token_embd.weight")
    config = from_metadata(path, metadata, 0 if embedding is None else len(embedding), override)
    return Checkpoint(path, (path,), config, _GGUF, "blk.{}.")
