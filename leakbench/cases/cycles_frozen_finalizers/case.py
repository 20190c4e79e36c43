"""A threshold of a million starves the collector, and the cycles carry finalizers."""
import gc
import os
import random
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
gc.set_threshold(50_000_000, 100, 100)
closed = 0


class Connection:
    def __init__(self, host):
        self.host = host
        self.buffer = bytearray(random.randrange(6_000, 18_000))
        self.on_close = self.closed  # a bound method: the cycle

    def closed(self):
        return self.host

    def __del__(self):
        global closed
        closed += 1


def request(host):
    connection = Connection(host)
    connection.buffer[:4] = b"ping"
    return bytes(connection.buffer[:4])


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for _ in range(4):
        request("example")
    time.sleep(0.02)
