"""Two containers in one module grow at the same time; the larger one is the leak that matters."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 28))
history = []
audit = {}


def remember(number):
    history.append({"number": number, "text": "x" * 900 + str(number), "tags": [str(number + i) for i in range(12)]})


def note(number):
    audit[number] = ("seen", str(number) * 40)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    remember(number)
    note(number)
    number += 1
    time.sleep(0.004)
