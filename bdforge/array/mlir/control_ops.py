"""Reconfiguration, and templates of tasks."""

from xdsl.dialects.builtin import IntegerAttr, SymbolRefAttr
from xdsl.irdl import AnyAttr, irdl_op_definition, opt_prop_def, prop_def, region_def, traits_def, var_operand_def
from xdsl.traits import NoTerminator

from bdforge.array.mlir.device_ops import DeviceOp, named
from bdforge.array.mlir.dma_ops import BdChainOp
from bdforge.array.mlir.fields import optional_text, text
from bdforge.array.mlir.operation import AieOperation, UInt8, UInt64, enclosing
from bdforge.array.mlir.task_ops import ChannelOp, TaskOp


@irdl_op_definition
class NpuPreemptOp(AieOperation):
    """A point where the controller may switch; no effect."""

    name = "aiex.npu.preempt"
    level = prop_def(UInt8)
    assembly_format = "attr-dict"


@irdl_op_definition
class NpuLoadPdiOp(AieOperation):
    """Load a device's configuration."""

    name = "aiex.npu.load_pdi"
    device_ref = optional_text(SymbolRefAttr)
    """Name of the device, if given."""
    id_attr = opt_prop_def(IntegerAttr, prop_name="id")
    size_attr = opt_prop_def(IntegerAttr, prop_name="size")
    address_attr = opt_prop_def(UInt64, prop_name="address")
    assembly_format = "attr-dict"


@irdl_op_definition
class ConfigureOp(AieOperation):
    """Load a device's configuration, then run the body."""

    name = "aiex.configure"
    symbol = text(SymbolRefAttr)
    """Name of the device."""
    body = region_def()
    traits = traits_def(NoTerminator())
    assembly_format = "$symbol $body attr-dict"


@irdl_op_definition
class RunOp(AieOperation):
    """Run a runtime sequence of the configured device."""

    name = "aiex.run"
    symbol = text(SymbolRefAttr, "runtime_sequence_symbol")
    """Name of the sequence."""
    args = var_operand_def(AnyAttr())
    assembly_format = "$runtime_sequence_symbol `(` $args `)` `:` `(` type($args) `)` attr-dict"


class StartBdChainOp(TaskOp):
    """Base of the operations that make a task from an aie.bd_chain and start it."""

    symbol = text(SymbolRefAttr)
    """Name of the aie.bd_chain."""

    @property
    def template(self) -> BdChainOp:
        """The aie.bd_chain; ValueError if nothing has that name."""
        return named(enclosing(self, DeviceOp), BdChainOp, self.symbol)


@irdl_op_definition
class DmaStartBdChainOp(ChannelOp, StartBdChainOp):
    """Start a template on a tile's channel."""

    name = "aiex.dma_start_bd_chain"
    args = var_operand_def(AnyAttr())
    assembly_format = (
        "$symbol `(` $args `)` `:` `(` type($args) `)` "
        "`on` `(` $tile_value `,` custom<DirectionWord>($direction) `,` $channel `)` attr-dict"
    )


@irdl_op_definition
class DmaStartBdChainForOp(StartBdChainOp):
    """Start a template on a named shim channel."""

    name = "aiex.dma_start_bd_chain_for"
    args = var_operand_def(AnyAttr())
    alloc = prop_def(SymbolRefAttr)
    assembly_format = "$symbol `(` $args `)` `:` `(` type($args) `)` `for` $alloc attr-dict"
