"""Each round keeps one small object in a hundred: a few live objects keep whole arenas allocated."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))
kept = []


def one_round(number):
    size = 16 + 16 * (number % 28)
    blocks = [bytes(size) for _ in range(120_000)]
    kept.extend(blocks[::400])


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    one_round(number)
    number += 1
    time.sleep(SECONDS / 32)
