"""A pool creates buffers on demand: the more callers at once, the more buffers, up to a bound."""
import os
import queue
import random
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
pool = queue.LifoQueue()
made = threading.Semaphore(24)


def borrow():
    try:
        return pool.get_nowait()
    except queue.Empty:
        if made.acquire(blocking=False):
            return bytearray(700_000)
        return pool.get()


def worker(end, rng):
    while time.monotonic() < end:
        buffer = borrow()
        buffer[rng.randrange(len(buffer))] = 1
        time.sleep(rng.expovariate(40))
        pool.put(buffer)


end = time.monotonic() + SECONDS
threads = [threading.Thread(target=worker, args=(end, random.Random(i))) for i in range(12)]
for thread in threads:
    thread.start()
    time.sleep(0.3)
for thread in threads:
    thread.join()
