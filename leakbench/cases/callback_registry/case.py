"""Closures registered for an event that never comes hold on to their requests' data."""
import os
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))


class Bus:
    def __init__(self):
        self.listeners = {"config-changed": []}

    def subscribe(self, topic, listener):
        self.listeners[topic].append(listener)


bus = Bus()


def open_view(number):
    rows = [f"row {number} {i}" for i in range(300)]

    def refresh(config):
        return [row for row in rows if config in row]

    bus.subscribe("config-changed", refresh)
    return refresh("1")


def worker(end, offset):
    number = offset
    while time.monotonic() < end:
        open_view(number)
        number += 2
        time.sleep(0.05)


end = time.monotonic() + SECONDS
threads = [threading.Thread(target=worker, args=(end, i)) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
