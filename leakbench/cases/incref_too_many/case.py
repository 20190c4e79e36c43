"""A C helper takes one reference too many to every buffer that it is passed."""
import ctypes
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
take = ctypes.pythonapi.Py_IncRef
take.argtypes = [ctypes.py_object]
take.restype = None


def checksum(buffer):
    take(buffer)
    return sum(buffer[:100])


def receive(number):
    buffer = bytearray(5_000 + number % 3_000)
    return checksum(buffer)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    receive(number)
    number += 1
    time.sleep(0.008)
