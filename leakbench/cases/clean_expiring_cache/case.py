"""Entries live for eight seconds; a sweep removes the old ones now and then."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))
LIFETIME = SECONDS / 5


class Expiring:
    def __init__(self):
        self.entries = {}
        self.swept = time.monotonic()

    def put(self, key, value):
        now = time.monotonic()
        self.entries[key] = (now, value)
        if now - self.swept > LIFETIME / 2:
            self.entries = {k: e for k, e in self.entries.items() if now - e[0] < LIFETIME}
            self.swept = now


cache = Expiring()
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    cache.put(number, [number + i for i in range(150)])
    number += 1
    time.sleep(0.005)
