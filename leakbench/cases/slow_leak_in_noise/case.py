"""A busy service with a lot of short-lived memory, and a session table that grows by 0.2 MB a second."""
import json
import os
import random
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 50))
sessions = {}
cache = {}


def render(number):
    page = [{"id": i, "text": "x" * random.randrange(20, 200)} for i in range(300)]
    return json.dumps(page)


def cached(number):
    key = number % 500
    if key not in cache:
        cache[key] = render(key)
    return cache[key]


def login(number):
    sessions[number] = {"user": f"user-{number}", "token": os.urandom(300).hex(), "roles": ["a"]}


def worker(end, offset):
    number = offset
    while time.monotonic() < end:
        json.loads(render(number))
        cached(random.randrange(500))
        login(number)
        login(number + 1)
        number += 4
        time.sleep(0.015)


end = time.monotonic() + SECONDS
threads = [threading.Thread(target=worker, args=(end, 2 * i)) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
