"""Keeps 30,000 blocks of 1,000 bytes, drops 60 of 10 MB and a mapping, for the tests of importers."""
import mmap
import time

keep = []


def load(n):
    rows = [bytearray(1000) for _ in range(n)]
    keep.append(rows)


def scratch():
    blocks = [bytearray(10_000_000) for _ in range(12)]
    time.sleep(0.1)
    return len(blocks)


def main():
    for _ in range(5):
        load(6000)
        scratch()


main()
mmap.mmap(-1, 1 << 20).close()
