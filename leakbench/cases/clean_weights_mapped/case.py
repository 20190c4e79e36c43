"""One file of weights is mapped once and read piece by piece: resident pages grow, the mapping does not."""
import mmap
import os
import tempfile
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
SIZE = 60_000_000
with tempfile.NamedTemporaryFile(delete=False) as file:
    file.write(os.urandom(1_000_000) * (SIZE // 1_000_000))
with open(file.name, "rb") as weights:
    mapped = mmap.mmap(weights.fileno(), 0, access=mmap.ACCESS_READ)
os.unlink(file.name)


def read_layer(start, length):
    return sum(mapped[start : start + length : 4096])


start = time.monotonic()
position = 0
while time.monotonic() < start + SECONDS:
    read_layer(position, 200_000)
    position = (position + 200_000) % (SIZE - 200_000)
    time.sleep(SECONDS / 400)
