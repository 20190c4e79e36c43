"""Clients leave streams half read: the generators stay suspended in a table."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))


class Streams:
    open = {}


def stream(number):
    rows = [f"{number},{i},{i * i}" for i in range(150)]
    for row in rows:
        yield row.encode()


def download(number):
    chunks = stream(number)
    Streams.open[number] = chunks
    return next(chunks)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    download(number)
    number += 1
    time.sleep(0.01)
