"""Jobs come in bursts; the queue fills for a few seconds and is empty again before the next."""
import os
import queue
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
jobs = queue.Queue()


def burst(size):
    for number in range(size):
        jobs.put({"number": number, "payload": bytearray(3_000)})


def work():
    while True:
        job = jobs.get()
        job["payload"][0] = 1
        time.sleep(0.001)


threading.Thread(target=work, daemon=True).start()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    burst(2_000)
    time.sleep(min(6.0, max(0.0, end - time.monotonic())))
