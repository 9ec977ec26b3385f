"""AMD's XRT: where it is installed for compiling against, and a private copy of it for tests without root."""

from bdforge.xrt.development import XrtDevelopment, find_development
from bdforge.xrt.packages import FetchError, XrtPackages, fetch_packages

__all__ = ["FetchError", "XrtDevelopment", "XrtPackages", "fetch_packages", "find_development"]
