"""A service that keeps too much: a bounded deque of records, and an unbounded counter.

Prints where things are; then, for each byte that it reads, checks the references in the file given first
(JSON, pairs of addresses) against the collector's own view, and prints those that the collector does not know.
"""

import collections
import ctypes
import gc
import json
import os
import sys
import weakref

records = collections.deque(maxlen=100)
running_stats = {}
boxed = [float(i) for i in range(20000)]


class Session:
    def __init__(self, user):
        self.user = user
        self.history = [{"n": n} for n in range(3)]


class Node:
    def __init__(self):
        self.me = self
        self.load = [object() for _ in range(50)]


SESSIONS = {f"session {i}": Session(f"user {i}") for i in range(500)}
WATCHED = [weakref.ref(session) for session in SESSIONS.values()]


def handle(request):
    records.append({"id": request, "text": "x" * 50})
    running_stats[f"request {request}"] = [request, float(request)]


def serve(count):
    for request in range(count):
        handle(request)


serve(int(sys.argv[2]))
gc.collect()
gc.disable()
for _ in range(20):
    Node()  # refers to itself: garbage that is never collected


def say(value):
    os.write(1, json.dumps(value).encode() + b"\n")
    return os.read(0, 1)


def attributes_block(instance):
    """Address of the block with the attribute values, where they have a separate block (3.11 and 3.12): the first value
    is preceded by a prefix whose last byte is its size."""
    if sys.version_info[:2] == (3, 11):
        values = ctypes.c_size_t.from_address(id(instance) - 32).value
    elif sys.version_info[:2] == (3, 12):
        values = ctypes.c_size_t.from_address(id(instance) - 24).value + 1
    else:
        return None
    return hex(values - ctypes.c_ubyte.from_address(values - 1).value)


answer = {
    "stats": hex(id(running_stats)),
    "session": hex(id(SESSIONS["session 7"])),
    "attributes": attributes_block(SESSIONS["session 8"]),
    "eighth": hex(id(SESSIONS["session 8"])),
    "history": hex(id(SESSIONS["session 7"].history[1])),
    "values": [hex(id(value)) for value in list(running_stats.values())[:20]],
}
while say(answer):
    with open(sys.argv[1]) as file:
        pairs = json.load(file)
    unknown = []
    for a, b in pairs:
        holder, held = (ctypes.cast(int(x, 16), ctypes.py_object).value for x in (a, b))
        # The collector does not see the attributes of a class, or of an instance without a dict.
        known = gc.get_referents(holder) + list(getattr(holder, "__dict__", {}).values())
        if not any(value is held for value in known):
            unknown.append([type(holder).__name__, type(held).__name__])
    answer = {"unknown": unknown}
