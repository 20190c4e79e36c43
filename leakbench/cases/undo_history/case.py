"""An editor whose undo history is an endless linked list, each entry holding the previous one."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 28))


class Link:
    __slots__ = ("value", "below")

    def __init__(self, value, below):
        self.value = value
        self.below = below


class Undo:
    def __init__(self):
        self.top = None

    def push(self, value):
        self.top = Link(value, self.top)


undo = Undo()


def edit(number):
    undo.push({"text": "t" * 700 + str(number), "cursor": [number, number + 1], "at": time.time()})


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    edit(number)
    number += 1
    time.sleep(0.004)
