"""An asyncio service with a bounded cache and a task for each request, all of which end."""
import asyncio
import collections
import json
import os
import random

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
cache = collections.OrderedDict()


async def fetch(key):
    await asyncio.sleep(random.expovariate(100))
    return json.dumps({"key": key, "values": [random.random() for _ in range(40)]})


async def handle(key):
    if key in cache:
        cache.move_to_end(key)
        return cache[key]
    cache[key] = await fetch(key)
    while len(cache) > 800:
        cache.popitem(last=False)
    return cache[key]


async def main():
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS
    running = set()
    while loop.time() < end:
        task = asyncio.create_task(handle(random.randrange(4000)))
        running.add(task)
        task.add_done_callback(running.discard)
        await asyncio.sleep(0.006)
    await asyncio.gather(*running)


asyncio.run(main())
