"""A web application whose middleware remembers every request for debugging."""
import asyncio
import os
import time

from fastapi import FastAPI, Request

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
app = FastAPI()
seen = []


@app.middleware("http")
async def debug(request: Request, call_next):
    response = await call_next(request)
    seen.append({"url": str(request.url), "headers": dict(request.headers), "scope": request.scope})
    return response


@app.get("/items/{item}")
async def item(item: int):
    return {"item": item, "related": [item + i for i in range(20)]}


async def call(path):
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
             "query_string": b"", "headers": [(b"host", b"x"), (b"user-agent", b"t" * 200)],
             "http_version": "1.1", "scheme": "http", "root_path": "",
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "asgi": {"version": "3.0"}}

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        return None

    await app(scope, receive, send)


async def main():
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end:
        await call(f"/items/{number}")
        number += 1
        await asyncio.sleep(0.008)


asyncio.run(main())
