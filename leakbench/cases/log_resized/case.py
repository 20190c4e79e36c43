"""A log in a mapped file is resized whenever it is full, and nothing ever truncates it."""
import mmap
import os
import tempfile
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
STEP = 512 << 10


class Log:
    def __init__(self, file):
        self.file = file
        file.truncate(STEP)
        self.area = mmap.mmap(file.fileno(), STEP)
        self.end = 0

    def make_room(self, size):
        if self.end + size > len(self.area):
            self.area.resize(len(self.area) + STEP)

    def write(self, record):
        self.make_room(len(record))
        self.area[self.end:self.end + len(record)] = record
        self.end += len(record)


def handle(log, number):
    body = os.urandom(40_000)
    log.write(b"%08d" % number + body)
    return sum(body)


with tempfile.TemporaryFile() as file:
    log = Log(file)
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end:
        handle(log, number)
        number += 1
        time.sleep(0.02)
