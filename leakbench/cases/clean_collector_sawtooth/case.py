"""Reference cycles are created all the time, and the collector frees them now and then."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 32))


class Node:
    def __init__(self, payload):
        self.payload = payload
        self.other = None


def pair(number):
    a, b = Node([number] * 300), Node(str(number) * 50)
    a.other, b.other = b, a
    return len(a.payload)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    for _ in range(20):
        pair(number)
        number += 1
    time.sleep(0.02)
