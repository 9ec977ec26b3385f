"""stock_pyxrt.py DESIGN.xclbin FOLDER: a program that knows pyxrt and nothing of bdforge.

Runs FOLDER's words.bin on the operands 0.bin, 1.bin and 2.bin, by a call, by a run that is started again and by a list
of runs that share the words, and writes 2.bin back. Then a list whose second run has no words: prints how its runs end.
"""

import sys
from pathlib import Path
from typing import Any

import pyxrt  # pyrefly: ignore[missing-import]


def made(context: Any, kernel: Any, commands: list[tuple]) -> tuple[Any, list[Any]]:
    """A list of runs with these arguments; its `wait` with a time-out takes a type that Python has no way to make."""
    runlist, runs = pyxrt.runlist(context), [pyxrt.run(kernel) for _ in commands]
    for run, arguments in zip(runs, commands, strict=True):
        for index, argument in enumerate(arguments):
            run.set_arg(index, argument)
        runlist.add(run)
    return runlist, runs


def main(xclbin: str, folder: Path) -> None:
    device = pyxrt.device(0)
    context = pyxrt.hw_context(device, device.register_xclbin(pyxrt.xclbin(xclbin)))
    kernel = pyxrt.kernel(context, "MLIR_AIE")
    contents = [(folder / name).read_bytes() for name in ("words.bin", "0.bin", "1.bin", "2.bin")]
    kinds = [pyxrt.bo.cacheable, *[pyxrt.bo.host_only] * 3]
    groups = [kernel.group_id(argument) for argument in (1, 3, 4, 5)]
    buffers = [pyxrt.bo(device, len(c), kind, g) for c, kind, g in zip(contents, kinds, groups, strict=True)]
    for buffer, content in zip(buffers, contents, strict=True):
        buffer.write(content, 0)
        buffer.sync(pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE)
    words, *operands = buffers
    run = kernel(3, words, len(contents[0]) // 4, *operands)
    for again in (True, False):
        if (state := run.wait(60_000)) != pyxrt.ert_cmd_state.ERT_CMD_STATE_COMPLETED:
            raise SystemExit(f"ended with {state}")
        if again:
            run.start()
    runlist, _runs = made(context, kernel, [(3, words, len(contents[0]) // 4, *operands)] * 3)
    runlist.execute()
    runlist.wait()
    operands[2].sync(pyxrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE)
    (folder / "2.bin").write_bytes(operands[2].map())
    no_words = pyxrt.bo(device, len(contents[0]), pyxrt.bo.cacheable, groups[0])
    streams = (words, no_words, words)
    failing, runs = made(context, kernel, [(3, stream, len(contents[0]) // 4, *operands) for stream in streams])
    failing.execute()
    try:
        failing.wait()
    except RuntimeError as error:
        print(" ".join(str(error).split()), *[run.state().name for run in runs])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
