"""Every subscription starts a thread that waits forever."""
import os
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
never = threading.Event()
subscriptions = []


def listen(topic):
    backlog = [topic] * 1000
    never.wait()
    return backlog


def subscribe(number):
    thread = threading.Thread(target=listen, args=(f"topic-{number}",), daemon=True)
    thread.start()
    subscriptions.append(thread)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    subscribe(number)
    number += 1
    time.sleep(0.1)
