"""A job every six seconds builds a table, sums it and drops it."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
totals = {}


def run(day):
    rows = [(day, line, f"customer-{day}-{line}") for line in range(12_000)]
    totals[day % 7] = sum(line for _, line, _ in rows)


start = time.monotonic()
day = 0
while time.monotonic() < start + SECONDS:
    run(day)
    day += 1
    time.sleep(max(0.0, min(start + 6 * day, start + SECONDS) - time.monotonic()))
