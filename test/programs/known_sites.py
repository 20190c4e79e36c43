"""Allocates known amounts in known places, in every way that plain Python offers."""
import asyncio
import ctypes
import mmap
import os
import sys
import time
import zlib

from truth import Truth

truth = Truth()
MIB = 1 << 20


def size_of_all(items):
    return sum(map(sys.getsizeof, items))


def large_bytes():
    slots = [None] * 40
    for index in range(40):
        slots[index] = bytes(MIB)  # known: large bytes
    truth.site("large bytes", large_bytes, size_of_all(slots))
    return slots


def small_bytes():
    slots = [None] * 120_000
    for index in range(len(slots)):
        slots[index] = bytes(150)  # known: small bytes
    truth.site("small bytes", small_bytes, size_of_all(slots))
    return slots


def strings():
    slots = [None] * 60_000
    size = 300
    for index in range(len(slots)):
        slots[index] = "x" * size  # known: strings
    truth.site("strings", strings, size_of_all(slots))
    return slots


def tuples():
    slots = [None] * 300_000
    for index in range(len(slots)):
        slots[index] = (slots, index, index)  # known: tuples
    truth.site("tuples", tuples, size_of_all(slots))
    return slots


def grown_list():
    items = []
    for _ in range(2_000_000):
        items.append(None)  # known: grown list
    truth.site("grown list", grown_list, sys.getsizeof(items) - sys.getsizeof([]))
    return items


class Store:
    def fill(self):
        self.slots = [None] * 3000
        for index in range(len(self.slots)):
            self.slots[index] = bytearray(8000)  # known: method
        truth.site("method", self.fill.__func__, size_of_all(self.slots))


def recurse(depth):
    if depth == 0:
        return deepest()
    return recurse(depth - 1)


def deepest():
    block = bytes(24 * MIB)  # known: deep
    truth.site("deep", deepest, sys.getsizeof(block))
    return block


async def coroutine():
    await asyncio.sleep(0)
    block = bytes(20 * MIB)  # known: coroutine
    truth.site("coroutine", coroutine, sys.getsizeof(block))
    return block


def native():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    addresses = [0] * 300
    for index in range(len(addresses)):
        addresses[index] = libc.malloc(100_000)  # known: native
    truth.site("native", native, 300 * 100_000)
    return addresses


def mapped():
    region = mmap.mmap(-1, 32 * MIB)  # known: mapped
    truth.site("mapped", mapped, 32 * MIB)
    return region


def churn():
    for _ in range(60):
        bytes(MIB)  # known: churn
    truth.site("churn", churn, 0, 60 * sys.getsizeof(bytes(MIB)))


def main():
    # The agent may use a share of the program's own CPU time: a program that only allocates, for a
    # fraction of a second, would get too few samples to be checked line by line.
    block = bytes(MIB)
    while time.process_time() < 1.5:
        zlib.crc32(block)
    store = Store()
    store.fill()
    kept = [
        large_bytes(),
        small_bytes(),
        strings(),
        tuples(),
        grown_list(),
        recurse(200),
        asyncio.run(coroutine()),
        native(),
        mapped(),
        store,
    ]
    churn()
    truth.report()
    # Skips the interpreter's finalization, which would free everything, so that what was kept is live at the end.
    os._exit(len(kept) - 10)


if __name__ == "__main__":
    main()
