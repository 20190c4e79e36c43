"""Clients, pools, tasks and registries of services."""
import asyncio
import atexit
import contextvars
import gc
import logging
import multiprocessing as mp
import queue
import sqlite3
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import aiohttp
import boto3
import httpx
import matplotlib.pyplot as plt
import redis
import requests
from fastapi import APIRouter, FastAPI, Request, WebSocket
from openai import OpenAI
from prometheus_client import Counter, Gauge, Histogram
from pydantic import create_model
from sqlalchemy import create_engine
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

app = FastAPI()
router = APIRouter()
LATENCY = Histogram("latency", "Latency", ["path", "user"])
requests_total = Counter("n", "n", ["session"])
logger = logging.getLogger(__name__)
listeners = []
last_error = None
problems = {}
background = set()
futures = []
streams = []
work_queue = queue.Queue()
sockets = {}


@router.get("/s3/{key}")
async def download(key: str):
    s3 = boto3.client("s3")  # leak: TM-L026
    return s3.get_object(Bucket="b", Key=key)


@app.get("/proxy")
def proxy(url: str):
    session = requests.Session()  # leak: TM-L026
    return session.get(url).text


@app.get("/rows")
def rows():
    engine = create_engine("postgresql://db")  # leak: TM-L026
    return list(engine.connect().execute("select 1"))


async def handle_client(reader, writer):
    session = aiohttp.ClientSession()  # leak: TM-L026
    response = await session.get("http://upstream")
    writer.write(await response.read())


def crawl(urls):
    for url in urls:
        conn = sqlite3.connect("pages.db")  # leak: TM-L026
        conn.execute("insert into page values (?)", (url,))


@app.post("/cache")
def cached_get(name: str):
    return redis.Redis(host="r").get(name)  # leak: TM-L026


def handle_event(event, context):
    executor = ThreadPoolExecutor(4)  # leak: TM-L027
    return [executor.submit(work, e).result() for e in event["records"]]


@app.post("/crunch")
def crunch(n: int):
    pool = mp.Pool(4)  # leak: TM-L027
    return pool.map(square, range(n))


@app.post("/generate")
def generate(prompt: str):
    tok = AutoTokenizer.from_pretrained("gpt2")  # leak: TM-L028
    model = AutoModelForCausalLM.from_pretrained("gpt2")  # leak: TM-L028
    return model.generate(**tok(prompt))


@app.post("/classify")
async def classify(text: str):
    clf = pipeline("sentiment-analysis")  # leak: TM-L028
    return clf(text)


class Job:
    def __init__(self, job_id):
        self.log = logging.getLogger("job")
        self.log.addHandler(logging.StreamHandler())  # leak: TM-L029


@app.middleware("http")
async def log_requests(request: Request, call_next):
    handler = logging.FileHandler("/tmp/req.log")
    logger.addHandler(handler)  # leak: TM-L029
    return await call_next(request)


class Connection:
    def __init__(self, peer):
        self.logger = logging.getLogger("conn." + peer.id)  # leak: TM-L030
        atexit.register(self.close)  # leak: TM-L018

    def close(self):
        pass


def start_trace():
    rid = uuid.uuid4().hex
    return logging.getLogger(f"trace.{rid}")  # leak: TM-L030


@app.get("/gauge")
def gauge(name: str):
    g = Gauge(f"g_{name}", "doc")  # leak: TM-L031
    g.set(1)


@app.get("/timed")
def timed(request: Request, user_id: str):
    LATENCY.labels(request.url.path, user_id).observe(1)  # leak: TM-L032
    requests_total.labels(session=request.cookies["session_id"]).inc()  # leak: TM-L032


def track_login(statsd, user):
    statsd.incr(f"login.{user.id}")  # leak: TM-L032


class Widget:
    def __init__(self, bus):
        self.data = bytearray(1 << 20)
        listeners.append(self.on_event)  # leak: TM-L019

    def on_event(self, event):
        return self.data


class Panel:
    observers = []

    def __init__(self):
        Panel.observers.append(lambda e: self.refresh(e))  # leak: TM-L019


def run_job(job):
    global last_error
    try:
        job.run()
    except ValueError as exc:
        last_error = exc  # leak: TM-L020
        problems[job.id] = exc  # leak: TM-L020


class Runner:
    failures = []

    def run(self, task):
        try:
            task()
        except Exception:
            self.failures.append(sys.exc_info())  # leak: TM-L020


def lines(path):
    with open(path) as f:
        yield from f


def follow(path):
    stream = lines(path)
    next(stream)
    streams.append(stream)  # leak: TM-L021


@app.post("/start")
async def start(payload: dict):
    background.add(asyncio.create_task(process(payload)))  # leak: TM-L022


class Scheduler:
    def __init__(self):
        self.tasks = []
        self.executor = ThreadPoolExecutor()

    def submit(self, fn, *args):
        future = self.executor.submit(fn, *args)
        self.tasks.append(future)  # leak: TM-L022
        return future


async def race(event, inbox):
    while True:
        waiter = asyncio.ensure_future(event.wait())
        getter = asyncio.ensure_future(inbox.get())
        await asyncio.wait({waiter, getter}, return_when=asyncio.FIRST_COMPLETED)  # leak: TM-L023


@app.post("/jobs")
def submit_job(job: dict):
    work_queue.put(job)  # leak: TM-L024


class Pipeline:
    def __init__(self):
        self.inbox = asyncio.Queue()  # leak: TM-L024

    async def on_message(self, message):
        await self.inbox.put(message)


def checksum(paths):
    out = []
    for path in paths:
        fh = open(path, "rb")  # leak: TM-L025
        out.append(hash(fh.read()))
    return out


def config(path):
    import json
    return json.load(open(path))  # leak: TM-L025


def word_count(path):
    f = open(path)
    n = 0
    for line in f.readlines():  # leak: TM-L034
        n += len(line.split())
    f.close()
    return n


def export(cursor):
    cursor.execute("select * from events")
    for row in cursor.fetchall():  # leak: TM-L034
        write(row)


@app.post("/no_gc")
def no_gc():
    gc.disable()  # leak: TM-L038
    return heavy()


contexts = []


def capture_context():
    contexts.append(contextvars.copy_context())  # leak: TM-L039


@app.get("/var")
async def scoped():
    var = contextvars.ContextVar("v")  # leak: TM-L039
    var.set(object())


@app.websocket("/ws/{room}")
async def room(websocket: WebSocket, room: str):
    await websocket.accept()
    sockets[room] = websocket  # leak: TM-L040
    while True:
        await websocket.receive_text()


@app.get("/remember")
async def remember(request: Request):
    app.state.last_request = request  # leak: TM-L040


def simulate():
    points = [float(i) for i in range(10_000_000)]  # leak: TM-L041
    return points


def plot_all(series):
    for name, values in series.items():
        plt.figure()  # leak: TM-L042
        plt.plot(values)
        plt.savefig(name)


@app.get("/chart")
def chart():
    fig, ax = plt.subplots()  # leak: TM-L042
    fig.savefig("/tmp/x.png")


@app.post("/model")
def dynamic(schema: dict):
    Model = create_model("Dyn", **schema)  # leak: TM-L044
    return Model(**schema)


@app.post("/convert")
def convert(name: str):
    subprocess.Popen(["ffmpeg", name])  # leak: TM-L045


def handle_connection(conn):
    def on_close():
        conn.buffer.clear()

    bus.subscribe("close", on_close)  # leak: TM-L018
