"""A QueueHandler whose listener was never started: records stay in the queue forever."""
import logging
import logging.handlers
import os
import queue
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
backlog = queue.Queue(-1)
logger = logging.getLogger("service")
logger.setLevel(logging.INFO)
logger.addHandler(logging.handlers.QueueHandler(backlog))
logger.propagate = False


def handle(number):
    payload = {f"field{i}": number * i for i in range(12)}
    logger.info("handled %s", payload)
    return len(payload)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    handle(number)
    number += 1
    time.sleep(0.004)
