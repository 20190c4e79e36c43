"""Ends while daemon threads allocate in native code, without the GIL, with a thread state.

They must not return before the process is gone: a thread that asks for the GIL of a
finalized interpreter may crash in CPython itself (seen with 3.10, without any agent). So
they repeat the search a thousand times, to outlast a slow exit even on a small file system.
"""

import ctypes
import threading
import time


GLOB_BRACE = 1 << 10
PATTERN = b"{" + b",".join([b"/*/*/*/*"] * 1000) + b"}"


def search():
    # The C library's glob(): an endless series of malloc calls.
    ctypes.CDLL(None).glob(PATTERN, GLOB_BRACE, None, ctypes.create_string_buffer(256))


threads = [threading.Thread(target=search, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
kept = [bytes(100) for _ in range(100_000)]
time.sleep(0.03)
print("ended")
