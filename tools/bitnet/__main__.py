"""`python -m tools.bitnet OUT`: a random BitNet, as a folder of Hugging Face's or, where OUT ends in .gguf, as GGUF."""

import argparse
from pathlib import Path

from tools.bitnet.content import config, random_content
from tools.bitnet.write import KINDS, write_gguf, write_hugging_face


def main() -> None:
    """Write what is asked for."""
    options = argparse.ArgumentParser(prog="python -m tools.bitnet", description=__doc__)
    options.add_argument("out", type=Path)
    options.add_argument("--type", choices=KINDS, default="I2_S", help="of matrices in GGUF")
    options.add_argument("--architecture", default="bitnet-b1.58", help="in GGUF; stock llama.cpp reads bitnet")
    options.add_argument("--seed", type=int, default=1)
    sizes = {
        "hidden": 256, "ffn": 512, "layers": 2, "heads": 4, "kv-heads": 2, "head-dim": 64, "vocabulary": 300,
        "positions": 256,
    }  # fmt: skip
    for name, size in sizes.items():
        options.add_argument(f"--{name}", type=int, default=size)
    given = options.parse_args()
    chosen = {name.replace("-", "_"): getattr(given, name.replace("-", "_")) for name in sizes}
    model = random_content(config(**chosen), given.seed)
    if given.out.suffix == ".gguf":
        write_gguf(given.out, model, given.type, given.architecture)
    else:
        write_hugging_face(given.out, model)


if __name__ == "__main__":
    main()
