"""A bounded cache that grows during the whole window; the bound is stored in the object."""
import functools
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))


@functools.lru_cache(maxsize=4096)
def document(number):
    return bytearray(6_000)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    document(number)
    number += 1
    time.sleep(SECONDS / 3500)
