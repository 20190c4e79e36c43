"""NumPy, torch, and malloc through ctypes, at least 32 MB each: `known_libraries.py SEED`."""

import ctypes
import random
import sys

import known
import numpy
import torch

random.seed(int(sys.argv[1]))
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
truth: dict[str, dict[str, int]] = {}


def site_numpy(sizes: list[int]) -> list:
    return [numpy.empty(size, dtype=numpy.uint8) for size in sizes]


def site_torch(sizes: list[int]) -> list:
    return [torch.empty(size, dtype=torch.uint8) for size in sizes]


def site_malloc(sizes: list[int]) -> list:
    malloc = libc.malloc
    return [malloc(size) for size in sizes]


kept = []
for site in (site_numpy, site_torch, site_malloc):
    sizes = [random.randrange(8_000, 60_000) for _ in range(1_500)]
    kept.append(site(sizes))
    truth[site.__name__] = {"liveBytes": sum(sizes), "allocatedBytes": sum(sizes)}
known.report([], truth)
