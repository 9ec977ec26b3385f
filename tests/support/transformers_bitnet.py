"""What `transformers` makes of a tiny BitNet: records `transformers.npz`, for machines without a gigabyte of packages.

python tests/support/transformers_bitnet.py     (with torch 2.13, transformers 5.23 and accelerate)
"""

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
RECORDED = ROOT / "tests" / "models" / "transformers.npz"
IDS = [3, 17, 17, 0, 58, 9, 41, 5, 22]
SEED = 7


def tiny():
    """Sizes that no array likes: 100 and 52 wide, 5 heads on 1 of 20 each."""
    from tools.bitnet.content import config, random_content

    return random_content(config(100, 52, 2, 5, 1, 20, 60, 64), SEED)


def run(folder: Path, ids: list[int]) -> dict[str, np.ndarray]:
    """Logits of all positions in float32, and int8 codes of each linear layer in order (`codes_0`, ...)."""
    torch = import_module("torch")
    model_class = import_module("transformers").BitNetForCausalLM
    linear_class = import_module("transformers.integrations.bitnet").AutoBitLinear

    torch._dynamo.config.disable = True  # else its packing functions start a C++ compiler
    model = model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    found: dict[str, np.ndarray] = {}

    def keep(_, inputs) -> None:
        x = inputs[0][0]
        steps = 127 / x.abs().max(dim=-1, keepdim=True).values.clamp(min=1e-5)
        found[f"codes_{len(found)}"] = (x * steps).round().clamp(-128, 127).to(torch.int8).numpy()

    for module in model.modules():
        if isinstance(module, linear_class):
            module.register_forward_pre_hook(keep)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    return found | {"logits": logits.float().numpy()}


if __name__ == "__main__":
    from tools.bitnet.write import write_hugging_face

    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = run(write_hugging_face(Path(folder), tiny()), IDS)
        np.savez_compressed(RECORDED, **found)
