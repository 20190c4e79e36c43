"""Short-lived threads parse large batches and keep one record in three thousand, which keeps their arenas allocated."""
import os
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))
survivors = []


def parse(barrier, number):
    size = 700 + 160 * number
    records = [bytes(size) for _ in range(6_000)]
    barrier.wait()
    survivors.extend(records[::3000])


def burst(number):
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=parse, args=(barrier, number)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    burst(number)
    number += 1
    time.sleep(SECONDS / 24)
