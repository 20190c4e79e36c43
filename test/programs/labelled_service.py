"""A service whose thread `ingest` keeps what it allocates, and whose thread `search` does not; has labels, steps and a
worker process of another rank. Prints how many steps there were. Arguments: seconds to run, and whether it is the
worker."""

import os
import subprocess
import sys
import threading
import time

import tidemark

SECONDS = float(sys.argv[1])
STOP = time.monotonic() + SECONDS
kept = []
losses = []


def ingest():
    while time.monotonic() < STOP:
        with tidemark.label(endpoint="/ingest", tenant="acme"):
            kept.append(bytearray(400_000))
        time.sleep(0.05)


def search():
    cache = {}
    with tidemark.label(endpoint="/search"):
        for number in range(100):
            cache[number] = bytearray(200_000)
    while time.monotonic() < STOP + 0.5:
        with tidemark.label(endpoint="/search"):
            bytearray(300_000)
        time.sleep(0.05)


def train():
    while time.monotonic() < STOP:
        with tidemark.step("train"):
            batch = bytearray(2_000_000)
            losses.append(bytearray(150_000))
            del batch
            time.sleep(0.1)


def work():
    kept.append(bytearray(8_000_000))
    time.sleep(SECONDS)


if len(sys.argv) > 2:
    work()
else:
    worker = subprocess.Popen(
        [sys.executable, __file__, sys.argv[1], "worker"], env={**os.environ, "RANK": "1"}
    )
    threads = [threading.Thread(target=target, name=target.__name__) for target in (ingest, search)]
    for thread in threads:
        thread.start()
    train()
    worker.wait()
    for thread in threads:
        thread.join()
    print(len(losses))
