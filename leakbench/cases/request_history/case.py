"""Each user's requests are kept in a separate list; a hundred and one lists, all growing."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
history = {}


def process_request(user, tokens):
    seen = history.setdefault(user, [])
    for token in tokens:
        seen.append(token)
    return len(seen)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    process_request(number % 101, range(number, number + 60))
    number += 1
    time.sleep(0.001)
