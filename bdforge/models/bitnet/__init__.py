"""BitNet b1.58, from Hugging Face's packed safetensors or GGUF to tokens.

    products = Products.of("build/strix_halo/gemm_i8_i2_bf16")
    model = BitNet.load("model.gguf", products)
    for token in generate(model, prompt_ids, Sampler(), 32): ...

Linear layers run on one array configuration with their scales in its epilogue, the rest in numpy; `products.ledger`
says what ran where, why, and how long.
"""

from bdforge.models.bitnet.bitnet_model import BitNet
from bdforge.models.bitnet.cache import Cache
from bdforge.models.bitnet.checkpoint import Checkpoint
from bdforge.models.bitnet.model_config import BitNetConfig

__all__ = ["BitNet", "BitNetConfig", "Cache", "Checkpoint"]
