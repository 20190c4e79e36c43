"""A fifth set, written after the rules were finished; its first result is the figure in docs/lint.md."""
import asyncio
import bisect
import collections
import dataclasses
import gc
import heapq
import io
import logging
import sqlite3
import sys
import threading
import time
import typing as t
import uuid
from contextvars import copy_context
from functools import cache, lru_cache, partial
from http.server import BaseHTTPRequestHandler
from queue import SimpleQueue

import aiohttp
import grpc
import httpx as hx
import matplotlib.pyplot as pyplot
import numpy
import pandas
import pika
import polars as pl
import torch as th
import torch.nn.functional as fn
from aiohttp import web
from aiokafka import AIOKafkaConsumer
from celery import Celery
from django.core.cache import caches
from django.db.models.signals import post_save
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from fastapi import Depends, FastAPI, WebSocket, WebSocketDisconnect
from google.cloud import storage
from motor.motor_asyncio import AsyncIOMotorClient
from nats.aio.client import Client as NATS
from opentelemetry import metrics
from prometheus_client import Gauge, Summary
from pydantic import BaseModel, create_model
from starlette.middleware.base import BaseHTTPMiddleware
from tqdm import tqdm
from transformers import AutoModel, pipeline

api = FastAPI()
jobs = Celery("jobs")
peers: list[WebSocket] = []
glossary: dict[str, t.Any] = {}
trail: t.List[tuple] = list()
nested: dict[str, dict[str, float]] = collections.defaultdict(dict)
line_up: list = []
line = SimpleQueue()
depth = Gauge("depth", "x", ["tenant_id"])
meter = metrics.get_meter(__name__)
asks = meter.create_counter("asks")


class Quote(BaseModel):
    symbol: str
    price: float


@api.websocket("/live")
async def live(sock: WebSocket):
    await sock.accept()
    peers.append(sock)  # leak: TM-L001 TM-L040
    while True:
        text = await sock.receive_text()
        for peer in peers:
            await peer.send_text(text)


@api.put("/quotes")
async def put_quote(quote: Quote, tenant: str = "x"):
    nested[tenant][quote.symbol] = quote.price  # leak: TM-L001 TM-L006
    glossary |= {quote.symbol: quote}
    depth.labels(tenant_id=tenant).set(len(nested))  # leak: TM-L032
    asks.add(1, attributes={"session": quote.symbol, "user": tenant})
    heapq.heappush(line_up, (time.time(), quote))  # leak: TM-L001
    trail.insert(0, (tenant, quote))  # leak: TM-L001
    return len(trail)


@api.post("/upload")
async def upload(name: str, blob: bytes):
    gcs = storage.Client()  # leak: TM-L026
    gcs.bucket("b").blob(name).upload_from_string(blob)
    channel = grpc.insecure_channel("svc:50051")  # leak: TM-L026
    api.state.names.append(name)  # leak: TM-L001 TM-L040
    Form = create_model("Form", name=(str, ...))  # leak: TM-L044
    return Form(name=name), channel


class Stamp(BaseHTTPMiddleware):
    def __init__(self, app):
        super().__init__(app)
        self.by_path = {}
        self.times = collections.deque()

    async def dispatch(self, request, call_next):
        began = time.time()
        answer = await call_next(request)
        self.by_path.setdefault(str(request.url), []).append(time.time() - began)  # leak: TM-L003 TM-L006
        self.times.append(began)  # leak: TM-L003
        return answer


def home(request: HttpRequest) -> HttpResponse:
    post_save.connect(lambda **kw: print(request), weak=False)  # leak: TM-L018
    logger = logging.getLogger("home." + str(uuid.uuid4()))  # leak: TM-L030
    logger.info("x")
    con = sqlite3.connect("db")  # leak: TM-L026
    return HttpResponse(con.execute("select 1").fetchone()[0])


class Handler(BaseHTTPRequestHandler):
    log: t.ClassVar[list] = []

    def do_POST(self):
        size = int(self.headers["content-length"])
        self.log.append(self.rfile.read(size))  # leak: TM-L002
        with open("/tmp/x", "ab") as f:
            f.write(self.log[-1])


