"""Short threads in their own malloc arenas leave a small survivor behind each burst of work."""
import ctypes
import os
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
survivors = []


def burst(barrier, number):
    size = 12_000 + 900 * number
    blocks = []
    for position in range(150):
        blocks.append(libc.malloc(size))
        libc.memset(blocks[-1], 1, size)
        if position % 25 == 24:
            survivors.append(libc.malloc(200))
    barrier.wait()
    for block in blocks:
        libc.free(block)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=burst, args=(barrier, number)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    number += 1
    time.sleep(SECONDS / 80)
