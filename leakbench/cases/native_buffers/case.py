"""A few large arrays are kept one by one: megabytes behind a handful of objects."""
import os
import time

import numpy as np

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
results = []


def simulate(number):
    field = np.zeros((600, 600))
    for i in range(5):
        field += np.sin(number + i)
    return field


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    results.append(simulate(number))
    number += 1
    time.sleep(0.4)
