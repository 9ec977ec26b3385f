"""How products show themselves on the PCI bus and to XRT."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PciIdentity:
    """PCI device id and revision, and the name that the driver gives XRT."""

    device: int
    revision: int
    name: str


VENDOR = 0x1022  # AMD

IDENTITIES: Mapping[str, PciIdentity] = {
    "phoenix": PciIdentity(0x1502, 0x00, "NPU Phoenix"),
    "hawk_point": PciIdentity(0x1502, 0x00, "NPU Phoenix"),
    "strix": PciIdentity(0x17F0, 0x10, "NPU Strix"),
    "strix_halo": PciIdentity(0x17F0, 0x11, "NPU Strix Halo"),
    "krackan": PciIdentity(0x17F0, 0x20, "NPU Krackan 1"),
}
"""By product (DRV: the driver's table of ids and its `vbnv`)."""
