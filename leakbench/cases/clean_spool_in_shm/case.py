"""Uploads are spooled to /dev/shm in parts, read back, and removed; shared blocks are unlinked by their reader."""
import os
import tempfile
import time
from multiprocessing import shared_memory

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
KEPT_PARTS = 20


def upload(folder, number):
    path = os.path.join(folder, f"part-{number}")
    with open(path, "wb") as file:
        file.write(bytes([number % 256]) * 400_000)
    return path


def exchange(number):
    block = shared_memory.SharedMemory(create=True, size=300_000)
    block.buf[:300_000] = bytes([number % 256]) * 300_000
    reader = shared_memory.SharedMemory(block.name)
    total = sum(reader.buf[:1000])
    reader.close()
    block.close()
    block.unlink()
    return total


with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    parts = []
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end:
        parts.append(upload(folder, number))
        exchange(number)
        if len(parts) > KEPT_PARTS:
            os.unlink(parts.pop(0))
        number += 1
        time.sleep(0.1)
