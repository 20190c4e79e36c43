"""Frees nearly all blocks of a size in one function; keeps some of the same size in another, which begins later."""

import sys
import time

kept = []


def free():
    for _ in range(100):
        bytes(1000)


def keep():
    kept.append(bytes(1000))


begun = time.monotonic()
while (now := time.monotonic()) < begun + 2:
    free()
    if now > begun + 1:
        for _ in range(10):
            keep()
    time.sleep(0.001)
print(sys.getsizeof(kept[0]), keep.__code__.co_firstlineno + 1)
