"""A third set, written after the rules were finished; its first result is the figure in docs/lint.md."""
import asyncio
import concurrent.futures
import datetime as dt
import functools as ft
import json
import logging
import os
import socketserver
import threading
import tempfile
import weakref
from collections import Counter as Tally
from queue import Queue, SimpleQueue
from typing import Dict, Optional

import aiohttp
import numpy as np
import pandas as pd
import pymongo
import tensorflow as tf
import torch
import uvicorn
from django.views.decorators.http import require_POST
from fastapi import BackgroundTasks, Depends, FastAPI
from prometheus_client import Counter
from starlette.requests import Request
from torch.utils.data import DataLoader
from transformers import AutoModel

api = FastAPI()
price_history: Dict[str, list] = {}
_compiled = {}
thumbnails = dict()
errors_by_user = Tally()
jobs_done = []
in_flight: set = set()


@api.get("/price/{symbol}")
async def price(symbol: str) -> float:
    value = await quote(symbol)
    price_history.setdefault(symbol, []).append((dt.datetime.now(), value))  # leak: TM-L001 TM-L006
    return value


@require_POST
def upload(request):
    thumb = shrink(request.FILES["image"])
    thumbnails[request.FILES["image"].name] = thumb  # leak: TM-L001
    return thumb


def translate(text, target="en"):
    cache_key = (text, target)
    if cache_key in _compiled:
        return _compiled[cache_key]
    answer = model(text, target)
    _compiled[cache_key] = answer  # leak: TM-L001
    return answer


def process(batch):
    for doc in batch:
        result = analyse(doc)
        jobs_done.append(result)  # leak: TM-L001


class EchoHandler(socketserver.BaseRequestHandler):
    received = []

    def handle(self):
        data = self.request.recv(1024)
        EchoHandler.received.append(data)  # leak: TM-L002
        self.request.sendall(data)


class Account:
    all_transactions: list = []
    index: dict = {}

    def deposit(self, amount, transaction):
        self.all_transactions.append((self, amount))  # leak: TM-L002 TM-L019
        self.__class__.index[transaction.id] = transaction  # leak: TM-L002


class NotificationService:
    def __init__(self, mailer):
        self.mailer = mailer
        self.sent = []
        self._seen_ids = set()

    def notify(self, user, text):
        if text.id in self._seen_ids:
            return
        self._seen_ids.add(text.id)  # leak: TM-L003
        self.mailer.send(user, text)
        self.sent.append({"user": user, "text": text})  # leak: TM-L003


class LoggingCallback:
    def __init__(self):
        self.rows = []

    def on_batch_end(self, batch, logs):
        self.rows.append(logs)  # leak: TM-L003


class Consumer(threading.Thread):
    def __init__(self, q):
        super().__init__(daemon=True)
        self.q = q
        self.results = {}

    def run(self):
        while True:
            job = self.q.get()
            self.results[job.id] = job.execute()  # leak: TM-L003
            self.q.task_done()


def throttle(seconds):
    last_calls = {}

    def deco(fn):
        def wrapped(user, *args):
            last_calls[user] = dt.datetime.now()  # leak: TM-L004
            return fn(user, *args)
        return wrapped
    return deco


async def heartbeat(ws):
    pongs = []
    while True:
        await asyncio.sleep(30)
        pongs.append(await ws.ping())  # leak: TM-L005


def add_row(row, table={}):
    table.setdefault(row.key, []).append(row)  # leak: TM-L010
    return table


class Repo:
    @ft.cache
    def find(self, key):  # leak: TM-L007
        return self.db.find(key)

    @ft.lru_cache(maxsize=256)
    async def fetch(self, key):  # leak: TM-L008
        return await self.db.fetch(key)


@ft.lru_cache(maxsize=None)
def to_gray(img):  # leak: TM-L009
    return img.mean(axis=2)


@ft.cache
def user_permissions(user_id: int) -> frozenset:  # leak: TM-L009
    return frozenset(load_permissions(user_id))


