"""Another program (beside.py) fills /dev/shm; this one passes blocks to a worker that closes and unlinks them."""
import multiprocessing
import os
import time
from multiprocessing import shared_memory

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))


def work(names):
    while (name := names.get()) is not None:
        block = shared_memory.SharedMemory(name)
        block.buf[0] = 1
        block.close()
        block.unlink()


if __name__ == "__main__":
    names = multiprocessing.Queue()
    worker = multiprocessing.Process(target=work, args=(names,))
    worker.start()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        block = shared_memory.SharedMemory(create=True, size=300_000)
        block.buf[:1000] = bytes(1000)
        block.close()
        names.put(block.name)
        time.sleep(0.1)
    names.put(None)
    worker.join()
