"""Allocates under labels in functions, generators, threads and tasks.

Prints a JSON object: bytes of the allocation -> its labels.
"""

import asyncio
import contextvars
import json
import os
import sys
import threading

import tidemark

truth = {}
kept = []
header = sys.getsizeof(b"")
others = [contextvars.ContextVar(f"other{i}") for i in range(300)]
lock = threading.Lock()


def take(**labels):
    with lock:
        size = (256 << 20) + 16 * len(truth)
        truth[size + header] = {key: str(value) for key, value in labels.items()}
    kept.append(bytes(size))


take()
with tidemark.label(endpoint="/x"):
    take(endpoint="/x")
    with tidemark.label(endpoint="/y", tenant=7):
        take(endpoint="/y", tenant=7)
    with tidemark.label(tenant="\u00e9\u4e2d\x1f\x1e"):
        take(endpoint="/x", tenant="\u00e9\u4e2d  ")
    take(endpoint="/x")
take()


@tidemark.label(stage="plain")
def plain():
    take(stage="plain")


@tidemark.label(stage="generator")
def generator():
    take(stage="generator")
    sent = yield 1
    take(stage="generator")
    assert sent == "sent"
    try:
        yield 2
    except KeyError:
        take(stage="generator")
    return 3


@tidemark.label(stage="coroutine")
async def coroutine():
    take(stage="coroutine")
    await asyncio.sleep(0)
    take(stage="coroutine")


@tidemark.label(stage="asynchronous")
async def asynchronous():
    take(stage="asynchronous")
    yield 1
    await asyncio.sleep(0)
    take(stage="asynchronous")


plain()
running = generator()
assert next(running) == 1
take()
assert running.send("sent") == 2
take()
try:
    running.throw(KeyError())
except StopIteration as stop:
    assert stop.value == 3
take()

shared = tidemark.label(shared=1)


async def task(number):
    with tidemark.label(task=number):
        for index, other in enumerate(others[:number * 60]):
            other.set(index)
        for _ in range(3):
            take(outer="main", task=number)
            await asyncio.sleep(0)
        with shared:
            await asyncio.sleep(0)
            take(outer="main", task=number, shared=1)
        await asyncio.create_task(child(number))
    take(outer="main")


async def child(number):
    take(outer="main", task=number)


async def main():
    async with tidemark.label(outer="main"):
        await asyncio.gather(*(task(number) for number in range(5)))
        if hasattr(asyncio, "to_thread"):
            await asyncio.to_thread(take, outer="main")
    await coroutine()
    async for _ in asynchronous():
        take()


asyncio.run(main())
thread = threading.Thread(target=contextvars.Context().run, args=(take,))
thread.start()
thread.join()

for _ in range(2):
    with tidemark.step("train"):
        take(step="train")
tidemark.step("bare")
take()
tidemark.step("bare")
json.dump(truth, sys.stdout)
sys.stdout.flush()
os._exit(0)
