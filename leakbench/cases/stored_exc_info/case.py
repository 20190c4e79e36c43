"""Each failure's exc_info is stored for a later report, with the locals of all frames."""
import os
import sys
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))


class Failures:
    def __init__(self):
        self.stored = []

    def note(self):
        self.stored.append(sys.exc_info())


failures = Failures()


def decode(number):
    fields = [f"{number}-{i}" for i in range(300)]
    return int(fields[number % 300])


def handle(number):
    try:
        decode(number)
    except ValueError:
        failures.note()


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    handle(number)
    number += 1
    time.sleep(0.02)
