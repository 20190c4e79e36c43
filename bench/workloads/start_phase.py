"""A program's startup: imports what a service imports, then loads data and keeps it: `start_phase.py MIB`."""

import asyncio
import concurrent.futures
import csv
import decimal
import email.message
import email.parser
import http.client
import http.server
import importlib
import io
import json
import logging.config
import multiprocessing
import random
import sqlite3
import statistics
import sys
import unittest.mock
import urllib.request
import xml.etree.ElementTree
import zipfile

MIB = int(sys.argv[1])
random.seed(1)


class Order:
    def __init__(self, number: int, items: list[str]) -> None:
        self.number = number
        self.items = items
        self.total = decimal.Decimal(number) / 100


def parse_csv(text: str) -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in csv.DictReader(io.StringIO(text))}


def parse_json(text: str) -> list:
    return json.loads(text)


def orders(count: int) -> list[Order]:
    return [Order(n, [f"item {n + i}" for i in range(n % 5)]) for n in range(count)]


def rows(count: int) -> list:
    database = sqlite3.connect(":memory:")
    database.execute("create table orders (number integer, name text, total real)")
    database.executemany(
        "insert into orders values (?, ?, ?)", ((n, f"customer {n % 997}", n / 7) for n in range(count))
    )
    return database.execute("select name, sum(total), count(*) from orders group by name").fetchall()


def tree(count: int) -> xml.etree.ElementTree.Element:
    text = "".join(f"<order number='{n}'><item>{n}</item></order>" for n in range(count))
    return xml.etree.ElementTree.fromstring(f"<orders>{text}</orders>")


kept: list = []
text = "name,total,city\n" + "".join(f"customer {n},{n * 3},city {n % 100}\n" for n in range(2000))
document = json.dumps([{"name": f"n{n}", "values": list(range(n % 20))} for n in range(1000)])
for _ in range(MIB):
    kept.append(parse_csv(text))
    kept.append(parse_json(document))
    kept.append(orders(800))
    kept.append(rows(2000))
    kept.append(tree(500))
