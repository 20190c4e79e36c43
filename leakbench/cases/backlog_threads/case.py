"""A thread reads records faster than the writer behind the queue can ship them."""
import os
import queue
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
records = queue.Queue()


def read_records(end):
    number = 0
    while time.monotonic() < end:
        records.put({"number": number, "payload": bytearray(3_000)})
        number += 1
        time.sleep(0.002)


def ship():
    while True:
        record = records.get()
        record["payload"][0] = 1
        time.sleep(0.0035)


threading.Thread(target=ship, daemon=True).start()
read_records(time.monotonic() + SECONDS)
