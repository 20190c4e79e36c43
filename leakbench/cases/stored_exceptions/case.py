"""Errors kept for a report hold their tracebacks, which hold the locals of every frame."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
errors = []


def parse(text):
    fields = text.split(",")
    numbers = [float(field) for field in fields]
    raise ValueError(f"{len(numbers)} numbers are too many")


def process(number):
    text = ",".join(str(number * 7 + i) for i in range(500))
    try:
        parse(text)
    except ValueError as error:
        errors.append(error)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    process(number)
    number += 1
    time.sleep(0.02)
