"""Look-alikes of containers that only grow: each is emptied, limited, or grows only with the program's source."""
import asyncio
import heapq
import threading
import weakref
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

REGISTRY = {}
CONVERTERS = []
recent = deque(maxlen=100)
sessions = {}
_cache = OrderedDict()
_lock = threading.Lock()
objects = weakref.WeakValueDictionary()
pending = []
counts = defaultdict(int)
heap = []
active = set()
snapshot = []


def register(name):
    def decorate(function):
        REGISTRY[name] = function
        return function

    return decorate


def add_converter(converter):
    CONVERTERS.append(converter)


def remember(request):
    recent.append(request.path)
    objects[request.id] = request


def open_session(user_id):
    sessions[user_id] = object()


def close_session(user_id):
    sessions.pop(user_id, None)


def cached(key, make):
    with _lock:
        if key in _cache:
            _cache.move_to_end(key)
        else:
            _cache[key] = make(key)
        while len(_cache) > 256:
            _cache.popitem(last=False)
        return _cache[key]


def batch(event):
    global pending
    pending.append(event)
    if event.last:
        done, pending = pending, []
        return done


def schedule(item):
    heapq.heappush(heap, item)


def due():
    return heapq.heappop(heap)


def enter(connection):
    active.add(connection)
    try:
        connection.serve()
    finally:
        active.discard(connection)


def take(event):
    snapshot.append(event)
    del snapshot[:-10]


class Parser:
    KEYWORDS = {"if", "else"}
    subclasses = []

    def __init_subclass__(cls):
        Parser.subclasses.append(cls)

    def __init__(self, text):
        self.text = text
        self.tokens = []
        self.errors = []

    def parse(self):
        while True:
            token = self.read()
            if token is None:
                break
            self.tokens.append(token)
        return self.tokens

    def read(self):
        try:
            return next(self.text)
        except StopIteration as error:
            self.errors.append(str(error))


class Service:
    limits = {}

    def __init__(self):
        self.window = []
        self.jobs = {}
        self.total = 0

    def handle(self, request):
        self.window.append(request.size)
        self.window = self.window[-50:]
        self.jobs[request.id] = request
        try:
            return self.work(request)
        finally:
            del self.jobs[request.id]

    async def run(self, queue):
        while True:
            batch = []
            while len(batch) < 10:
                batch.append(await queue.get())
            await self.flush(batch)


@dataclass
class Result:
    rows: list = field(default_factory=list)

    def add(self, row):
        self.rows.append(row)


class Matrix:
    @cached_property
    def inverse(self):
        return invert(self)

    @staticmethod
    @lru_cache(maxsize=16)
    def identity(n: int):
        return n


@lru_cache(maxsize=None)
def pattern(name):
    return name.upper()


@lru_cache
def settings():
    return {}


def group(items):
    groups = defaultdict(list)
    for item in items:
        groups[item.key].append(item)
    return groups


def collect(item, into=None):
    into = [] if into is None else into
    into.append(item)
    return into


def frozen(options={}):
    return options.get("x")
