"""Recorded container files: made by bootgen, xclbinutil and aiebu, or by hand to the loader's rules."""

import base64
import json
import zlib
from pathlib import Path

_FILE = Path(__file__).parents[1] / "isa" / "data" / "images.json"
IMAGES: dict[str, bytes] = {
    name: zlib.decompress(base64.b64decode(text)) for name, text in json.loads(_FILE.read_text()).items()
}
"""Bytes by name: `core_elf_small`, `pdi_core`, `xclbin_small`, `full_elf_small`."""
