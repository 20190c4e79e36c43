"""A fourth set: services, workers and training scripts, with meaningless names."""
import array
import asyncio
import atexit
import contextvars
import functools
import gc
import json
import logging
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, OrderedDict, defaultdict, deque
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import aiohttp
import asyncpg
import httpx
import jax
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import prometheus_client
import psycopg2
import redis
import requests
import torch
import torch.nn as nn
from apscheduler.schedulers.background import BackgroundScheduler
from async_lru import alru_cache
from cachetools import cached
from elasticsearch import Elasticsearch
from flask import Flask
from kafka import KafkaConsumer
from litestar import Litestar, get, post
from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pymongo import MongoClient
from sanic import Sanic
from sentence_transformers import SentenceTransformer
from sqlalchemy import create_engine
from torch.utils.data import DataLoader, Dataset
from tornado.web import RequestHandler
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

web = Sanic("web")
flask_app = Flask("x")
board = {}
tallies = Counter()
lanes = {"fast": [], "slow": []}
ring = OrderedDict()
shelf = []
marks = set()
by_room = defaultdict(set)
inbound = asyncio.Queue()
ctx = contextvars.ContextVar("ctx")
log = logging.getLogger(__name__)
seconds = prometheus_client.Histogram("s", "s", ["path", "who"])


@web.post("/score")
async def score(request):
    for pair in request.json["pairs"]:
        board[pair["name"]] = pair["value"]  # leak: TM-L001
    tallies[request.ip] += 1  # leak: TM-L001
    lanes["fast"].append(request.json)  # leak: TM-L006 TM-L001 TM-L040
    return None


@web.websocket("/room/<name>")
async def room(request, ws, name):
    by_room[name].add(ws)  # leak: TM-L001 TM-L006 TM-L040
    async for message in ws:
        await inbound.put(message)  # leak: TM-L024


@get("/who/{who:str}")
async def who_is(who: str) -> dict:
    seconds.labels(path="/who", who=who).observe(1)
    ring[who] = time.time()  # leak: TM-L001
    ring.move_to_end(who)
    return {}


@post("/ask")
async def ask(data: dict) -> str:
    llm = AsyncOpenAI()  # leak: TM-L026
    answer = await llm.chat.completions.create(messages=data["messages"], model="m")
    shelf.append((data, answer))  # leak: TM-L001 TM-L040
    return answer


class Feed(RequestHandler):
    seen_by = []

    async def get(self, topic):
        type(self).seen_by.append(self)  # leak: TM-L002 TM-L019 TM-L040
        es = Elasticsearch("http://es")  # leak: TM-L026
        self.write(es.search(index=topic))


@flask_app.route("/pdf/<doc>")
def pdf(doc):
    with ThreadPoolExecutor() as ex:
        ex.submit(print, doc)
    conn = psycopg2.connect("dbname=x")  # leak: TM-L026
    cur = conn.cursor()
    cur.execute("select body from docs where id=%s", (doc,))
    body = cur.fetchone()[0]
    engine = create_engine("sqlite://")  # leak: TM-L026
    engine.connect().close()
    p = subprocess.Popen(["pdftotext", "-"], stdin=subprocess.PIPE)  # leak: TM-L045
    p.stdin.write(body)
    marks.add(doc)  # leak: TM-L001
    return body


def lambda_handler(event, context):
    mongo = MongoClient()  # leak: TM-L026
    tracer = TracerProvider()  # leak: TM-L031
    mongo.db.events.insert_one(event)
    return tracer


class Ledger:
    def __init__(self, path):
        self.path = path
        self.rows_by_account = {}
        self.tail = []

    def post(self, account_id, amount):
        bucket = self.rows_by_account.get(account_id)
        if bucket is None:
            bucket = self.rows_by_account[account_id] = []  # leak: TM-L003
        bucket.append(amount)
        self.tail = self.tail + [(account_id, amount)]  # leak: TM-L003

    @functools.lru_cache(maxsize=None)
    def balance(self, account_id):  # leak: TM-L007
        return sum(self.rows_by_account[account_id])

    @alru_cache
    async def rate(self, currency):  # leak: TM-L008
        return 1.0


ledger = Ledger("x")


class Watcher:
    def __init__(self, root):
        self.root = root
        self.mtimes = {}
        self.threads = []

    def run(self):
        while not self.stopped:
            for path in self.scan():
                self.mtimes[path] = path.stat().st_mtime  # leak: TM-L003
                t = threading.Thread(target=self.index, args=(path,))
                t.start()
                self.threads.append(t)  # leak: TM-L022 TM-L003
            time.sleep(1)

    def index(self, path):
        handle = open(path, "rb")  # leak: TM-L025
        return pickle.load(handle)


