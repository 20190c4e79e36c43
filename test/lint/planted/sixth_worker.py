import contextvars
import json
import queue
import socket
import sys
import tempfile
import threading
import multiprocessing as mp
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from celery import Celery
from transformers import AutoModel, AutoTokenizer

app = Celery("w")
inbox = queue.Queue()
REGISTRY = {}
names = set()
parts = []


@app.task
def embed(text):
    tokenizer = AutoTokenizer.from_pretrained("m")  # leak: TM-L028
    model = AutoModel.from_pretrained("m")  # leak: TM-L028
    return model(**tokenizer(text)).last_hidden_state.tolist()  # leak: TM-L015


@app.task
def collect(document):
    names.add(document["name"])  # leak: TM-L001
    pool = ThreadPoolExecutor(4)  # leak: TM-L027
    futures = [pool.submit(len, part) for part in document["parts"]]
    return [future.result() for future in futures]


class Listener:
    def __init__(self, bus):
        self.seen = {}
        bus.subscribe("order", self.on_order)  # leak: TM-L018

    def on_order(self, order):
        self.seen[order.id] = order  # leak: TM-L003


class Server(threading.Thread):
    def __init__(self):
        super().__init__()
        self.peers = {}
        self.trouble = None

    def run(self):
        listener = socket.socket()
        while True:
            conn, address = listener.accept()
            self.peers[address] = conn  # leak: TM-L003
            try:
                self.serve(conn)
            except OSError:
                self.trouble = sys.exc_info()

    def serve(self, conn):
        line = conn.recv(100)
        inbox.put(line)  # leak: TM-L024


def table(chunks):
    frame = pd.DataFrame()
    for chunk in chunks:
        frame = pd.concat([frame, chunk])  # leak: TM-L036
    return frame


def grow(values):
    result = np.array([])
    for value in values:
        result = np.append(result, value)  # leak: TM-L036
    return result


def thumbnails(paths):
    small = []
    for path in paths:
        image = np.load(path)
        small.append(image[:8, :8])  # leak: TM-L035
    return small


def spool(rows):
    for row in rows:
        out = tempfile.NamedTemporaryFile(delete=False)  # leak: TM-L025
        out.write(json.dumps(row).encode())


def lines(paths):
    return [open(path).read() for path in paths]  # leak: TM-L025


def run_all(items):
    for item in items:
        process = mp.Pool(2)  # leak: TM-L027
        parts.extend(process.map(str, item))  # leak: TM-L001


def main():
    while True:
        run_all(inbox.get())
