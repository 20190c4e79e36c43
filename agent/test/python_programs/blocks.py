"""sys.getallocatedblocks() before and after many cycles of allocating and freeing."""

import gc
import sys


def cycle():
    things = [bytes(i % 700) for i in range(20_000)] + [[i] * (i % 90) for i in range(5_000)]
    things.sort(key=len)
    for thing in things[20_000:]:
        thing_class = type(thing)
    del things


cycle()
gc.collect()
before = sys.getallocatedblocks()
for _ in range(30):
    cycle()
gc.collect()
print(sys.getallocatedblocks() - before)
