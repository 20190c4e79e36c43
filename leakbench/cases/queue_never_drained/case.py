"""Metrics are put into a queue; the thread that should send them was never started."""
import os
import queue
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 28))


class Metrics:
    def __init__(self):
        self.inbox = queue.Queue()

    def emit(self, name, value):
        self.inbox.put({"name": name, "value": value, "labels": {"path": "/items/" + str(value) * 20}})


class Service:
    def __init__(self):
        self.metrics = Metrics()

    def work(self, number):
        self.metrics.emit("seconds", number)
        self.metrics.emit("bytes", number + 0.5)


service = Service()
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    service.work(number)
    number += 1
    time.sleep(0.004)
