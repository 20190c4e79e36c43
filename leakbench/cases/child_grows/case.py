"""A worker process that keeps every job's result; its parent stays small."""
import multiprocessing
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 32))


def compute(number):
    return {"number": number, "vector": [number + i * 0.5 for i in range(300)]}


def work(jobs):
    done = []
    for number in iter(jobs.get, None):
        done.append(compute(number))


def main():
    context = multiprocessing.get_context("fork")
    jobs = context.Queue()
    worker = context.Process(target=work, args=(jobs,))
    worker.start()
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end:
        jobs.put(number)
        number += 1
        time.sleep(0.01)
    jobs.put(None)
    worker.join()


if __name__ == "__main__":
    main()
