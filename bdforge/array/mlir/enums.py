"""Enumerations of the aie dialect: their words in the text, their codes in the generic form.

Codes: mlir-aie 5ff2ab97, AIEAttrs.td.
"""

from bdforge.devices.coded_words import CodedWord


class Direction(CodedWord):
    """Stream to memory, or memory to stream."""

    S2MM = "S2MM", 0
    MM2S = "MM2S", 1


class LockAction(CodedWord):
    """What `aie.use_lock` does."""

    ACQUIRE = "Acquire", 0
    RELEASE = "Release", 1
    ACQUIRE_GREATER_EQUAL = "AcquireGreaterEqual", 2


class Blocking(CodedWord):
    """Whether a lock operation waits."""

    NON_BLOCKING = "NonBlocking", 0
    BLOCKING = "Blocking", 1


class DeviceName(CodedWord):
    """Devices that `aie.device` takes."""

    NPU1 = "npu1", 4
    NPU1_1COL = "npu1_1col", 5
    NPU1_2COL = "npu1_2col", 6
    NPU1_3COL = "npu1_3col", 7
    NPU2 = "npu2", 8
    NPU2_1COL = "npu2_1col", 9
    NPU2_2COL = "npu2_2col", 10
    NPU2_3COL = "npu2_3col", 11
    NPU2_4COL = "npu2_4col", 12
    NPU2_5COL = "npu2_5col", 13
    NPU2_6COL = "npu2_6col", 14
    NPU2_7COL = "npu2_7col", 15
