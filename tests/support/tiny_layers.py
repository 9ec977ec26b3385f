"""The compositions of examples/layer for a tiny BitNet, of designs whose cores run machine code."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bdforge.common.files import read_toml
from bdforge.devices import device_named
from bdforge.operators import plan, spec_from
from bdforge.runtime import BuiltDesign
from bdforge.runtime.composition import CompositionFault, CompositionForm, compose
from support.built_designs import ROOT, spec_content
from support.coded_folders import coded_plan
from support.once import locked, shared_folder

PROMPT, TOKEN, HEAD = "bitnet", "bitnet_token", "bitnet_head"
_TYPES = ("int8", "int2", "bf16", "int32")
_END = {"array": {"rows": 1, "columns": 2, "from_end": True}}
_CODES = {"function": "rmsnorm", "codes": True, "epsilon": 1e-5}
_SUM = {"residual": True, "residual_scaled": True}
_BIG = {"hidden": 2560, "qkv": 3840, "ffn": 6912}
LOGITS = 64
"""Of which a vocabulary is a multiple: rows of the head's last step."""


def _core(column: int, row: int) -> dict[str, Any]:
    return {"array": {"rows": 1, "columns": 1, "first_column": column, "first_row": row, "from_end": True}}


@dataclass(frozen=True)
class TinyLayers:
    """Sizes of a model, by default the least that ggml's ternary files hold. `designs` are the specs of a composition's
    designs by name, `form` is the composition.
    """

    hidden: int = 256
    ffn: int = 512
    heads: int = 4
    kv: int = 2
    dim: int = 64

    def designs(self, name: str) -> dict[str, dict[str, Any]]:
        """Those of PROMPT, TOKEN or HEAD."""
        rows = {"kind": "rows", "width": self.hidden} | _CODES
        rope = {
            "kind": "rope", "heads": self.heads + 2 * self.kv, "head_dim": self.dim, "scaled": True, "apart": True,
            "outputs": [{"name": "Q", "heads": self.heads}, {"name": "K", "heads": self.kv},
                        {"name": "V", "heads": self.kv, "turned": False}],
        }  # fmt: skip
        attention = {
            "kind": "attention", "heads": self.heads, "kv_heads": self.kv, "head_dim": self.dim,
            "array": {"rows": 1, "columns": 2},
        }  # fmt: skip
        if name == PROMPT:
            return {
                "bitnet_norm": rows | _END,
                "gemm_i8_i2_raw": spec_content(16, 64, 32, types=_TYPES, rows=2, columns=2),
                "bitnet_rope": rope | _END,
                "attention_bf16_bitnet": attention,
                "bitnet_residual_norm": rows | _SUM | _END,
                "gemm_i8_i2_gate": spec_content(
                    16, 64, 32, types=_TYPES, rows=2, columns=2, epilogue={"gate": "relu2"}
                ),
                "bitnet_norm_6912": rows | {"width": self.ffn} | _END,
            }
        product = {"kind": "gemv", "tile": {"m": 1, "k": 64, "n": 32}, "array": {"rows": 1, "columns": 2}}
        residual = rows | _SUM | {"apart": True} | _core(0, 1)
        if name == HEAD:
            return {
                "token_residual_norm": residual,
                "head_product": product | {"types": {"a": "int8", "w": "int8", "c": "int32"}},
                "head_scale": {
                    "kind": "convert", "function": "scale_int32", "width": LOGITS,
                    "array": {"rows": 1, "columns": 2, "first_row": 2, "from_end": True},
                },
            }  # fmt: skip
        return {
            "token_residual_norm": residual,
            "token_product": product | {"types": {"a": "int8", "w": "int2", "c": "bf16"}},
            "token_rope": rope | _core(1, 1),
            "token_attention": attention | {
                "tile": {"queries": 16, "keys": 16}, "few_queries": True,
                "array": {"rows": 1, "first_column": 1, "first_row": 2, "from_end": True},
            },
            "token_norm": rows | _core(2, 1),
            "token_gate": {"kind": "elementwise", "function": "relu2_gate", "type": "bf16", "tile": 64} | _core(0, 2),
            "token_norm_6912": rows | {"width": self.ffn} | _core(2, 0),
        }  # fmt: skip

    def form(self, name: str) -> dict[str, Any]:
        """The example's composition with these sizes."""
        content = read_toml(ROOT / "examples" / "layer" / f"{name}.toml", CompositionFault)
        sizes = {"hidden": self.hidden, "qkv": (self.heads + 2 * self.kv) * self.dim, "ffn": self.ffn}
        own = {big * times: sizes[which] * times for which, big in _BIG.items() for times in (1, 2)}
        for step in content["steps"]:
            step["sizes"] = {name: own.get(size, size) for name, size in step["sizes"].items()}
            if step["design"] == "head_scale":
                step["sizes"]["rows"] = f"vocabulary // {LOGITS}"
        if "up" in content.get("views", {}):
            content["views"]["up"]["first"] = self.ffn
        return content

    def composed(self, folder: Path, name: str, **changes: Any) -> Path:
        """The folder of the built composition, below this one, with its designs, and what is loaded, beside it."""
        form = CompositionForm.model_validate(self.form(name) | changes)
        if form.loaded and not (folder / form.loaded).is_dir():
            self.composed(folder, form.loaded)
        for design, content in self.designs(name).items():
            if not (folder / design).is_dir():
                coded_plan(folder / design, plan(spec_from(content, design), device_named("strix_halo")))
        compose(form, name, lambda design: BuiltDesign.load(folder / design)).write(folder / name)
        return folder / name

    def composed_once(self, folders: pytest.TempPathFactory, name: str) -> Path:
        """The same, made once for a run of the tests, none of which changes it: to make machine code takes seconds.
        Compositions of a model lie beside each other.
        """
        home = shared_folder(folders) / "-".join(map(str, (self.hidden, self.ffn, self.heads, self.kv, self.dim)))
        with locked(home.with_suffix(".lock")):
            return home / name if (home / name).is_dir() else self.composed(home, name)
