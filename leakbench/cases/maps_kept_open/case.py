"""An index maps each segment file and keeps the mapping forever."""
import mmap
import os
import tempfile
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
folder = tempfile.TemporaryDirectory()
segments = {}


def write_segment(number):
    path = os.path.join(folder.name, f"segment-{number}")
    with open(path, "wb") as file:
        file.write(os.urandom(400_000))
    return path


def open_segment(number):
    with open(write_segment(number), "rb") as file:
        segments[number] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return sum(segments[number][::4096])


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    open_segment(number)
    number += 1
    time.sleep(0.15)
