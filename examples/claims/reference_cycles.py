"""Claim: reference cycles leak memory. Claim: the garbage collector takes care of cycles in time."""

import gc

from figures import MIB, conclude, mib, rss, show


class Node:
    def __init__(self, size):
        self.data = bytearray(size)
        self.me = self  # a cycle of one object


def make(number, size):
    before = rss()
    highest = 0
    for at in range(number):
        Node(size)  # unreachable at once
        if at % 20 == 19:
            highest = max(highest, rss() - before)
    return highest


many_small = make(20_000, 10_000)
show("20,000 cycles of 10 kB, 191 MiB in all: RSS grows by up to", mib(many_small))
gc.collect()

few_large = make(40, 5 * MIB)
show("40 cycles of 5 MiB, 200 MiB in all: RSS grows by up to", mib(few_large))
gc.collect()

gc.disable()
disabled = make(4_000, 10_000)
show("4,000 cycles of 10 kB with gc.disable(): RSS grows by", mib(disabled))
show("gc.collect() then finds this many objects", f"{gc.collect():,}")

conclude(
    many_small < 60 * MIB and few_large > 180 * MIB and disabled > 35 * MIB,
    "cycles are freed, but the collector counts objects, not bytes",
)
