"""AMD's XRT: the machine below it, and where it is installed for compiling."""

from bdforge.runtime.npu.development import XrtDevelopment, find_development
from bdforge.runtime.npu.machine import Finding, first_missing

__all__ = ["Finding", "XrtDevelopment", "find_development", "first_missing"]
