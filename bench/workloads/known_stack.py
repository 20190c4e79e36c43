"""Small objects from a stack of ten frames, half of them freed again: `known_stack.py SAMPLES BESIDE`.

Runs until about SAMPLES samples of 64 KiB have been taken at the configured period. BESIDE is the number of bytes that
the program reads between two batches of allocations, to evict from the CPU caches what a sample needs."""

import sys

samples, beside = int(sys.argv[1]), int(sys.argv[2])
SIZE = 200
BATCH = 64 * 1024 // SIZE
other = bytes(beside)
kept: list = [None] * 40_000


def leaf(first: int) -> None:
    for n in range(first, first + BATCH):
        kept[n % 40_000] = bytes(SIZE)
        bytes(SIZE)


def frame_2(first: int) -> None:
    leaf(first)


def frame_3(first: int) -> None:
    frame_2(first)


def frame_4(first: int) -> None:
    frame_3(first)


def frame_5(first: int) -> None:
    frame_4(first)


def frame_6(first: int) -> None:
    frame_5(first)


def frame_7(first: int) -> None:
    frame_6(first)


def frame_8(first: int) -> None:
    frame_7(first)


def frame_9(first: int) -> None:
    for batch in range(samples // 2):
        frame_8(batch * BATCH)
        other.count(b"x")


frame_9(0)
