"""Greenlets that switch between allocations, which swaps stacks without the interpreter noticing."""
import os
import sys

import greenlet

from truth import Truth

truth = Truth()
stores = {"left": [], "right": []}


def left_side():
    for _ in range(1500):
        stores["left"].append(bytes(40_000))  # known: left
        right.switch()


def right_side():
    for _ in range(1500):
        nested(5)
        left.switch()


def nested(depth):
    if depth:
        return nested(depth - 1)
    stores["right"].append(bytes(80_000))  # known: right


left = greenlet.greenlet(left_side)
right = greenlet.greenlet(right_side)
left.switch()
truth.site("left", left_side, sum(map(sys.getsizeof, stores["left"])))
truth.site("right", nested, sum(map(sys.getsizeof, stores["right"])))
truth.report()
os._exit(0)
