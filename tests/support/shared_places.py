"""Loops over an operand that give elements no place or a shared one, what both hosts say of them; and legal ones."""

from bdforge.design.sequences import Axis, Dim

_ONE = ": an element has one place, and a place one element"
_SAME = ", which lead to the same place of the buffer" + _ONE
_TWO = [Axis(3), Axis(4)]
_MOST = 1 << 50

REFUSED_PLACES = [
    (_TWO, [Dim(0, 3, 0, 4), Dim(1, 4)], "has a loop with step 0 where the loops in it make 1 places"),
    ([Axis(4)], [Dim(0, 3, 0, 4), Dim(0, 4)], "has a loop with step 0 where the loops in it make 1 places"),
    ([Axis(4)], [Dim(0, 4, -1)], "has a loop with step -1 where the loops in it make 1 places"),
    ([Axis(4)], [Dim(0, 2, 3, 2), Dim(0, 2)], "has a loop with step 3 where the loops in it make 2 places"),
    ([Axis(4)], [Dim(0, 4, 1, -1)], "has a loop of 4 by -1; counts begin at 1, strides at 0"),
    ([Axis(4)], [Dim(0, 0)], "has a loop of 0 by 1; counts begin at 1, strides at 0"),
    ([Axis(4)], [Dim(0, 4, 1, 2 * _MOST)], f"has a loop of 4 by {2 * _MOST}; counts begin at 1"),
    ([Axis(4)], [Dim(0, 4, 1, 0)], "has a loop of 4 by 0" + _ONE),
    (_TWO, [Dim(0, 3, 1, 3), Dim(1, 4)], "has loops of 3 by 3 and 4 by 1" + _SAME),
    (_TWO, [Dim(0, 3, 1, 6), Dim(1, 4, 1, 4)], "has loops of 3 by 6 and 4 by 4" + _SAME),
    ([Axis(0)], [Dim(0, 1)], f"has 0 positions; there must be 1 to {_MOST}"),
    ([Axis(4)], [Dim(0, 2)], "holds 2 of 4 positions"),
    ([Axis(4, 2)], (), "holds 2 of 4 positions"),
    ([Axis(2, 2, 3)], [Dim(0, 3)], "has tiles of 3 in 2 positions"),
]
LEGAL_PLACES = [
    (_TWO, [Dim(1, 4, 1, 3), Dim(0, 3)]),
    (_TWO, [Dim(0, 4, 1, 8), Dim(1, 2, 4, 32), Dim(1, 4)]),  # places for more
    ([Axis(5, 5, 3)], [Dim(0, 6)]),  # position 2 twice
    ([Axis(5, 5, 3, True)], [Dim(0, 6)]),
    ([Axis(3, 5, 3)], [Dim(0, 3)]),
    (_TWO, [Dim(0, 3, 1, 3), Dim(1, 4, 1, 10)]),  # no two places in one, though neither loop lies in the other
    (_TWO, [Dim(0, 3, 1, 4), Dim(1, 8)]),  # lines are read beyond their end
    ([Axis(1), Axis(4)], [Dim(0, 1, 0, 0), Dim(1, 4)]),  # a loop of one leads nowhere
]
