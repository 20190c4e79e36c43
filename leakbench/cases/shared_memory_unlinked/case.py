"""Frames are passed to workers in shared memory; nobody unlinks the blocks."""
import os
import time
from multiprocessing import resource_tracker, shared_memory

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
blocks = []


def publish(number):
    block = shared_memory.SharedMemory(create=True, size=150_000)
    block.buf[:] = bytes([number % 256]) * block.size
    blocks.append(block)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end and number < 300:
    publish(number)
    number += 1
    time.sleep(0.1)
for block in blocks:
    block.close()
    block.unlink()
