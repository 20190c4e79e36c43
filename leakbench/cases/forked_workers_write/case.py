"""Workers are forked with a large table in memory; reading it changes reference counts and copies page after page."""
import multiprocessing
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 32))
table = [f"sample number {i} of the data set" for i in range(700_000)]


def read(start, end):
    index = start
    total = 0
    while time.monotonic() < end:
        for sample in table[index : index + 4000]:
            total += len(sample)
        index = (index + 4000) % len(table)
        time.sleep(0.1)


def main():
    context = multiprocessing.get_context("fork")
    end = time.monotonic() + SECONDS
    workers = [context.Process(target=read, args=(i * 200_000, end)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
