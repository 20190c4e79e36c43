"""Readings are added to a tuple, which is copied each time."""
import os
import random
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))
state = {"readings": ()}


def read():
    state["readings"] += tuple(random.random() for _ in range(1500))


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    read()
    time.sleep(0.03)
