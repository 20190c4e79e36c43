"""Containers of many kinds: prints the size of each, including everything it holds, by the interpreter's own
account, and waits."""

import array
import collections
import ctypes
import functools
import gc
import json
import os
import sys


class Record:
    __slots__ = ("number", "text")

    def __init__(self, number, text):
        self.number, self.text = number, text


class Model:
    def __init__(self, key):
        self.key = key
        self._state = {"db": "default", "adding": False}
        self.values = [key] * 4


class Service:
    @functools.lru_cache(maxsize=None)
    def compute(self, number):
        return [number, str(number)]


def fail(number):
    evidence = [number] * 1000
    raise KeyError(len(evidence))


def deep(root):
    seen, todo, total = set(), [root], 0
    while todo:
        value = todo.pop()
        if id(value) in seen or isinstance(value, (type, type(sys))):
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        todo.extend(gc.get_referents(value))
    return total


LARGE_SET = {f"item {i}" for i in range(60_000)}
NUMBERS = array.array("d", range(200_000))
RECORDS = collections.deque((Record(i + 5000, f"record {i}") for i in range(5000)), maxlen=5000)
CACHE = {i + 1000: Model(i + 5000) for i in range(4000)}
BUFFER = (ctypes.c_char * (2 << 20))()
service = Service()
for i in range(5000):
    service.compute(i + 1000)
FAILED = []
for i in range(100):
    try:
        fail(i)
    except KeyError as error:
        FAILED.append(error)
gc.collect()
answer = {
    name: [hex(id(value)), deep(value)]
    for name, value in (("LARGE_SET", LARGE_SET), ("NUMBERS", NUMBERS), ("RECORDS", RECORDS), ("CACHE", CACHE))
}
answer["BUFFER"] = [hex(id(BUFFER)), ctypes.sizeof(BUFFER)]
answer["compute"] = [hex(id(Service.compute)), 0]
answer["FAILED"] = [hex(id(FAILED)), 100 * sys.getsizeof([0] * 1000)]
print(json.dumps(answer), flush=True)
os.read(0, 1)
