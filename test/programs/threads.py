"""Four concurrent threads, each with its own name and its own share of the memory."""
import os
import sys
import threading

from truth import Truth

truth = Truth()
shares = [100, 200, 300, 400]
stores = {}


def worker(share):
    slots = [None] * (share * 100)
    stores[share] = slots
    for index in range(len(slots)):
        slots[index] = bytes(4000)  # known: worker
        bytes(500)


def main():
    threads = [
        threading.Thread(target=worker, args=(share,), name=f"share-{share}") for share in shares
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    live = sum(sys.getsizeof(item) for slots in stores.values() for item in slots)
    truth.site("worker", worker, live)
    truth.report()
    os._exit(0)


main()
