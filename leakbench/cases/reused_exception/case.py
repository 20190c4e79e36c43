"""One exception instance raised repeatedly: each raise adds to its traceback."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
BUSY = RuntimeError("the pool is busy")


def acquire(request):
    if len(request) > 10:
        raise BUSY
    return request


def attempt(number):
    request = bytearray(8_000)
    request[0] = number % 256
    try:
        return acquire(request)
    except RuntimeError:
        return None


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    attempt(number)
    number += 1
    time.sleep(0.005)
