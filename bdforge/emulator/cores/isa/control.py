"""Where execution goes on: delay slots, calls, returns and the hardware loop. The same for both executors' oracle."""

from dataclasses import dataclass

from bdforge.isa.errors import ControlError
from bdforge.isa.flow import DELAY_SLOTS

_ALIGNMENT = 16  # of targets: 34,432 of 34,432 in real programs; others hang or corrupt
_ADDRESS_MASK = 0xFFFFF


@dataclass(slots=True)
class Control:
    """The address of the next bundle, and a branch whose delay slots are under way."""

    pc: int = 0
    target: int = 0
    slots_left: int = 0

    def branch(self, target: int, returns: bool) -> None:
        """A taken branch issues: the bundles of its delay slots still run. Only returns may lead anywhere."""
        target &= _ADDRESS_MASK
        if not returns and target % _ALIGNMENT:
            raise ControlError(f"a branch to {target:#x}, which is no multiple of {_ALIGNMENT}: cores hang there")
        self.target, self.slots_left = target, DELAY_SLOTS + 1

    def check_free(self) -> None:
        """ControlError in a delay slot, where no branch may be."""
        if self.slots_left:
            raise ControlError("a branch in a delay slot of another: no source tells where execution goes on")

    def advance(self, size_bytes: int, loop_start: int | None) -> None:
        """Past a bundle: to the branch's target after its slots, to the start of a loop that goes round, or on."""
        if self.slots_left:
            if loop_start is not None:
                raise ControlError(
                    "a hardware loop goes round in a delay slot: no source tells where execution goes on"
                )
            self.slots_left -= 1
            if not self.slots_left:
                self.pc = self.target
                return
        self.pc = self.pc + size_bytes if loop_start is None else loop_start
