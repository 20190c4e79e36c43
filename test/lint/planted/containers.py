"""Containers that only grow, in many styles. A comment `leak: ID` marks the line that a finding must report."""
from __future__ import annotations

import asyncio
import itertools
import time
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any, ClassVar, Dict, List

from flask import Flask, request

app = Flask(__name__)

_user_cache: Dict[str, Any] = {}
audit_trail: List[dict] = []
recent = OrderedDict()
by_tenant = defaultdict(list)
visited = set()
totals = {}


def fetch_user(user_id):
    if user_id not in _user_cache:
        _user_cache[user_id] = query("select * from users where id = %s", user_id)  # leak: TM-L001
    return _user_cache[user_id]


@app.route("/buy", methods=["POST"])
def buy():
    entry = {"at": time.time(), "body": request.get_json()}
    audit_trail.append(entry)  # leak: TM-L001
    return "ok"


@app.post("/seen")
async def seen(item: str):
    if (key := item.lower()) not in visited:
        visited.add(key)  # leak: TM-L001
    return {"n": len(visited)}


@app.get("/recent/<name>")
def remember(name):
    global totals
    recent.setdefault(name, time.time())  # leak: TM-L001
    totals |= {name: 1}  # leak: TM-L001


def ingest(event):
    by_tenant[event.tenant].append(event)  # leak: TM-L001 TM-L006


class EventSink:
    events: ClassVar[list] = []
    _instances = {}
    by_key = dict()

    def __init__(self, key):
        self.key = key

    def write(self, event):
        self.events += [event]  # leak: TM-L002

    @classmethod
    def get(cls, session_id):
        if session_id not in cls._instances:
            cls._instances[session_id] = cls(session_id)  # leak: TM-L002
        return cls._instances[session_id]

    def put(self, payload):
        EventSink.by_key[payload["id"]] = payload  # leak: TM-L002


class PriceFeed:
    def __init__(self):
        self.ticks = []
        self.latest = {}

    async def run(self, socket):
        async for message in socket:
            self.ticks.append(message)  # leak: TM-L003
            self.latest["price"] = message


@dataclass
class RequestTracker:
    started: dict = field(default_factory=dict)
    durations: list[float] = field(default_factory=list)

    def track(self, request_id: str, took: float) -> None:
        self.started[request_id] = time.monotonic()  # leak: TM-L003
        self.durations.append(took)  # leak: TM-L003


tracker = RequestTracker()


class AuthMiddleware:
    def __init__(self, app):
        self.app = app
        self.tokens = {}

    async def __call__(self, scope, receive, send):
        token = dict(scope["headers"]).get(b"authorization")
        self.tokens[token] = scope["client"]  # leak: TM-L003
        await self.app(scope, receive, send)


class Poller:
    def __init__(self):
        self._history = []

    def start(self):
        while not self.stopped:
            self._poll_once()
            time.sleep(5)

    def _poll_once(self):
        result = read_sensor()
        self._history.append(result)  # leak: TM-L003


def counted(function):
    calls = []

    def wrapper(*args, **kwargs):
        calls.append((time.time(), args))  # leak: TM-L004
        return function(*args, **kwargs)

    return wrapper


def memo_async(function):
    store = {}

    async def inner(key):
        try:
            return store[key]
        except KeyError:
            store[key] = value = await function(key)  # leak: TM-L004
            return value

    return inner


def make_deduplicator():
    already = set()
    return lambda item: already.add(item.id) or item  # leak: TM-L004


def consume(sock):
    frames = []
    while True:
        data = sock.recv(4096)
        frames.append(data)  # leak: TM-L005
        handle_frame(data)


async def watch(queue: asyncio.Queue):
    ids = set()
    while True:
        job = await queue.get()
        ids.add(job.id)  # leak: TM-L005
        await job.run()


def sample_forever(sensor):
    readings = {}
    for n in itertools.count():
        readings[n] = sensor.read()  # leak: TM-L005
        time.sleep(1)


windows = OrderedDict()


def on_message(message):
    bucket = windows.setdefault(message.channel, [])
    bucket.append(message.text)  # leak: TM-L006
    if len(windows) > 500:
        windows.popitem(last=False)


def accumulate(x, seen={}):
    seen[x.id] = x  # leak: TM-L010
    return len(seen)


def tag(name, tags=set()):
    tags.add(name)  # leak: TM-L010
    return tags


async def enqueue(item, *, backlog: list = []):
    backlog.append(item)  # leak: TM-L010
    if len(backlog) == 1:
        await flush(backlog[0])
