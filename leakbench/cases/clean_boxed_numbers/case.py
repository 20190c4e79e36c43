"""Two million floats in lists, four times the size of an array; built once, then only read."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))


def load(count):
    return [float(i) * 1.1 for i in range(count)]


columns = {name: load(700_000) for name in ("open", "high", "low")}
end = time.monotonic() + SECONDS
index = 0
while time.monotonic() < end:
    sum(columns["open"][index : index + 2000])
    index = (index + 2000) % 700_000
    time.sleep(0.01)
