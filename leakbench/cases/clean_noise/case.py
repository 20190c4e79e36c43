"""Requests of very different sizes, nothing kept: RSS moves up and down all the time."""
import os
import random
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))


def handle(rng):
    size = int(rng.paretovariate(1.1) * 20_000) % 12_000_000
    body = bytearray(size)
    rows = [body[i : i + 100] for i in range(0, min(size, 400_000), 100)]
    time.sleep(0.02)
    return len(rows)


def worker(end, seed):
    rng = random.Random(seed)
    while time.monotonic() < end:
        handle(rng)
        time.sleep(rng.expovariate(30))


end = time.monotonic() + SECONDS
threads = [threading.Thread(target=worker, args=(end, seed)) for seed in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
