"""A metrics client with the user's id as a label: one time series for every user."""
import os
import random
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))
BUCKETS = [0.001 * 2**i for i in range(16)]


class Histogram:
    def __init__(self, name):
        self.name = name
        self.lock = threading.Lock()
        self.series = {}

    def labels(self, **labels):
        key = tuple(sorted(labels.items()))
        with self.lock:
            if key not in self.series:
                self.series[key] = {bound: 0 for bound in BUCKETS}
        return self.series[key]

    def observe(self, seconds, **labels):
        counts = self.labels(**labels)
        for bound in BUCKETS:
            if seconds <= bound:
                counts[bound] += 1
                break


latency = Histogram("latency")


def request():
    user = random.randrange(10**9)
    latency.observe(random.expovariate(20), endpoint="/search", user=f"u{user}", status="200")


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for _ in range(8):
        request()
    time.sleep(0.012)
