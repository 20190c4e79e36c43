"""Other variants of the patterns: written after the rules, without looking at them."""
import asyncio
import collections
import contextvars
import functools
import gc as garbage
import logging
import threading
import time
import traceback
import typing as t
from concurrent import futures as cf
from functools import partial

import httpx
import numpy
import pandas
import prometheus_client as prom
import psycopg2
import torch
import torch.nn as nn
from aiohttp import web
from celery import shared_task
from django.http import HttpRequest
from django.views import View
from torch import optim

T = t.TypeVar("T")
RESPONSES: "dict[str, bytes]" = {}
_METRICS = collections.Counter()
LOG_LINES: t.Deque[str] = collections.deque()
connected_clients = set()
GRAPH = nn.Linear(2, 2)
session_store = dict()
hooks = {}


@shared_task
def resize(image_id):
    RESPONSES[image_id] = load(image_id)  # leak: TM-L001


async def websocket_endpoint(request: web.Request):
    ws = web.WebSocketResponse()
    connected_clients.add(ws)  # leak: TM-L001 TM-L040
    async for msg in ws:
        LOG_LINES.append(msg.data)  # leak: TM-L001


def login(username, password):
    session_store.update({username: Session(username)})  # leak: TM-L001


class OrderView(View):
    seen_orders = []
    totals: t.ClassVar[t.Dict[str, float]] = {}

    def post(self, request: HttpRequest):
        order = parse(request)
        type(self).seen_orders.append(order)  # leak: TM-L002
        self.totals[order.number] = order.total  # leak: TM-L002


class ChatBot:
    def __init__(self, llm):
        self.llm = llm
        self.conversation = []

    async def on_message(self, message):
        self.conversation.append({"role": "user", "content": message})  # leak: TM-L003
        answer = await self.llm(self.conversation)
        self.conversation.append({"role": "assistant", "content": answer})
        return answer


class Telemetry:
    def __init__(self):
        self.points = collections.defaultdict(list)

    def record(self, series, value):
        self.points[series].append((time.time(), value))  # leak: TM-L003 TM-L006


class RateLimiter:
    def __init__(self):
        self.hits = {}

    def allow(self, ip):
        hits = self.hits.setdefault(ip, [])  # leak: TM-L003 TM-L006
        hits.append(time.time())
        return len(hits) < 10


def retrying(times):
    attempts = {}

    def decorate(fn):
        @functools.wraps(fn)
        def call(*args):
            attempts[args] = attempts.get(args, 0) + 1  # leak: TM-L004
            return fn(*args)

        return call

    return decorate


def tail(connection):
    history = []
    while True:
        rows = connection.poll(timeout=1.0)
        history.extend(rows)  # leak: TM-L005
        render(history)


def group_events(event, groups=collections.defaultdict(list)):
    groups[event.kind].append(event)  # leak: TM-L010
    return groups


class Report:
    @functools.lru_cache(maxsize=512)
    def rows(self, start, end):  # leak: TM-L007
        return query(self.id, start, end)

    cached_sum = functools.lru_cache()(lambda self: sum(self.rows(0, 1)))


@functools.lru_cache(None)
def summarize(df: pandas.DataFrame) -> pandas.DataFrame:  # leak: TM-L009
    return df.describe()


@functools.cache
def tokenize(sentence):  # leak: TM-L009
    return sentence.split()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.seen = []

    def forward(self, x):
        y = self.fc(x)
        self.seen.append(y)  # leak: TM-L012
        return y


def run(model: Net, loader, criterion):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    epoch_losses, total = [], torch.tensor(0.0)
    for batch in loader:
        optimizer.zero_grad()
        pred = model(batch["x"])
        loss = criterion(pred, batch["y"]) + 0.1 * pred.pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss  # leak: TM-L011
        epoch_losses += [loss]  # leak: TM-L012
    print(total)


def accelerate_loop(model, dl, opt, accelerator):
    outputs = []
    for b in dl:
        out = model(**b)
        accelerator.backward(out.loss)
        opt.step()
        opt.zero_grad()
        outputs.append(out)  # leak: TM-L012


