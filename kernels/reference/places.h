// Where the elements of a micro-tile lie.
#pragma once

/// Place of an element inside its micro-tile of rows x columns.
inline unsigned within(unsigned row, unsigned column, unsigned rows, unsigned columns, bool transposed) {
    return transposed ? column % columns * rows + row % rows : row % rows * columns + column % columns;
}
