"""Runs SCons for each line of JSON on standard input, in a copy of this process, and prints its exit code.

The libraries that builds import take half of a short build's time: they are here already. bdforge itself is forgotten
again, so that each build imports that of its own tree.
"""

import json
import os
import sys

import SCons.Script

import bdforge.array.images.image_build
import bdforge.operators
import bdforge.runtime.toolchain.doctor  # noqa: F401

for name in [name for name in sys.modules if name.partition(".")[0] in ("bdforge", "bd_patterns")]:
    del sys.modules[name]

for line in sys.stdin:
    asked = json.loads(line)
    if not (child := os.fork()):
        for number, file in enumerate(("/dev/null", asked["out"], asked["err"])):
            os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), number)
        os.chdir(asked["tree"])
        os.environ.clear()
        os.environ.update(asked["environ"])
        sys.path[0], sys.argv = asked["tree"], ["scons", "-Q", *asked["words"]]
        sys.modules["SCons.Script.SConscript"].launch_dir = asked["tree"]  # type: ignore[attr-defined]
        SCons.Script.main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
