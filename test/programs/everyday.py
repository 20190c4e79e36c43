"""What programs typically keep: parsed JSON, records, sets, deques, split text; measured by tracemalloc."""
import collections
import dataclasses
import json
import os
import time
import tracemalloc
import zlib


@dataclasses.dataclass
class Order:
    number: int
    name: str
    lines: list


def parsed():
    text = json.dumps([{"id": n, "name": "item %d" % n, "tags": ["a%d" % n, "b"]} for n in range(30_000)])
    return json.loads(text)


def records():
    found = []
    for number in range(40_000):
        found.append(Order(number, "order", []))
    return found


def index(items):
    by_name = {}
    for item in items:
        by_name[item["name"]] = (item["id"], len(by_name))
    return by_name


def words():
    text = " ".join("word%06d" % n for n in range(120_000))
    return text.split(" ")


def sets():
    found = []
    for number in range(8_000):
        found.append({number, -number, number * 3, number * 5, number * 7, number * 11})
    return found


def queue():
    waiting = collections.deque()
    for number in range(60_000):
        waiting.append(float(number))
    return waiting


def grouped():
    groups = collections.defaultdict(list)
    for number in range(200_000):
        groups[number % 997].append(number)
    return groups


def main():
    # The agent may use a share of the program's own CPU time, so use some CPU time.
    block = bytes(1 << 20)
    while time.process_time() < 1.5:
        zlib.crc32(block)
    tracemalloc.start(1)
    items = parsed()
    kept = [items, records(), index(items), words(), sets(), queue(), grouped()]
    snapshot = tracemalloc.take_snapshot()
    sites = [
        {
            "name": "line",
            "function": "",
            "file": os.path.basename(found.traceback[0].filename),
            "line": found.traceback[0].lineno,
            "liveBytes": found.size,
            "allocatedBytes": None,
        }
        for found in snapshot.statistics("lineno")[:12]
    ]
    print(json.dumps({"pid": os.getpid(), "python": "", "maxRssBytes": 0, "sites": sites}), flush=True)
    os._exit(len(kept) - 7)


main()
