"""The array: texts of designs, routes, register writes, images, and the emulated array that runs them."""
