"""Ends while daemon threads allocate, in Python and in native code without the GIL."""

import hashlib
import threading
import time
import zlib


def compress():
    text = b"0123456789" * 30_000
    while True:
        zlib.compress(text, 1)


def allocate():
    while True:
        [bytes(i) for i in range(2_000)]


def digest():
    while True:
        hashlib.sha256(bytes(100_000)).digest()


for work in (compress, compress, compress, allocate, digest):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.03)
print("ended")
