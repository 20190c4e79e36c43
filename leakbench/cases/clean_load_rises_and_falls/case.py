"""The number of sessions follows the load: up in the first half of the run, then down."""
import math
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))
sessions = {}


def open_session(number):
    sessions[number] = {"data": bytearray(30_000), "started": time.time()}


start = time.monotonic()
number = 0
while time.monotonic() < start + SECONDS:
    wanted = int(1200 * math.sin(math.pi * (time.monotonic() - start) / SECONDS)) + 20
    while len(sessions) < wanted:
        open_session(number)
        number += 1
    while len(sessions) > wanted:
        sessions.pop(next(iter(sessions)))
    time.sleep(0.05)
