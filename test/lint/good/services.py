"""Look-alikes of clients, tasks and files that stay open."""
import asyncio
import contextvars
import csv
import gc
import logging
import queue
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import aiohttp
import httpx
import matplotlib.pyplot as plt
import requests
import sqlite3
from fastapi import Depends, FastAPI, Request
from prometheus_client import Counter
from transformers import AutoTokenizer

app = FastAPI()
client = httpx.AsyncClient()
pool = ThreadPoolExecutor(4)
tokenizer = AutoTokenizer.from_pretrained("gpt2")
jobs = queue.Queue(maxsize=100)
hits = Counter("hits", "Hits", ["route", "status"])
request_id = contextvars.ContextVar("request_id")
logger = logging.getLogger(__name__)
tasks = set()
_session = None


async def get_session():
    global _session
    if _session is None:
        _session = aiohttp.ClientSession()
    return _session


@app.get("/a")
async def a(request: Request):
    async with httpx.AsyncClient() as own:
        response = await own.get("http://x")
    hits.labels(route="/a", status=response.status_code).inc()
    token = request_id.set(request.headers["x-id"])
    try:
        return response.json()
    finally:
        request_id.reset(token)


@app.get("/b")
def b():
    with closing(sqlite3.connect("x.db")) as connection:
        return connection.execute("select 1").fetchone()


@app.post("/c")
async def c(payload: dict):
    task = asyncio.create_task(work(payload))
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    jobs.put_nowait(payload)


def database():
    connection = sqlite3.connect("x.db")
    try:
        yield connection
    finally:
        connection.close()


def fetch_all(urls):
    with requests.Session() as session:
        return [session.get(url).text for url in urls]


def read(path):
    f = open(path)
    try:
        return f.read()
    finally:
        f.close()


def opened(path):
    return open(path)


def many(paths):
    with ExitStack() as stack:
        files = [stack.enter_context(open(path)) for path in paths]
        return [f.readline() for f in files]


def connect_with_retry():
    for attempt in range(5):
        try:
            return httpx.Client()
        except OSError:
            continue
    while True:
        try:
            session = requests.Session()
            break
        except OSError:
            pass
    return session


def run_all(commands):
    for command in commands:
        process = subprocess.Popen(command)
        process.wait()
    with ThreadPoolExecutor() as workers:
        return list(workers.map(len, commands))


def errors_of(items):
    errors = []
    for item in items:
        try:
            item.run()
        except ValueError as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("failed", errors)


def plots(series):
    for name, values in series.items():
        figure, axes = plt.subplots()
        axes.plot(values)
        figure.savefig(name)
        plt.close(figure)


def without_gc(function):
    gc.disable()
    try:
        return function()
    finally:
        gc.enable()


async def first(a, b):
    while True:
        tasks = {asyncio.create_task(a()), asyncio.create_task(b())}
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()


def rows(path):
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            yield row


class Worker:
    def __init__(self, name):
        self.log = logging.getLogger(f"{__name__}.Worker")
        self.queue = queue.Queue(10)
        self.session = requests.Session()

    def close(self):
        self.session.close()
