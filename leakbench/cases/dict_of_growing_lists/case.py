"""A fixed set of a hundred sensors, but each sensor's list of readings is never trimmed."""
import os
import random
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))
readings = {f"sensor-{i}": [] for i in range(100)}


def measure(name):
    return (time.time(), random.gauss(20, 3), name)


def collect():
    for name, series in readings.items():
        series.append(measure(name))


def average(name):
    values = [value for _, value, _ in readings[name][-100:]]
    return sum(values) / max(1, len(values))


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    collect()
    average("sensor-7")
    time.sleep(0.02)
