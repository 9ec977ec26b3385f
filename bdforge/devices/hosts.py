"""The processors around the arrays: cores, memory and power, by product. Nothing here was measured for this project."""

from collections.abc import Mapping
from dataclasses import dataclass

from bdforge.devices.topology import DeviceError


@dataclass(frozen=True, slots=True)
class Host:
    """A processor with an array in it.

    `cores` that copy; `dram_gb_s` of the whole memory bus, which cores and array share; `watts`, lowest and highest,
    that the whole package takes under load, with `power_source`.
    """

    name: str
    cores: int
    dram_gb_s: float
    watts: tuple[float, float]
    power_source: str


_CTDP = "configurable TDP by AMD's product page"
HOSTS: Mapping[str, Host] = {
    "phoenix": Host("Ryzen 9 7940HS", 8, 120, (35, 54), _CTDP),
    "hawk_point": Host("Ryzen 7 8700G", 8, 83.2, (45, 65), _CTDP),
    "strix": Host("Ryzen AI 9 HX 370", 12, 120, (15, 54), _CTDP),
    "krackan": Host("Ryzen AI 7 350", 8, 128, (15, 54), _CTDP),
    "strix_halo": Host(
        "Ryzen AI Max+ 395", 16, 256, (76, 120), "76 W of the package with 8 threads and the NPU at work, measured by "
        "casselc/bitnet-xdna2-strix-halo; 120 W the highest configurable TDP",
    ),
}  # fmt: skip
"""By product. Cores, buses (LPDDR5X-7500 or -8000 of 128 or 256 bits; 8700G: DDR5-5200) and TDPs are as AMD's product
pages have them, written down without a second look; of these only Phoenix' 120 GB/s stands in another source, too."""

PERMUTED_GB_S = 4.0
"""10^9 bytes of a tensor that one processor permutes in a second, read and written once: an assumption. Transposing
copies of matrices were measured at 3.3 to 7.8 (`bdforge/perf/data/host_copies.csv`)."""


def host_named(product: str) -> Host:
    """The processor of a product; DeviceError lists them."""
    if product not in HOSTS:
        raise DeviceError(f"no power or memory of {product!r} is published; there is {', '.join(HOSTS)}")
    return HOSTS[product]