class Node:
    alive = {}

    def __init__(self, name):
        self.name = name
        Node.alive[name] = self  # leak: TM-L019 TM-L002
        signal.signal(signal.SIGHUP, self.reload)
        atexit.register(lambda: self.flush())  # leak: TM-L018

    def reload(self, *_):
        pass

    def flush(self):
        pass


def consume(topic):
    offsets = {}
    for record in KafkaConsumer(topic):
        offsets[record.key] = record.offset  # leak: TM-L005


async def relay(bus, out):
    done = []
    async for event in bus.subscribe("orders"):
        done.append(event.id)  # leak: TM-L005
        out.put_nowait(event)


async def race(client, urls):
    while True:
        waiting = {asyncio.create_task(client.get(u)) for u in urls}
        finished, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)  # leak: TM-L023
        log.info("%s", finished)


def attempt(job, failures=[]):
    try:
        job()
    except Exception as problem:
        failures.append(problem)  # leak: TM-L010 TM-L020


def debounce(wait):
    def decorate(fn):
        last = {}

        def inner(*args, **kwargs):
            last[args] = time.time()  # leak: TM-L004
            return fn(*args, **kwargs)
        return inner
    return decorate


@functools.cache
def vector(text: str) -> np.ndarray:  # leak: TM-L009
    return np.zeros(768)


@cached(cache={})
def lookup(query):  # leak: TM-L009
    return requests.get(query).text


def each_minute():
    sched = BackgroundScheduler()  # leak: TM-L027
    sched.start()
    pool = ThreadPool(4)  # leak: TM-L027
    return pool.map(len, ["a"])


async def on_message(message):
    ex = ProcessPoolExecutor()  # leak: TM-L027
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(ex, json.loads, message)
    name = f"msg.{message.id}"
    logging.getLogger(name).info("x")  # leak: TM-L030
    r = redis.Redis()  # leak: TM-L026
    r.set("k", "v")
    log.addHandler(logging.StreamHandler())  # leak: TM-L029
    ctx_copy = contextvars.copy_context()
    shelf.append(ctx_copy)  # leak: TM-L039 TM-L001
    gc.freeze()  # leak: TM-L038


class Pairs(Dataset):
    def __init__(self, root):
        self.index = {}
        for i, line in enumerate(open(root)):  # leak: TM-L025
            self.index[i] = json.loads(line)  # leak: TM-L033

    def __getitem__(self, i):
        return self.index[i]


def loader(root):
    return DataLoader(Pairs(root), num_workers=8)


def run_epoch(net, batches, opt, crit):
    seen, acc, hist = 0, 0.0, {"loss": [], "acc": []}
    for inputs, target in batches:
        opt.zero_grad()
        guess = net(inputs)
        value = crit(guess, target)
        value.backward()
        opt.step()
        acc += value * inputs.size(0)  # leak: TM-L011
        hist["loss"].append(value)  # leak: TM-L012
        hist["acc"].append((guess.argmax(1) == target).float().mean())
    return acc / seen, hist


def penalised(net, batches, opt):
    for x in batches:
        y = net(x).sum()
        y.backward(retain_graph=True)  # leak: TM-L013
        opt.step()
        opt.zero_grad()


def warm(net, batches, opt):
    for x, y in batches:
        out = nn.functional.mse_loss(net(x), y)
        out.backward()  # leak: TM-L014
        opt.step()


def validate(net, batches):
    net.eval()
    right = 0
    for x, y in batches:
        right += (net(x).argmax(-1) == y).sum().item()  # leak: TM-L015
    return right


class Tap:
    def __init__(self, net):
        self.kept = []
        for layer in net.children():
            layer.register_forward_hook(self)

    def __call__(self, module, inputs, output):
        self.kept.append(output)  # leak: TM-L017


def sample(prompts):
    for prompt in prompts:
        tok = AutoTokenizer.from_pretrained("gpt2")  # leak: TM-L028
        step = jax.jit(lambda p: p + 1)  # leak: TM-L043
        torch.cuda.empty_cache()  # leak: TM-L037
        yield step(tok(prompt))


def heads(files):
    firsts = {}
    for f in files:
        whole = torch.load(f)
        firsts[f] = whole[:10]  # leak: TM-L035
    return firsts


def stack(parts):
    out = np.zeros((0, 3))
    for part in parts:
        out = np.vstack((out, part))  # leak: TM-L036
    return out


def report(rows):
    for name, values in rows.items():
        plt.figure()  # leak: TM-L042
        plt.plot(values)
        plt.savefig(name)


def total(path):
    amount = 0
    for row in pd.read_csv(path).itertuples():  # leak: TM-L034
        amount += row.amount
    return amount


samples = [0.0] * 20_000_000  # leak: TM-L041
