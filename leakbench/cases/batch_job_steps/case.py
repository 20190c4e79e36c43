"""A job every six seconds keeps the table that it built; nothing happens in between."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))


class Reports:
    def __init__(self):
        self.finished = []

    def run(self, day):
        rows = [(day, line, f"customer-{day}-{line}") for line in range(12_000)]
        total = sum(line for _, line, _ in rows)
        self.finished.append({"day": day, "rows": rows, "total": total})


reports = Reports()
start = time.monotonic()
day = 0
while time.monotonic() < start + SECONDS:
    reports.run(day)
    day += 1
    time.sleep(max(0.0, min(start + 6 * day, start + SECONDS) - time.monotonic()))
