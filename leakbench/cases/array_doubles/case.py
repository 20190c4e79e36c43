"""A time series in an array that doubles its capacity when full and is never trimmed."""
import os
import time

import numpy

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))


class Series:
    def __init__(self):
        self.values = numpy.zeros(200_000)
        self.used = 0

    def add(self, part):
        while self.used + len(part) > len(self.values):
            larger = numpy.empty(2 * len(self.values))
            larger[: self.used] = self.values[: self.used]
            self.values = larger
        self.values[self.used : self.used + len(part)] = part
        self.used += len(part)


class Sensor:
    def __init__(self):
        self.readings = Series()

    def poll(self):
        self.readings.add(numpy.random.random(3_000))


sensor = Sensor()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    sensor.poll()
    time.sleep(0.01)
