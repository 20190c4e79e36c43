"""Creates objects of every layout that CPython has, prints the interpreter's own counts, and waits."""

import array
import collections
import gc
import json
import os
import sys


class Plain:
    def __init__(self, value):
        self.value = value
        self.more = [value]


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, value):
        self.a = value
        self.b = None


class Text(str):
    pass


class Ascii(str):
    pass


class Number(int):
    pass


class Blob(bytes):
    pass


class Large(bytes):
    pass


class LargeText(str):
    pass


class Mapping(dict):
    pass


class Meta(type):
    pass


class Nested:
    class Inner(metaclass=Meta):
        def __init__(self):
            self.here = 1


Pair = collections.namedtuple("Pair", "left right")
n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
KEPT = {
    "plain": [Plain(i + 100000) for i in range(n)],
    "slotted": [Slotted(i + 200000) for i in range(n)],
    "text": [Text("é" * (i % 700)) for i in range(n)],
    "ascii": [Ascii("a" * (i % 900)) for i in range(n)],
    "number": [Number(7 ** (i % 300)) for i in range(n)],
    "blob": [Blob(b"x" * (i % 1500)) for i in range(n)],
    # malloc gives each its own mapping
    "large": [Large(b"x" * (200_000 * i)) for i in range(1, 9)],
    "large text": [LargeText("é" * (300_000 * i)) for i in range(1, 9)],
    "mapping": [Mapping((j, "v") for j in range(i % 60)) for i in range(n)],
    "inner": [Nested.Inner() for _ in range(n)],
    "pairs": [Pair(i, float(i)) for i in range(n)],
    "tuples": [tuple(range(i % 200)) for i in range(n)],
    "sets": [frozenset(range(i % 40)) for i in range(n)],
    "deques": [collections.deque(range(i % 300)) for i in range(n)],
    "bytearrays": [bytearray(i) for i in range(n)],
    "arrays": [array.array("d", range(i % 90)) for i in range(n)],
    "lists": [list(range(i % 300)) for i in range(n)],
    "ordered": [collections.OrderedDict.fromkeys(range(i % 20)) for i in range(n)],
    "functions": [lambda i=i: i for i in range(n)],
    "generators": [(x for x in "abc") for _ in range(n)],
    "sparse": dict.fromkeys(range(100000)),
    "words": {f"key {i}": None for i in range(50000)},
}
for kept in KEPT["plain"][: n // 2]:
    kept.__dict__["odd"] = kept
for kept in KEPT["plain"][: n // 4]:
    setattr(kept, f"odd{id(kept)}", 1)

gc.collect()
gc.disable()


def name(kind):
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def collect():
    counts, sizes = collections.Counter(), collections.Counter()
    names = {}
    seen = gc.get_objects()
    for value in seen:
        kind = type(value)
        counts[kind] += 1
        sizes[kind] += sys.getsizeof(value)
    del seen, value
    known = {}
    for group in KEPT.values():
        if type(group) is list and type(group[0]) not in known:
            known[type(group[0])] = f"{len(group)} {sum(map(sys.getsizeof, group))}"
    return {
        # Strings, because they are not of the kinds that are counted.
        "tracked": {name(kind): f"{counts[kind]} {sizes[kind]}" for kind in counts},
        "known": {name(kind): text for kind, text in known.items()},
        "blocks": sys.getallocatedblocks(),
    }


answer = collect()
print(json.dumps(answer), flush=True)
os.read(0, 1)
