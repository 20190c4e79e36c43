"""Uploads are spooled to /dev/shm in parts; nobody removes them."""
import os
import tempfile
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))


class Spool:
    def __init__(self, folder):
        self.folder = folder
        self.parts = []

    def write(self, number):
        path = os.path.join(self.folder, f"part-{number}")
        with open(path, "wb") as file:
            file.write(bytes([number % 256]) * 400_000)
        self.parts.append(path)


with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    spool = Spool(folder)
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end:
        spool.write(number)
        number += 1
        time.sleep(0.1)
