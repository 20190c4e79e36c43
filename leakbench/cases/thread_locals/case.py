"""A pool of threads, each with its own thread-local cache that nothing empties."""
import os
import random
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
local = threading.local()


def lookup(key):
    if not hasattr(local, "results"):
        local.results = {}
    if key not in local.results:
        local.results[key] = [key * i for i in range(20, 60)]
    return local.results[key]


def worker(end, seed):
    rng = random.Random(seed)
    while time.monotonic() < end:
        for _ in range(3):
            lookup(rng.randrange(10**9))
        time.sleep(0.015)


end = time.monotonic() + SECONDS
threads = [threading.Thread(target=worker, args=(end, seed)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
