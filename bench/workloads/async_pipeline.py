"""Coroutines that pass messages through queues and a loopback socket."""

import asyncio


async def producer(queue, count):
    for number in range(count):
        await queue.put({"number": number, "body": b"x" * (number % 400)})
    await queue.put(None)


async def consumer(queue, writer):
    while (message := await queue.get()) is not None:
        writer.write(len(message["body"]).to_bytes(4, "big") + message["body"])
        if message["number"] % 50 == 0:
            await writer.drain()
    writer.close()


async def main():
    received = 0
    done = asyncio.Event()

    async def serve(reader, writer):
        nonlocal received
        while header := await reader.read(4):
            header += await reader.readexactly(4 - len(header))
            received += len(await reader.readexactly(int.from_bytes(header, "big")))
        writer.close()
        done.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    queue: asyncio.Queue = asyncio.Queue(100)
    await asyncio.gather(producer(queue, 300_000), consumer(queue, writer))
    await done.wait()
    server.close()
    print(received)


asyncio.run(main())
