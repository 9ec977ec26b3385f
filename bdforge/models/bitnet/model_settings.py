"""Settings of files beside the members of `BitNetConfig`: those that would change what a model computes are refused.

Sources: `transformers` 5.23 (`configuration_bitnet.py`, `integrations/bitnet.py`, `modeling_rope_utils.py`) and
llama.cpp's loader (`llama-model.cpp`), which says what a missing key means.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from bdforge.common.messages import clip
from bdforge.models.errors import ModelError

Neutral = Mapping[str, Collection[Any]]
"""Settings by name, with the values by which they change nothing."""

_OFF = (None, False, 0)
_ONE = (None, 1)
OF_JSON: Neutral = {
    "attention_bias": _OFF, "mlp_bias": _OFF, "partial_rotary_factor": _ONE, "sliding_window": _OFF,
    "use_sliding_window": _OFF, "attention_multiplier": _OFF, "embedding_multiplier": _ONE,
    "residual_multiplier": _ONE, "logits_scaling": _ONE, "attn_logit_softcapping": _OFF,
    "final_logit_softcapping": _OFF, "num_local_experts": _OFF, "is_encoder_decoder": _OFF, "pretraining_tp": _ONE,
    "quantization_config.quant_method": (None, "bitnet"), "quantization_config.quantization_mode": (None, "offline"),
    "quantization_config.use_rms_norm": _OFF,
}  # fmt: skip
"""Of config.json."""
IDLE_OF_JSON = re.compile(
    r"architectures|auto_map|model_type|(torch_)?dtype|transformers_version|use_cache|initializer_range|_.*|"
    r"(attention|hidden|resid|embd)_(p?drop(out)?)|(bos|pad|unk|sep)_token(_id)?|return_dict|output_\w+|id2label|"
    r"label2id|task_specific_params|do_sample|temperature|top_[kp]|max_length|chunk_size_feed_forward|"
    r"rope_(parameters|scaling)\.(original_max_position_embeddings|factor)|"
    r"quantization_config\.(modules_to_not_convert|rms_norm_eps)"
)
"""Names in config.json of what changes nothing when a trained model runs."""
OF_GGUF: Neutral = {
    "general.type": ("model",), "split.count": (0, 1), "attention.causal": (True,), "attention.sliding_window": _OFF,
    "attention.scale": _OFF, "attention.clamp_kqv": _OFF, "attention.max_alibi_bias": _OFF,
    "attn_logit_softcapping": _OFF, "final_logit_softcapping": _OFF, "logit_scale": (0, 1), "residual_scale": (0, 1),
    "embedding_scale": (0, 1), "expert_count": _OFF, "expert_used_count": _OFF, "use_parallel_residual": _OFF,
    "rope.scaling.attn_factor": _ONE,
}  # fmt: skip
"""Of a GGUF file, without the architecture's name before them."""
IDLE_OF_GGUF = re.compile(
    r"general\..*|tokenizer\..*|quantize\..*|split\..*|tensor_data_layout|attention\.layer_norm_epsilon|"
    r"rope\.scaling\.(original_context_length|finetuned|yarn_.*)"
)


def unknown(path: Path, found: Mapping[str, Any], read: Collection[str], neutral: Neutral, idle: re.Pattern) -> list:
    """Names of settings that nobody here knows, without those that are off.

    ModelError for one of `neutral` with a value that changes the function. Those of `read` are judged elsewhere.
    """
    names = []
    for name, value in found.items():
        if name in neutral:
            _refuse_other(path, name, value, neutral[name])
        elif name not in read and not idle.fullmatch(name) and value not in (None, False, "", [], {}):
            names.append(name)
    return names


def _refuse_other(path: Path, name: str, value: Any, neutral: Collection[Any]) -> None:
    if value not in neutral:
        known = " or ".join(repr(one) for one in neutral if one is not None)
        raise ModelError(f"{path}: {name} is {clip(repr(value))}; only {known} is computed here")


def flat(content: Mapping[str, Any], *groups: str) -> dict[str, Any]:
    """`content` with the members of some groups beside the others, as `group.member`."""
    found = {name: value for name, value in content.items() if name not in groups}
    for group in groups:
        found |= {f"{group}.{name}": value for name, value in (content.get(group) or {}).items()}
    return found


def refuse_scaled(path: Path, name: str, kind: Any, factor: Any) -> None:
    """ModelError unless positions are as they come: of no scaling, or of a linear one by 1."""
    if kind in (None, "default", "none") or (kind == "linear" and factor in (None, 0, 1)):
        return
    by = "" if factor is None else f" by {clip(repr(factor))}"
    shown = f"{clip(repr(kind))}{by}"
    raise ModelError(f"{path}: {name} is not the default: {shown}; scaled rotary embeddings are not there")


def overridden(content: Mapping[str, Any], override: Mapping[str, Any], members: Iterable[str]) -> dict[str, Any]:
    """`content` with members said by the user; ModelError for one that there is not."""
    if odd := [name for name in override if name not in set(members)]:
        raise ModelError(f"nothing is called {clip(repr(odd[0]))} here; overridden can be {', '.join(members)}")
    return dict(content) | dict(override)
