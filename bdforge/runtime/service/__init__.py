"""The emulated array as a device for other processes: hosts in C++ load designs and run instruction words on it.

A tree of processes, each of which ends when the one above does:

- the *server* (`server`) takes clients in, and starts a process for each design that they ask for;
- a *holder* (`holder`) has one design on the array, ready to run, and copies itself for each client (fork);
- a *runner* (`runner`) is such a copy: one client's array, buffers and runs. What a kernel does to its process, and how
  long it runs, is no other client's affair; it ends with its client.

`wire` has what they say to each other, `software_npu` starts a server for programs that get its name.
"""

from bdforge.runtime.service.server import serve
from bdforge.runtime.service.software_npu import SOCKET_VARIABLE, serving

__all__ = ["SOCKET_VARIABLE", "serve", "serving"]