@jobs.task(bind=True, max_retries=3)
def embed(self, text):
    model = AutoModel.from_pretrained("bert")  # leak: TM-L028
    try:
        return model(text)  # leak: TM-L015
    except Exception as err:
        glossary[self.request.id] = err  # leak: TM-L001 TM-L020


@jobs.task
def thumbs(paths):
    for p in paths:
        fig = pyplot.figure()  # leak: TM-L042
        fig.savefig(p)
    src = open(paths[0], "rb")  # leak: TM-L025
    return src.read(4)


@dataclasses.dataclass
class Session:
    who: str
    turns: list = dataclasses.field(default_factory=list)


class ChatService:
    def __init__(self, client: hx.AsyncClient) -> None:
        self.client = client
        self._by_id: dict[str, Session] = {}
        self._bg: set[asyncio.Task] = set()
        self._log = []

    async def say(self, chat_id: str, text: str) -> str:
        if (s := self._by_id.get(chat_id)) is None:
            self._by_id[chat_id] = s = Session(chat_id)  # leak: TM-L003
        s.turns.append(text)
        self._bg.add(asyncio.create_task(self.persist(s)))  # leak: TM-L022 TM-L003
        self._log += [(chat_id, text)]  # leak: TM-L003
        return await self.answer(text)

    async def persist(self, s):
        await self.client.post("/s", json=dataclasses.asdict(s))

    @cache
    def template(self, name):  # leak: TM-L007
        return name * 1000

    @lru_cache(maxsize=128)
    async def answer(self, text):  # leak: TM-L008
        return text


async def pump():
    offsets: dict = {}
    source = AIOKafkaConsumer("a")
    async for rec in source:
        offsets[rec.key] = rec.value  # leak: TM-L005
        line.put(rec)


def tick(host, buffer=collections.deque()):
    buffer.append(host)  # leak: TM-L010
    return buffer


def once(fn):
    answers = {}

    def call(key):
        try:
            return answers[key]
        except KeyError:
            answers[key] = fn(key)  # leak: TM-L004
            return answers[key]
    return call


@cache
def matrix(n: int, data: numpy.ndarray):  # leak: TM-L009
    return data * n


def trainer(net, data, opt):
    net.train()
    so_far = th.zeros(1)
    track = collections.defaultdict(list)
    for i, (a, b) in enumerate(tqdm(data)):
        opt.zero_grad(set_to_none=True)
        z = net(a)
        cost = fn.cross_entropy(z, b)
        cost.backward()
        opt.step()
        so_far = so_far + cost  # leak: TM-L011
        track["cost"].append(cost)  # leak: TM-L012
        if i % 2:
            track["logits"].append(z.softmax(-1))  # leak: TM-L012
    return so_far, track


def tune(net, data, opt):
    for a, b in data:
        cost = fn.mse_loss(net(a), b)
        cost.backward()  # leak: TM-L014
        opt.step()


def judge(net, data):
    net.eval()
    table = pandas.DataFrame()
    everything = numpy.array([])
    for a, _ in data:
        p = net(a)  # leak: TM-L015
        everything = numpy.concatenate([everything, p.cpu().numpy()])  # leak: TM-L036
        th.cuda.empty_cache()  # leak: TM-L037
    return table, everything


def probe(net, x):
    got = []
    h = net.layer4.register_forward_hook(lambda m, i, o: got.append(o))  # leak: TM-L017 TM-L016
    net(x)
    return got


async def fan_in(streams):
    while True:
        todo = [asyncio.ensure_future(s.read()) for s in streams]
        ready, _ = await asyncio.wait(todo, return_when=asyncio.FIRST_COMPLETED)  # leak: TM-L023
        for r in ready:
            print(r.result())


def startup():
    gc.disable()  # leak: TM-L038
    chan = pika.BlockingConnection().channel()
    chan.basic_consume(queue="q", on_message_callback=got_it)


keep: list = []


def got_it(ch, method, properties, body):
    keep.append(body)  # leak: TM-L001
    view = memoryview(body)
    side[method.delivery_tag] = view[:8]  # leak: TM-L035 TM-L001


side = {}


def words(path):
    n = 0
    with open(path) as f:
        for row in f.read().split("\n"):  # leak: TM-L034
            n += len(row)
    return n
