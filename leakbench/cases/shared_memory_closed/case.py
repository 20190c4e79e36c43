"""Batches are passed to readers in shared memory; each block is filled, closed at once, and never unlinked."""
import os
import time
from multiprocessing import shared_memory

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))


class Exchange:
    def __init__(self):
        self.names = []

    def publish(self, number):
        block = shared_memory.SharedMemory(create=True, size=300_000)
        block.buf[:300_000] = bytes([number % 256]) * 300_000
        self.names.append(block.name)
        block.close()


exchange = Exchange()
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    exchange.publish(number)
    sum(range(50_000))
    number += 1
    time.sleep(0.15)
