"""Machine code of AIE2P (XDNA2) and AIE2 (XDNA) cores: bundles, registers, timing; text and checks build on it.

    isa = load("aie2p")                      # or a Generation of bdforge.devices
    bundle = isa.decode(data, offset)        # Bundle: .size, .format, .slots; DecodeError names the unknown bits
    for instruction in bundle:               # those that are no NOPs; bundle.slots has all, in the format's order
        instruction.form.name                # "VMAC_vmul_cm_core_X_X"
        instruction.form.slot                # lda, ldb, st, alu, mv, lng (alu and mv in one), vec, nop
        instruction.operands                 # {"dst": "dm0", "acc1": "dm0", "s1": "x1", "s2": "x2", "acc": "r3"}
        instruction["imm"]                   # immediates are scaled: bytes of an offset, the address of a branch
    bytes(bundle)                            # the same bytes again
    isa.encode([isa.instruction("MOVXM", dst="p0", i=0x70400), ...])    # the smallest bundle that holds them

What an executor needs: `effects(instruction)` has the registers that are read and written with their stages
(`bdforge.core.isa.forms` says what a read sees), `form.delay_slots` the bundles after a branch, and `leaves` the
parts of composed registers. All slots of a bundle read before any of them writes.
"""

from bdforge.core.isa.bundle_codec import Isa, load
from bdforge.core.isa.core_registers import RegisterLeaf, leaves
from bdforge.core.isa.effects import RegisterAccess, effects, memory_turn
from bdforge.core.isa.errors import DecodeError, EncodeError, HazardError, IsaError
from bdforge.core.isa.forms import Bundle, Form, Instruction
from bdforge.core.isa.isa_tables import GENERATIONS

__all__ = [
    "GENERATIONS",
    "Bundle",
    "DecodeError",
    "EncodeError",
    "Form",
    "HazardError",
    "Instruction",
    "Isa",
    "IsaError",
    "RegisterAccess",
    "RegisterLeaf",
    "effects",
    "leaves",
    "load",
    "memory_turn",
]
