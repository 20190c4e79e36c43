"""A list grows by megabytes a second; now and then a file is also left open."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
rows = []
logs = []


def load(number):
    rows.append([f"row {number} {i}" for i in range(300)])


def rotate():
    logs.append(open(os.devnull, "w"))


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    load(number)
    if number % 100 == 0:
        rotate()
    number += 1
    time.sleep(0.01)