def epoch(model, train_loader, optimizer, loss_fn, device):
    train_loss = 0
    all_logits = []
    for inputs, targets in train_loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = loss_fn(outputs, targets)
        loss.backward()
        optimizer.step()
        train_loss += loss * inputs.size(0)  # leak: TM-L011
        all_logits.append(outputs)  # leak: TM-L012
    return train_loss / len(train_loader.dataset), torch.cat(all_logits)


def meta(model, tasks, opt):
    for task in tasks:
        opt.zero_grad()
        task_loss = model.loss(task)
        task_loss.backward(retain_graph=True)  # leak: TM-L013
        opt.step()


def test(model, test_loader):
    correct = 0
    model.eval()
    for x, y in test_loader:
        pred = model(x).argmax(dim=1)  # leak: TM-L015
        correct += (pred == y).sum().item()
    return correct


def attention_maps(model, image):
    maps = []
    for block in model.blocks:
        block.attn.register_forward_hook(lambda mod, inp, out: maps.append(out))  # leak: TM-L016 TM-L017
    model(image)
    return maps


class Collector:
    def __init__(self):
        self.grads = {}

    def save_grad(self, name):
        def hook(grad):
            self.grads[name] = grad
        return hook


class View:
    registry = []

    def __init__(self, store):
        self.store = store
        View.registry.append(self.render)  # leak: TM-L019

    def render(self):
        return self.store


crashes = []


def guard(task):
    try:
        return task()
    except (OSError, ValueError) as err:
        crashes.append((task, err))  # leak: TM-L020


async def launch(request):
    t = asyncio.create_task(crunch(request))
    in_flight.add(t)  # leak: TM-L022
    return {"id": id(t)}


class Ingest:
    def __init__(self):
        self.buffer = SimpleQueue()  # leak: TM-L024

    def do_POST(self):
        self.buffer.put(self.rfile.read())


def dump(records, path):
    fh = open(path, "a")  # leak: TM-L025
    for r in records:
        fh.write(json.dumps(r))


@api.get("/mongo")
def mongo(name: str):
    db = pymongo.MongoClient("mongodb://localhost")["app"]  # leak: TM-L026
    return db.users.find_one({"name": name})


@api.get("/up")
async def upstream(url: str):
    session = aiohttp.ClientSession()  # leak: TM-L026
    async with session.get(url) as resp:
        return await resp.text()


@api.post("/parallel")
def parallel(items: list):
    ex = concurrent.futures.ThreadPoolExecutor(max_workers=16)  # leak: TM-L027
    return [f.result() for f in ex.map(work, items)]


@api.post("/vec")
def vec(text: str):
    enc = AutoModel.from_pretrained("bert-base-uncased")  # leak: TM-L028
    return enc.encode(text)


def handle_upload(request):
    log = logging.getLogger("upload")
    log.addHandler(logging.StreamHandler())  # leak: TM-L029
    log.info("x")


def session_logger(session):
    return logging.getLogger("session.{}".format(session.session_id))  # leak: TM-L030


c = Counter("errors", "Errors", ["email"])


def on_error(user):
    c.labels(email=user.email).inc()  # leak: TM-L032


def read_all(path):
    lines = []
    with open(path) as f:
        for line in f.read().splitlines():  # leak: TM-L034
            lines.append(line)
    return lines


def assemble(parts):
    acc = torch.zeros(0, 4)
    for p in parts:
        acc = torch.vstack([acc, p])  # leak: TM-L036
    return acc


def append_rows(rows):
    df = pd.DataFrame(columns=["a"])
    for row in rows:
        df = pd.concat([df, pd.DataFrame([row])])  # leak: TM-L036
    return df


@api.middleware("http")
async def keep_requests(request: Request, call_next):
    request.app.state.requests.append(request)  # leak: TM-L040
    return await call_next(request)


@api.post("/step")
def step(x: list):
    f = tf.function(lambda v: v + 1)  # leak: TM-L043
    return f(x)


@api.post("/validate")
def validate(payload: dict):
    class Payload:  # leak: TM-L044
        fields = list(payload)
    return Payload()


def handle_job(job):
    os.popen(f"convert {job.path}")  # leak: TM-L045
