"""Claim: malloc_trim(0) gives a Python program's free memory back to the system."""

import ctypes

from figures import conclude, mib, rss, show

trim = ctypes.CDLL(None).malloc_trim


def fill_empty_and_trim(make, number):
    """RSS above the start: with all objects, with one of 100, and after malloc_trim(0)."""
    before = rss()
    blocks = [make() for _ in range(number)]
    full = rss() - before
    kept = blocks[::100]
    del blocks
    emptied = rss() - before
    trim(0)
    trimmed = rss() - before
    del kept
    return full, emptied, trimmed


large_full, large_emptied, large_trimmed = fill_empty_and_trim(lambda: bytearray(5000), 30_000)
show("30,000 bytearrays of 5,000 bytes (from malloc): RSS grows by", mib(large_full))
show("one of 100 kept: remaining", mib(large_emptied))
show("after malloc_trim(0): remaining", mib(large_trimmed))

small_full, small_emptied, small_trimmed = fill_empty_and_trim(lambda: bytes(300), 400_000)
show("400,000 objects of 333 bytes (from pymalloc): RSS grows by", mib(small_full))
show("one of 100 kept: remaining", mib(small_emptied))
show("after malloc_trim(0): remaining", mib(small_trimmed))

conclude(
    large_trimmed < 0.2 * large_emptied and small_trimmed > 0.9 * small_emptied,
    "it returns memory that malloc keeps, but not memory that Python's own allocator keeps",
)
