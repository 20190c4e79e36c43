"""A bounded cache fills up while another list grows without a bound."""
import functools
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
trail = []


@functools.lru_cache(maxsize=8_000)
def document(number):
    return bytearray(2_500)


def audit(number):
    trail.append({"number": number, "text": f"read document {number} " * 20})


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    document(number)
    audit(number)
    number += 1
    time.sleep(0.004)
