"""Look-alikes from third-party libraries and services: each was once a false positive."""
import csv
import functools
import io
import itertools
import logging
import queue

import numpy as np
import torch
from django.core.management.base import BaseCommand
from helpers import template

TABLE = {}
NAMES = {"a", "b"}
loaded_by_name = {}
CSV = "a,b\n1,2\n"


def define(name, number):
    TABLE[name] = number


define("NOP", 1)
define("ADD", 2)


def rows_of(cursor, query):
    return [row[0] for row in cursor.execute(query).fetchall()]


def columns_of(cursor, table):
    cursor.execute("PRAGMA table_info(%s)" % table)
    for row in cursor.fetchall():
        print(row[1])


def demo(table):
    rows = list(csv.reader(io.StringIO(CSV)))
    table.add_columns(*rows[0])
    table.add_rows(rows[1:])


def locale_of(code):
    assert code in NAMES
    if code not in loaded_by_name:
        loaded_by_name[code] = code.upper()
    return loaded_by_name[code]


class classproperty:
    def __init__(self, method):
        self.method = method


class Expression:
    @classproperty
    @functools.lru_cache(maxsize=128)
    def signature(cls):
        return cls.__init__

    @functools.lru_cache(maxsize=None)  # pylint: disable=method-cache-max-size-none
    def text(self, name):
        return name


class FlashView:
    def __init__(self, hass, briefings):
        self.briefings = briefings
        template.attach(hass, self.briefings)


class EntityService:
    def __init__(self, entity_id):
        self.entity_id = entity_id
        self.headers = {}
        self._waiting = set()
        self._runs = []

    def render(self):
        logging.getLogger(f"{__name__}.{self.entity_id.split('.')[0]}").info("rendered")

    def answer(self, request):
        for name in ("via", "from", "to"):
            self.headers[name] = request.headers[name]
        self.headers[b"temp"] = b"1"
        self.headers["total"] = "2"

    def waiter(self, loop):
        future = loop.create_future()
        self._waiting.add(future)
        future.add_done_callback(lambda done, waiting=self._waiting: waiting.remove(done))
        return future

    def start(self, job):
        self._runs.append(job)

    def add_route(self, route):
        self.headers[route.path] = route


class Run:
    def __init__(self, owner):
        self.owner = owner

    def finish(self):
        self.owner._runs.remove(self)


class Command(BaseCommand):
    def handle(self, *args, **options):
        subclass = type("Migration", (object,), {"operations": []})
        print(subclass, args, options)


def merged(current, other, overlap):
    result = []
    while True:
        for element in current:
            if element in overlap:
                overlap.discard(element)
                other, current = current, other
                break
            result.append(element)
        else:
            result.extend(other)
            break
    return result


def drained(jobs: queue.Queue):
    batch = []
    try:
        while True:
            batch.append(jobs.get_nowait())
    except queue.Empty:
        pass
    return batch


async def body_of(receive):
    body = []
    while True:
        message = await receive.receive()
        body.append(message["body"])
        if not message["more"]:
            break
    return b"".join(body)


async def values_of(connection, wanted):
    values = {}
    async for data in connection.read_all(wanted):
        values[data.address] = data
    return values


@functools.lru_cache(maxsize=16)
def uuid_of(_bytes: bytes | None):
    return _bytes


def add_filters(loggers, patterns):
    for name in loggers:
        add_filter(logging.getLogger(name), patterns)


def add_filter(target, patterns):
    target.addFilter(lambda record: record.msg not in patterns)


def features(blocks, x, token, at):
    for i, block in enumerate(blocks):
        if i == at:
            x = torch.cat((token, x), dim=1)
        x = block(x)
    return x


def padded(parts, last):
    for i in range(len(last)):
        parts[i] = np.concatenate([parts[i], last[i]])
    for part in parts:
        part = np.concatenate([last[0], part])
        print(part)
    return parts


def clear_device_cache():
    torch.cuda.empty_cache()


def with_smaller_batches(function, size):
    while True:
        try:
            return function(size)
        except RuntimeError:
            clear_device_cache()
            size //= 2


def counted(read):
    names = {}
    for at in itertools.count():
        try:
            names[read(at)] = at
        except IndexError:
            break
    return names
