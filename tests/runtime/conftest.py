"""A built design with an xclbin, and a made-up pyxrt that runs it."""

import hashlib
import json
import shutil
import sys
import types
from pathlib import Path

import pytest
from made_up_pyxrt import Buffer, Kernel, Npu, Run, Runlist, State, image

from bdforge.operators import manifest


@pytest.fixture
def xrt_design(small, tmp_path) -> Path:
    """Folder of the small design with an xclbin, as a whole build leaves it."""
    folder = tmp_path / "small"
    shutil.copytree(small.folder, folder)
    (folder / "small.xclbin").write_bytes(b"xclbin2")
    files = {"mlir": small.mlir_file, "host_kernels": small.kernel_library, "xclbin": folder / "small.xclbin"}
    hashes = {role: hashlib.sha256(path.read_bytes()).hexdigest() for role, path in files.items()}
    (folder / "manifest.json").write_text(json.dumps(manifest(small.plan, small.plan.spec.problems, hashes)))
    return folder


@pytest.fixture
def pyxrt(small, monkeypatch):
    module = types.ModuleType("pyxrt")
    directions = types.SimpleNamespace(XCL_BO_SYNC_BO_TO_DEVICE="to device", XCL_BO_SYNC_BO_FROM_DEVICE="from device")
    vars(module).update(
        device=Npu, xclbin=image, hw_context=lambda device, uuid: None, kernel=Kernel, bo=Buffer,
        run=Run, runlist=Runlist, lists=Runlist.lists,
        ert_cmd_state=State, xclBOSyncDirection=directions, xrt_info_device=types.SimpleNamespace(name="name"),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pyxrt", module)
    monkeypatch.setattr(Kernel, "design", small)
    monkeypatch.setattr(Npu, "registered", [])
    Runlist.lists.clear()
    return module
