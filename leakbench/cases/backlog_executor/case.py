"""Jobs are submitted to two threads faster than the threads finish them."""
import concurrent.futures
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))


def convert(document):
    time.sleep(0.02)
    return len(document)


def submit_all(pool, end):
    number = 0
    while time.monotonic() < end:
        document = [f"line {number} {i}" for i in range(40)]
        pool.submit(convert, document)
        number += 1
        time.sleep(0.005)


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    submit_all(pool, time.monotonic() + SECONDS)
    pool.shutdown(wait=False, cancel_futures=True)
