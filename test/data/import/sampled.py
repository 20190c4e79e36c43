"""Keeps 20 blocks of 100,000 bytes and drops four of 10 MB, one after the other: the samples of this folder."""

import time

keep = []


def load(count):
    keep.append([bytearray(100_000) for _ in range(count)])


def scratch():
    block = bytearray(10_000_000)
    time.sleep(0.2)
    return len(block)


for _ in range(4):
    load(5)
    scratch()
