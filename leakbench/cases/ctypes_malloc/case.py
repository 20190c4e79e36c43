"""A codec behind ctypes: its output buffers are never freed."""
import ctypes
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


def encode(frame):
    size = 20_000 + len(frame)
    buffer = libc.malloc(size)
    libc.memset(buffer, 7, size)
    return ctypes.string_at(buffer, 16)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    encode(b"frame" * (number % 50))
    number += 1
    time.sleep(0.02)
