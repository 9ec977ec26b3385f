"""Runtime sequences lowered to the operations of instruction streams (`bdforge.devices.txn_format`)."""
