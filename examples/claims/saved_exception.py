"""Claim: a stored exception is small."""

import weakref

from figures import conclude, show


class Batch:
    def __init__(self):
        self.data = bytearray(10_000_000)


references = []


def train():
    batch = Batch()
    references.append(weakref.ref(batch))
    raise ValueError("bad batch")


saved = None
try:
    train()
except ValueError as error:
    saved = error
alive = references[0]() is not None
show("train() has ended; its local variable `batch` is alive", "yes" if alive else "no")

saved = saved.with_traceback(None)
freed = references[0]() is None
show("after with_traceback(None), it is alive", "no" if freed else "yes")
conclude(alive and freed, "an exception keeps its traceback, and that keeps the locals of every frame")
