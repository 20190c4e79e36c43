"""A request log that is never trimmed: every request leaves a record in a module-level list."""
import os
import random
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))
history = []


def handle(number):
    body = [random.random() for _ in range(200)]
    result = sum(body) / len(body)
    remember(number, body, result)
    return result


def remember(number, body, result):
    history.append({"number": number, "body": body[:60], "result": result, "at": time.time()})


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    handle(number)
    number += 1
    time.sleep(0.003)
