"""Three configuration changes, each with a larger table than the last; flat between them."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))


class Service:
    def __init__(self):
        self.table = {}

    def configure(self, rows):
        self.table = {f"rule-{i}": [i] * 20 for i in range(rows)}

    def handle(self, number):
        return sum(self.table.get(f"rule-{number % 5000}", [0]))


service = Service()
start = time.monotonic()
changes = [(0.0, 10_000), (0.4, 60_000), (0.75, 110_000)]
number = 0
while time.monotonic() < start + SECONDS:
    if changes and time.monotonic() >= start + changes[0][0] * SECONDS:
        service.configure(changes.pop(0)[1])
    service.handle(number)
    number += 1
    time.sleep(0.002)
