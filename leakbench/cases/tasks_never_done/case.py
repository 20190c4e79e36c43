"""Each message starts a task that waits for an answer; the answer never comes."""
import asyncio
import os

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 32))
pending = set()


async def wait_for_answer(message, answered):
    copy = dict(message)
    await answered.wait()
    return copy


async def on_message(number):
    message = {"number": number, "text": f"hello {number} " * 80}
    task = asyncio.create_task(wait_for_answer(message, asyncio.Event()))
    pending.add(task)
    task.add_done_callback(pending.discard)


async def main():
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS
    number = 0
    while loop.time() < end:
        await on_message(number)
        number += 1
        await asyncio.sleep(0.005)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


asyncio.run(main())
