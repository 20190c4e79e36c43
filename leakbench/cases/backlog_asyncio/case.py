"""A prefetching task fills an asyncio queue that its consumer empties too slowly."""
import asyncio
import os
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))


class Pipeline:
    def __init__(self):
        self.waiting = asyncio.Queue()

    async def prefetch(self, end):
        number = 0
        while time.monotonic() < end:
            await self.waiting.put((number, [number + i for i in range(200)]))
            number += 1
            await asyncio.sleep(0.004)

    async def consume(self):
        while True:
            _, values = await self.waiting.get()
            sum(values)
            await asyncio.sleep(0.006)


async def main():
    pipeline = Pipeline()
    consumer = asyncio.create_task(pipeline.consume())
    await pipeline.prefetch(time.monotonic() + SECONDS)
    consumer.cancel()


asyncio.run(main())
