"""Allocates at known places, and prints the stack that CPython itself reports for each place.

Prints a JSON object: bytes of the allocation -> [[function, file, line], ...], leaf first.
Ends without finalizing, so that everything kept is live in the segment.
"""

import asyncio
import functools
import json
import os
import sys
import threading

truth = {}
kept = []
next_size = 256 << 20  # far above any period, so always sampled; zeroed pages that nobody touches cost nothing


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def note(frame):
    """Records the stack under a unique size, and returns that size."""
    global next_size
    next_size += 16
    stack = []
    while frame:
        stack.append([name_of(frame.f_code), frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    truth[next_size + bytes_overhead] = stack
    return next_size


bytes_overhead = sys.getsizeof(b"")


def take(*_):
    kept.append(bytes(note(sys._getframe())))


take()


def nested():
    def inner():
        def innermost():
            take()
        innermost()
    inner()


nested()


class Class:
    take()  # a class body is a frame

    def method(self):
        take()

    @classmethod
    def class_method(cls):
        take()

    @staticmethod
    def static_method():
        take()

    @property
    def attribute(self):
        take()
        return 1

    def __call__(self):
        take()

    def __enter__(self):
        take()

    def __exit__(self, *_):
        take()

    def __getitem__(self, index):
        take()
        return index

    class Inner:
        def method(self):
            take()


instance = Class()
instance.method()
Class.class_method()
Class.static_method()
instance.attribute
instance()
with instance:
    take()
instance[1]
Class.Inner().method()

(lambda: take())()
[take() for _ in range(2)]
{take(): None for _ in range(1)}
list(take() for _ in range(2))
list(map(lambda _: take(), [1, 2]))
sorted([2, 1], key=lambda value: (take(), value)[1])
functools.reduce(lambda a, b: take(), [1, 2, 3])

# A function with a long line table, which allocates at one place after another, forwards and backwards.
long_source = "def long(steps):\n  for step in steps:\n" + "".join(
    f"    if step == {n}:\n{chr(10) * (n * 37 % 300)}      take(\n        {n},\n      )\n" for n in range(200))
exec(compile(long_source, "long.py", "exec"))
long([0, 1, 150, 151, 199, 199, 3, 150, 149, 42, 0, 198])


def generator():
    take()
    for _ in range(3):
        yield take()
    yield from another()


def another():
    yield take()
    take()


for _ in generator():
    take()


def decorate(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(
            *arguments,
        )
    return wrapper


@decorate
@decorate
def decorated(
    first,
    second=2,
):
    take()


decorated(
    1,
    2,
)


def three(a, b, c):
    pass


three(
    take(),
    [
        take(),
        take(
            1,
            2,
        ),
    ],
    take(
    ),
)

(
    kept
    .append(
        take()
    )
)

exec("def executed():\n    take()\n\n\nexecuted()\ntake()")
eval("take()")
exec(compile("\n" * 70000 + "take()", "<far away>", "exec"))
exec(compile("def fé中():\n  take()\nfé中()", "weird\u4e2d/\U0001f600.py", "exec"))


def raising():
    try:
        try:
            raise ValueError(take())
        finally:
            take()
    except ValueError:
        take()
    else:
        pass


raising()


def recursive(depth):
    if depth:
        return recursive(depth - 1)
    take()


recursive(60)
sys.setrecursionlimit(3000)
recursive(700)


def many_lines(which):
    if which == 0:
        take()
    elif which == 1:

        # a comment and blank lines between




        take(
            which
        )
    while which < 3:
        which += 1; take()
    for _ in range(1): take()
    return (
        take()
        if which
        else None
    )


many_lines(0)
many_lines(1)


async def coroutine(depth):
    take()
    await asyncio.sleep(0)
    take()
    if depth:
        await coroutine(depth - 1)
        async for _ in asynchronous():
            take()


async def asynchronous():
    take()
    await asyncio.sleep(0)
    yield take()


async def together():
    await asyncio.gather(coroutine(1), coroutine(0))


asyncio.run(together())


class Deleted:
    def __del__(self):
        take()


deleted = Deleted()
del deleted


def in_thread():
    recursive(3)


threads = [threading.Thread(target=in_thread) for _ in range(3)]
for thread in threads:
    thread.start()
    thread.join()

try:
    import greenlet
except ImportError:
    pass
else:
    def in_greenlet():
        take()
        greenlet.getcurrent().parent.switch()
        take()

    switched = greenlet.greenlet(in_greenlet)
    switched.switch()
    take()
    switched.switch()

json.dump(truth, sys.stdout)
sys.stdout.flush()
os._exit(0)
