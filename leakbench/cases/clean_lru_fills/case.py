"""A fixed-size LRU cache that fills ever more slowly, because most requests are cache hits."""
import functools
import os
import random
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))


@functools.lru_cache(maxsize=3000)
def thumbnail(number):
    return bytearray(8_000)


def request():
    return len(thumbnail(random.randrange(2600)))


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for _ in range(3):
        request()
    time.sleep(0.01)
