"""A small FastAPI service."""
import asyncio
import functools
import logging
import threading
from collections import defaultdict, deque

import httpx
import redis
from fastapi import FastAPI, Request
from prometheus_client import Counter, Histogram
from sqlalchemy import create_engine

app = FastAPI()
visits = {}
by_tenant = defaultdict(list)
background = set()
jobs = []
LATENCY = Histogram("latency", "seconds", ["route", "user"])


@app.get("/items/{item_id}")
async def item(item_id: str, request: Request):
    visits[item_id] = visits.get(item_id, 0) + 1  # leak: TM-L001
    by_tenant[request.headers["x-tenant"]].append(item_id)  # leak: TM-L006
    LATENCY.labels("item", request.headers["x-user"]).observe(1)  # leak: TM-L032
    client = httpx.AsyncClient()  # leak: TM-L026
    answer = await client.get("http://up/" + item_id)
    return answer.json()


@app.post("/jobs")
async def submit(request: Request):
    task = asyncio.create_task(work(await request.json()))
    background.add(task)  # leak: TM-L022
    return {"n": len(background)}


async def work(body):
    await asyncio.sleep(1)


@app.post("/report")
def report(body: dict):
    engine = create_engine("postgresql://db/app")  # leak: TM-L026
    log = logging.getLogger("report." + body["id"])  # leak: TM-L030
    log.addHandler(logging.StreamHandler())  # leak: TM-L029
    with engine.connect() as connection:
        rows = connection.execute("select 1").fetchall()
    jobs.append(body)  # leak: TM-L001
    return rows


class Prices:
    def __init__(self, session):
        self.session = session

    @functools.lru_cache(maxsize=None)  # leak: TM-L007
    def price(self, sku):
        return self.session.get(sku)

    def per_day(self, day, seen=[]):
        seen.append(day)  # leak: TM-L010
        return len(seen)


@app.on_event("startup")
async def start():
    asyncio.create_task(pump())


async def pump():
    outcomes = []
    connection = redis.Redis()
    while True:
        message = connection.blpop("queue")
        outcomes.append(message)  # leak: TM-L005
        await asyncio.sleep(0)


@app.middleware("http")
async def trace(request, call_next):
    try:
        return await call_next(request)
    except Exception as error:
        app.state.problems.append(error)  # leak: TM-L001
        raise


def handler(event, context):
    worker = threading.Timer(3600, print, args=(event,))
    worker.start()
    return deque([event])
