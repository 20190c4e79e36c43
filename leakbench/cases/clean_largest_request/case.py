"""A buffer as large as the largest request so far; larger requests become ever rarer."""
import os
import random
import time

import numpy

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))
chance = random.Random(7)


class Decoder:
    def __init__(self):
        self.buffer = numpy.empty(10_000)

    def decode(self, size):
        if size > len(self.buffer):
            self.buffer = numpy.empty(1 << size.bit_length())
        self.buffer[:size] = 1.0
        return float(self.buffer[:size].sum())


decoder = Decoder()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    decoder.decode(min(int(20_000 * chance.paretovariate(1.0)), 12_000_000))
    time.sleep(0.01)
