"""Claim: __slots__ saves most of an object's memory."""

import sys
import tracemalloc
from collections import namedtuple

from figures import conclude, show


class Plain:
    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z


class Slotted:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z


Named = namedtuple("Named", "x y z")


def as_dict(x, y, z):
    return {"x": x, "y": y, "z": z}


def bytes_each(make, number=100_000):
    """Without the list that holds them; the values are shared constants."""
    room = [None] * number
    tracemalloc.start()
    for at in range(number):
        room[at] = make(1, 2, 3)
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return traced / number


sizes = {
    "dict": bytes_each(as_dict),
    "class": bytes_each(Plain),
    "namedtuple": bytes_each(Named),
    "class with __slots__": bytes_each(Slotted),
}
print(f"Python {sys.version.split()[0]}, three attributes")
for name, size in sizes.items():
    show(name, f"{size:.0f} bytes")
conclude(
    sizes["class with __slots__"] < sizes["class"] < sizes["dict"],
    "slots save memory compared with a plain class, and far more compared with a dict",
)
