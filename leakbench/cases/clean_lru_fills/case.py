"""An LRU of fixed size that needs half of the run to fill."""
import functools
import os
import random
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))


@functools.lru_cache(maxsize=3000)
def thumbnail(number):
    return bytearray(8_000)


def request():
    return len(thumbnail(int(random.paretovariate(0.4)) % 1_000_000))


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for _ in range(3):
        request()
    time.sleep(0.01)
