"""More and more requests: each holds its rows for a third of a second, and there are more of them at a time."""
import collections
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
REQUEST_SECONDS = 0.33


def read_rows(number):
    return [{"id": number * 1000 + row, "name": f"row {row}"} for row in range(300)]


def render(rows):
    return [f"<tr><td>{row['id']}</td><td>{row['name']}</td></tr>" for row in rows]


def handle(number):
    rows = read_rows(number)
    return rows, render(rows)


start = time.monotonic()
active = collections.deque()
number = 0
while (now := time.monotonic()) < start + SECONDS:
    wanted = 20 + 400 * (now - start) / SECONDS
    while active and active[0][0] < now:
        active.popleft()
    while len(active) < wanted:
        active.append((now + REQUEST_SECONDS, handle(number)))
        number += 1
    time.sleep(0.01)
