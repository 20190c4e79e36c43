"""A job that gathers a batch, works on it and drops it, repeatedly."""
import os
import random
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))


def gather(batch, number):
    batch.append({"id": number, "text": "word " * random.randrange(20, 200)})


def work(batch):
    return sorted(batch, key=lambda item: len(item["text"]))[:10]


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    batch = []
    until = time.monotonic() + SECONDS / 7
    while time.monotonic() < min(until, end):
        gather(batch, number)
        number += 1
        time.sleep(0.002)
    work(batch)
