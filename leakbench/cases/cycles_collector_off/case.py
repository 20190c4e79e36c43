"""The collector was switched off for latency; parent and child refer to each other."""
import gc
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 32))
gc.disable()


class Node:
    def __init__(self, parent, payload):
        self.parent = parent
        self.payload = payload
        self.children = []


def parse(number):
    root = Node(None, f"document {number}" * 20)
    for i in range(40):
        root.children.append(Node(root, f"{number}:{i}" * 12))
    return root


def count(root):
    return 1 + sum(count(child) for child in root.children)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    count(parse(number))
    number += 1
    time.sleep(0.006)
