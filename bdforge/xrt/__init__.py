"""AMD's XRT: the machine below it, where it is installed for compiling, and a copy of it for tests without root."""

from bdforge.xrt.apt import XrtDevelopment, find_development
from bdforge.xrt.machine import Finding, first_missing
from bdforge.xrt.packages import FetchError, XrtPackages, fetch_packages

__all__ = [
    "FetchError", "Finding", "XrtDevelopment", "XrtPackages", "fetch_packages", "find_development", "first_missing",
]  # fmt: skip
