"""Ends while daemon threads allocate in native code, without the GIL, with a thread state.

They do not come back before the process is gone: a thread that asks for the GIL of an
interpreter that ended may crash in CPython itself (seen with 3.10, with no agent at all). So
they search a thousand times over, however small the machine's file system and slow its end.
"""

import ctypes
import threading
import time


GLOB_BRACE = 1 << 10
PATTERN = b"{" + b",".join([b"/*/*/*/*"] * 1000) + b"}"


def search():
    # The C library's glob(): malloc calls without end.
    ctypes.CDLL(None).glob(PATTERN, GLOB_BRACE, None, ctypes.create_string_buffer(256))


threads = [threading.Thread(target=search, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
kept = [bytes(100) for _ in range(100_000)]
time.sleep(0.03)
print("ended")
