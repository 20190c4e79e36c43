"""Every session is in a weak registry, which drops sessions that nothing else references."""
import os
import time
import weakref

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
registry = weakref.WeakValueDictionary()


class Session:
    def __init__(self, number):
        self.number = number
        self.rows = [number * i for i in range(400)]


def open_session(number):
    session = Session(number)
    registry[number] = session
    return session


current = []
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    current.append(open_session(number))
    current = current[-300:]
    number += 1
    time.sleep(0.006)