def no_reset(net, loader, optimizer):
    for x, y in loader:
        err = ((net(x) - y) ** 2).mean()
        err.backward()  # leak: TM-L014
        optimizer.step()


class Ranker:
    def __init__(self):
        self.net = Net().eval()

    def predict(self, features):
        x = torch.as_tensor(features)
        return self.net(x).numpy()  # leak: TM-L015


def watch_layer(model, x):
    acts = []
    model.fc.register_forward_hook(partial(store, acts))  # leak: TM-L016
    return model(x), acts


def store(acts, module, args, out):
    acts.append(out)  # leak: TM-L017


class Timer:
    def __init__(self, loop):
        self.buffer = bytearray(10**6)
        SUBSCRIBERS.append(partial(Timer.fire, self))  # leak: TM-L019

    def fire(self):
        return self.buffer


SUBSCRIBERS = []
FAILED: t.List[BaseException] = []
TRACES = []


def safe(fn, *args):
    try:
        return fn(*args)
    except Exception as e:
        FAILED.append(e)  # leak: TM-L020
        TRACES.append((fn, e.__traceback__))  # leak: TM-L020
        return None


_generators = {}


def numbers(n):
    big = list(range(n))
    yield from big


def open_page(session_id, n):
    _generators[session_id] = g = numbers(n)  # leak: TM-L021
    return next(g)


class JobQueue:
    def __init__(self):
        self._pending: set[asyncio.Task] = set()
        self._queue = asyncio.Queue()  # leak: TM-L024

    async def handle(self, request):
        task = asyncio.create_task(self.work(request))
        self._pending.add(task)  # leak: TM-L022
        await self._queue.put(request)


workers = []


def spawn(job):
    thread = threading.Thread(target=job.run)
    thread.start()
    workers.append(thread)  # leak: TM-L022


def merge(paths, target):
    out = open(target, "w")  # leak: TM-L025
    for path in paths:
        out.write(open(path).read())  # leak: TM-L025


class Users(View):
    def get(self, request):
        conn = psycopg2.connect("dbname=x")  # leak: TM-L026
        cur = conn.cursor()
        cur.execute("select 1")
        return cur.fetchone()


@app.get("/stream")
async def stream():
    return (await httpx.AsyncClient(timeout=5).get("http://x")).text  # leak: TM-L026


def handle_batch(request):
    pool = cf.ProcessPoolExecutor()  # leak: TM-L027
    return list(pool.map(work, request.items))


class Embedder(View):
    def post(self, request):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer("all-MiniLM-L6-v2")  # leak: TM-L028
        return model.encode(request.body)


def get_logger(user):
    log = logging.getLogger("user-%s" % user.id)  # leak: TM-L030
    return log


calls_total = prom.Counter("calls", "Calls", ["who"])


def on_call(call):
    calls_total.labels(who=call.user_id).inc()  # leak: TM-L032


def on_request(request):
    prom.Summary("req_" + request.path, "x").observe(1)  # leak: TM-L031


def average(path):
    with open(path) as f:
        return sum(float(line) for line in f.readlines()) / 10  # leak: TM-L034


class Signal:
    def __init__(self, path):
        wave = numpy.load(path)
        self.intro = wave[:1000]  # leak: TM-L035


def build(chunks):
    total = numpy.zeros(0)
    for chunk in chunks:
        total = numpy.concatenate((total, chunk))  # leak: TM-L036
    return total


def speed_up():
    garbage.disable()  # leak: TM-L038


class ContextPool:
    def __init__(self):
        self.saved = []

    def handle(self, request):
        self.saved.append(contextvars.copy_context())  # leak: TM-L039


last_seen = None


def middleware(get_response):
    def inner(request):
        global last_seen
        last_seen = request  # leak: TM-L040
        return get_response(request)

    return inner


@app.route("/shape")
def shape(request):
    Point = collections.namedtuple("Point", request.args["fields"])  # leak: TM-L044
    return Point(1, 2)
