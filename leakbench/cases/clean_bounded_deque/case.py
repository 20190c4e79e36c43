"""Only the last two thousand events are kept."""
import os
import time
from collections import deque

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
events = deque(maxlen=2000)


def on_event(number):
    events.append({"number": number, "text": f"event {number} " * 60, "tags": list(range(40))})


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    for _ in range(4):
        on_event(number)
        number += 1
    time.sleep(0.01)
