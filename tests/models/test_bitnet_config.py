"""What a BitNet's configuration may hold: the ends of every number, defaults, and what files say by other names."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bdforge.models import ModelError
from bdforge.models.bitnet.model_config import BitNetConfig, from_json, from_metadata
from bdforge.models.weights import ARRAY_VALUE

LEAST = {
    "hidden_size": 12, "intermediate_size": 10, "num_hidden_layers": 1, "num_attention_heads": 3,
    "num_key_value_heads": 1, "vocab_size": 2, "head_dim": 4,
}  # fmt: skip
TINY = 5e-324  # the least float above 0
LIMITS: dict[str, tuple[list[Any], list[Any]]] = {
    "hidden_size": ([1, 1 << 20], [0, (1 << 20) + 1]),
    "intermediate_size": ([1, 1 << 20], [0, (1 << 20) + 1]),
    "num_hidden_layers": ([1, 1024], [0, 1025]),
    "num_attention_heads": ([1, 1 << 20], [0, (1 << 20) + 1]),
    "num_key_value_heads": ([1, 3], [0, 2, 6]),  # which must divide the query heads
    "vocab_size": ([2, 1 << 24], [1, (1 << 24) + 1]),
    "head_dim": ([2, 1 << 20], [1, 3, (1 << 20) + 2]),
    "rms_norm_eps": ([TINY, 1e300], [0.0, -TINY, float("inf"), float("nan")]),
    "rope_theta": ([TINY, 1e300], [0.0, -TINY, float("inf"), float("nan")]),
    "max_position_embeddings": ([1, 1 << 20], [0, (1 << 20) + 1]),
    "hidden_act": (["relu2", "silu"], ["relu", ""]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_configurations_ends_are_taken_and_what_is_next_is_refused(name: str):
    taken, refused = LIMITS[name]
    for value in taken:
        assert getattr(BitNetConfig.model_validate(LEAST | {name: value}), name) == value
    for value in refused:
        with pytest.raises(ValidationError):
            pytest.fail(f"{name} = {value}: {BitNetConfig.model_validate(LEAST | {name: value})}")


def test_defaults_are_those_of_bitnet_2b():
    found = BitNetConfig.model_validate(LEAST).model_dump()
    assert {name: value for name, value in found.items() if name not in LEAST} == {
        "rms_norm_eps": 1e-5, "rope_theta": 500_000.0, "max_position_embeddings": 4096, "hidden_act": "relu2",
        "eos": (), "divides": False, "tie_word_embeddings": None, "unknown": (),
    }  # fmt: skip
    facts = BitNetConfig.model_validate(LEAST | {"head_dim": 6, "num_attention_heads": 4, "num_key_value_heads": 2})
    assert (facts.query_size, facts.key_size) == (24, 12)


@pytest.mark.parametrize(
    ("members", "size"),
    [
        ({}, 4), ({"head_dim": None}, 4), ({"head_dim": 0}, 4), ({"head_dim": 8}, 8), ({"hidden_size": 13}, None),
        ({"hidden_size": 9}, None), ({"num_attention_heads": 0}, None), ({"num_attention_heads": 6}, 2),
    ],
)  # fmt: skip
def test_heads_share_the_hidden_size_where_nothing_says_theirs(members: dict, size: int | None):
    content = {name: value for name, value in LEAST.items() if name != "head_dim"} | members
    if size is not None:
        assert BitNetConfig.model_validate(content).head_dim == size
        return
    with pytest.raises(ValidationError):
        pytest.fail(f"{members}: {BitNetConfig.model_validate(content)}")


QUANTISED = {"quantization_config": {"quant_method": "bitnet", "linear_class": "autobitlinear"}}


def read(folder: Path, members: dict, **override: Any) -> BitNetConfig:
    file = folder / "config.json"
    file.write_text(json.dumps({"model_type": "bitnet"} | LEAST | QUANTISED | members))
    return from_json(file, override)


@pytest.mark.parametrize(
    ("members", "name", "value"),
    [
        ({}, "eos", ()), ({"eos_token_id": None}, "eos", ()), ({"eos_token_id": 0}, "eos", (0,)),
        ({"eos_token_id": [1, 3]}, "eos", (1, 3)), ({"rope_theta": 7.0}, "rope_theta", 7.0),
        ({"rope_parameters": {"rope_theta": 9.0}}, "rope_theta", 9.0),
        ({"rope_theta": 7.0, "rope_parameters": {"rope_type": "default", "rope_theta": 9.0}}, "rope_theta", 9.0),
        ({"rope_scaling": None}, "rope_theta", 500_000.0), ({"rope_scaling": {"rope_type": "default"}}, "eos", ()),
        ({"rope_scaling": {"rope_type": "default", "hidden_size": 5}}, "hidden_size", 12),
        ({"quantization_config": {"linear_class": "bitlinear"}}, "divides", True),
        ({"quantization_config": {"linear_class": "autobitlinear"}}, "divides", False),
        ({"quantization_config": {"quant_method": "bitnet"}}, "divides", True),  # which is bitlinear
        ({"quantization_config": {"linear_class": None, "use_rms_norm": False}}, "divides", True),
        ({"hidden_act": "silu"}, "hidden_act", "silu"), ({"torch_dtype": "bfloat16"}, "head_dim", 4),
        ({"attention_bias": False, "partial_rotary_factor": 1.0, "sliding_window": None}, "unknown", ()),
        ({"rope_scaling": {"type": "linear", "factor": 1.0}}, "unknown", ()),
        ({"tie_word_embeddings": False}, "tie_word_embeddings", False),
        ({"num_key_value_heads": None}, "num_key_value_heads", 3),
        ({"use_cache": True, "_name_or_path": "x", "attention_dropout": 0.5, "pad_token_id": 3}, "unknown", ()),
        ({"residual_scale": 2, "odd": None, "odder": [], "lora_alpha": 4}, "unknown", ("residual_scale", "lora_alpha")),
        ({"quantization_config": {"bits": 2}, "rope_parameters": {"low": 1}}, "unknown",
         ("rope_parameters.low", "quantization_config.bits")),
    ],
)  # fmt: skip
def test_members_of_a_config_json_are_read(tmp_path: Path, members: dict, name: str, value: Any):
    assert getattr(read(tmp_path, members), name) == value


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"model_type": None}, "model_type is None, expected 'bitnet'"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters is not the default: 'yarn'; scaled rotary"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling is not the default: 'linear' by 2.0"),
        ({"rope_scaling": {"type": "dynamic"}}, "rope_scaling is not the default"),
        ({"rope_parameters": {"full_attention": {}, "rope_type": "llama3"}}, "rope_parameters is not the default"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "rope_parameters.partial_rotary_factor is not 1"),
        ({"rope_scaling": [3]}, "rope_scaling is .3., expected an object"),
        ({"quantization_config": [1]}, "quantization_config is .1., expected an object"),
        ({"quantization_config": None}, "without quantization_config nothing says whether weight_scale multiplies"),
        ({"quantization_config": {"linear_class": "linear"}}, "linear_class 'linear' is not one of bitlinear, auto"),
        ({"quantization_config": {"linear_class": [3]}}, "linear_class .3. is not one of bitlinear, auto"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config.quant_method is 'gptq'; only"),
        ({"quantization_config": {"use_rms_norm": True}}, "quantization_config.use_rms_norm is True; only False"),
        ({"quantization_config": {"quantization_mode": "online"}}, "quantization_config.quantization_mode is 'online'"),
        *(
            ({name: value}, f"{name} is {value}; only ")
            for name, value in (
                ("attention_bias", True),
                ("mlp_bias", True),
                ("partial_rotary_factor", 0.5),
                ("sliding_window", 4096),
                ("residual_multiplier", 0.22),
                ("final_logit_softcapping", 30.0),
                ("num_local_experts", 8),
            )
        ),
        ({"tie_word_embeddings": "perhaps"}, "tie_word_embeddings: Input should be a valid boolean"),
        ({"eos_token_id": "x"}, r"eos\.0: Input should be a valid integer.*, got 'x'"),
        ({"rope_theta": 0}, "rope_theta: Input should be greater than 0, got 0"),
        ({"num_key_value_heads": 2}, "configuration: 3 query heads do not share 2 key and value heads$"),
    ],
)
def test_a_config_json_of_another_kind_is_refused_by_its_member(tmp_path: Path, members: dict, said: str):
    with pytest.raises(ModelError, match=rf"config\.json: {said}"):
        pytest.fail(f"{members}: {read(tmp_path, members)}")


@pytest.mark.parametrize(
    ("beside", "ends"),
    [
        ({"eos_token_id": [5, 6]}, (5, 6)), ({"eos_token_id": 7}, (7,)), ({"eos_token_id": None}, (3,)),
        ({"temperature": 0.5}, (3,)), ([4], "expected an object"), ({"eos_token_id": "x"}, r"eos\.0: Input should be"),
    ],
)  # fmt: skip
def test_a_generation_config_says_first_where_a_text_ends(tmp_path: Path, beside: Any, ends: Any):
    (tmp_path / "generation_config.json").write_text(json.dumps(beside))
    if isinstance(ends, tuple):
        assert read(tmp_path, {"eos_token_id": 3}).eos == ends
        return
    with pytest.raises(ModelError, match=ends):
        pytest.fail(f"{beside}: {read(tmp_path, {'eos_token_id': 3})}")


def test_members_may_be_said_instead_of_the_file(tmp_path: Path):
    """An override wins over the file, gives what the file lacks, and is judged as the file is."""
    wrong = {"hidden_act": "gelu", "quantization_config": None}
    found = read(tmp_path, wrong, hidden_act="silu", divides="false", rope_theta="10000", eos=[3])
    assert (found.hidden_act, found.divides, found.rope_theta, found.eos) == ("silu", False, 10_000.0, (3,))
    for override, said in (
        ({"hidden_act": "gelu"}, "hidden_act 'gelu' is not one of relu2, silu"), ({"act": "silu"}, "nothing is called"),
        ({"unknown": "x"}, "nothing is called 'unknown'"), ({"rope_theta": "much"}, "rope_theta: Input should be"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said):
            pytest.fail(f"{override}: {read(tmp_path, {}, **override)}")
    assert of_gguf(**{"bitnet.hidden_activation": "silu"}).hidden_act == "silu"
    other = from_metadata(Path("a.gguf"), {"general.architecture": "bitnet"} | GGUF, 7, {"hidden_act": "silu"})
    assert other.hidden_act == "silu"


@pytest.mark.parametrize("text", ["[]", "3", "null"])
def test_a_config_json_is_an_object(tmp_path: Path, text: str):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelError, match="model_type is None, expected 'bitnet'; this is another kind of model"):
        from_json(tmp_path / "config.json")


METADATA = {
    "embedding_length": 12, "feed_forward_length": 10, "block_count": 2, "attention.head_count": 4,
    "attention.head_count_kv": 2, "attention.key_length": 6, "attention.layer_norm_rms_epsilon": 0.25,
    "rope.freq_base": 8.0, "context_length": 9,
}  # fmt: skip


GGUF = {f"bitnet.{name}": value for name, value in METADATA.items()}


def of_gguf(kind: str = "bitnet", **more: Any) -> BitNetConfig:
    members = {f"{kind}.{name}": value for name, value in METADATA.items()}
    return from_metadata(Path("a.gguf"), {"general.architecture": kind} | members | more, 7)


@pytest.mark.parametrize("kind", ["bitnet", "bitnet-b1.58", "bitnet-25"])
def test_metadata_of_a_gguf_say_every_member(kind: str):
    found = of_gguf(
        kind, **{f"tokenizer.ggml.{end}_token_id": token for token, end in enumerate(("eos", "eot", "eom"))}
    )
    assert found.model_dump() == {
        "hidden_size": 12, "intermediate_size": 10, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 7, "head_dim": 6, "rms_norm_eps": 0.25, "rope_theta": 8.0,
        "max_position_embeddings": 9, "hidden_act": "relu2", "eos": (0, 1, 2), "divides": False,
        "tie_word_embeddings": None, "unknown": (),
    }  # fmt: skip
    assert of_gguf(kind).eos == ()
    assert str(found) == "BitNet of 2 layers, 12 / 10, 4 heads on 2, vocabulary 7"


@pytest.mark.parametrize("said", [1e-5, 1e-6, 1e-12, 0.25, 3.0])
def test_floats_of_a_gguf_are_the_decimals_that_they_stand_for(said: float):
    """Files have them in float32; specs of designs and config.json say 1e-5."""
    (stored,) = struct.unpack("<f", struct.pack("<f", said))
    for value, expected in ((stored, said), (said, said), (1 / 3, 1 / 3)):
        more: dict[str, Any] = {"bitnet.attention.layer_norm_rms_epsilon": value}
        assert of_gguf(**more).rms_norm_eps == expected


@pytest.mark.parametrize(
    ("more", "taken"),
    [
        ({}, True), ({"bitnet.rope.scaling.type": "none"}, True), ({"bitnet.rope.scaling.type": "linear"}, True),
        ({"bitnet.rope.scaling.type": "none", "bitnet.rope.scaling.factor": 2.0}, True),
        ({"bitnet.rope.scale_linear": 4.0}, False), ({"bitnet.rope.scale_linear": 1.0}, True),
        ({"bitnet.rope.scaling.type": "yarn", "bitnet.rope.scaling.factor": 1.0}, False),
        ({"bitnet.rope.scaling.type": "linear", "bitnet.rope.scaling.factor": 1.0}, True),
        ({"bitnet.rope.scaling.type": "linear", "bitnet.rope.scaling.factor": 2.0}, False),
        ({"bitnet.rope.scaling.factor": 2.0}, False), ({"general.architecture": "bitnets"}, False),
        ({"general.architecture": None}, False),
    ],
)  # fmt: skip
def test_scaled_positions_and_other_kinds_of_gguf_are_refused(more: dict, taken: bool):
    if taken:
        assert of_gguf(**more).head_dim == 6
        return
    with pytest.raises(ModelError, match=r"a\.gguf: (bitnet.rope.scaling is not the default|general.architecture is)"):
        pytest.fail(f"{more}: {of_gguf(**more)}")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"bitnet.hidden_activation": "gelu"}, "configuration: hidden_act 'gelu' is not one of relu2, silu"),
        ({"bitnet.attention.head_count_kv": ARRAY_VALUE}, "bitnet.attention.head_count_kv is an array"),
        ({"bitnet.rope.dimension_count": 4}, "bitnet.rope.dimension_count is 4, only 6 is computed here"),
        ({"bitnet.attention.value_length": 8}, "bitnet.attention.value_length is 8, only 6 is computed here"),
        ({"bitnet.vocab_size": 8}, "bitnet.vocab_size is 8, only 7 is computed here"),
        ({"bitnet.attention.sliding_window": 512}, "attention.sliding_window is 512; only False or 0 is computed here"),
        ({"bitnet.expert_count": 4}, "expert_count is 4; only"),
        ({"bitnet.logit_scale": 0.5}, "logit_scale is 0.5"),
        ({"bitnet.attention.causal": False}, "attention.causal is False; only True is computed here"),
        ({"general.type": "adapter"}, "general.type is 'adapter'; only 'model' is computed here"),
        ({"split.count": 3}, "split.count is 3; only 0 or 1 is computed here"),
    ],
)
def test_metadata_that_would_change_the_function_are_refused(more: dict, said: str):
    with pytest.raises(ModelError, match=rf"a\.gguf: {said}"):
        pytest.fail(f"{more}: {of_gguf(**more)}")


def test_missing_metadata_mean_what_llama_cpp_takes_and_strange_ones_are_known_by_name():
    missing = ("freq_base", "head_count_kv", "key_length")
    without = {key: value for key, value in GGUF.items() if not key.endswith(missing)}
    odd = {"general.name": "x", "tokenizer.ggml.tokens": ARRAY_VALUE, "bitnet.depth_scale": 2.0, "bitnet.odd": False}
    odd |= {"bitnet.embedding_length": 24}
    found = from_metadata(Path("a.gguf"), {"general.architecture": "bitnet"} | without | odd, 7)
    assert (found.rope_theta, found.num_key_value_heads, found.unknown) == (10_000.0, 4, ("depth_scale",))
    assert found.head_dim == 24 // 4
    fitting: dict[str, Any] = {"rope.dimension_count": 6, "attention.value_length": 6, "vocab_size": 7}
    assert of_gguf(**{f"bitnet.{name}": value for name, value in fitting.items()}).unknown == ()
