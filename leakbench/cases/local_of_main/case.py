"""A batch job whose main function collects every result in a local list, to count them at the end."""
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 28))


def fetch(number):
    return {"id": number, "body": bytearray(1500), "rows": [number * i for i in range(30)]}


def main():
    results = []
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end:
        results.append(fetch(number))
        number += 1
        time.sleep(0.004)
    return len(results)


main()
