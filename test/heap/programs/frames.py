"""Holds objects in locals of every kind, prints where each is, and waits."""

import asyncio
import functools
import json
import os
import threading


class Held(dict):
    """The program has no other instance."""


class Slotted:
    __slots__ = ("first", "second")


class More(Slotted):
    __slots__ = ("third",)


where = {}


def held(name):
    value = Held()
    where[name] = hex(id(value))
    return value


def in_thread(ready):
    own = held("local of a thread")
    shared = held("cell")

    def inner():
        return shared

    ready.set()
    threading.Event().wait()
    return own, inner


def produce(items):
    kept = held("local of a generator")
    yield len(kept) + len(items)


async def handle():
    payload = held("local of a coroutine")
    await asyncio.Event().wait()
    return payload


def fail():
    evidence = held("local of a traceback")
    raise ValueError(len(evidence))


def serve(port, sessions):
    global FAILED, PRODUCED, LOOP, TASK, SLOTS, PARTIAL
    try:
        fail()
    except ValueError as error:
        FAILED = error.with_traceback(error.__traceback__.tb_next)
    PRODUCED = produce(held("argument of a generator"))
    next(PRODUCED)
    LOOP = asyncio.new_event_loop()
    TASK = LOOP.create_task(handle())
    LOOP.run_until_complete(asyncio.sleep(0))
    SLOTS = More()
    SLOTS.second, SLOTS.third = held("inherited slot"), held("slot")
    PARTIAL = functools.partial(print, held("partial"))
    ready = threading.Event()
    threading.Thread(target=in_thread, args=(ready,), name="worker", daemon=True).start()
    ready.wait()
    print(json.dumps(where), flush=True)
    os.read(0, 1)
    return port, sessions


serve(80, held("argument"))
