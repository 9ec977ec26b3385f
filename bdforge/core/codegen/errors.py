"""What can be wrong when machine code is made."""

from bdforge.common.messages import InputError


class CodegenError(InputError):
    """A core program or kernel that cannot become machine code here; the message says where, why and what to do."""
