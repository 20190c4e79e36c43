"""Opens things at known places and keeps them.

Prints a JSON object: descriptor -> [[function, file, line], ...], leaf first, of this file's frames.
"""

import json
import os
import socket
import sys
import threading
import time

truth = {}
kept = []


def note(opened, *descriptors):
    """Records that `opened` was opened on the caller's line."""
    stack, frame = [], sys._getframe(1)
    while frame:
        if frame.f_code.co_filename == __file__:
            stack.append([getattr(frame.f_code, "co_qualname", frame.f_code.co_name), __file__, frame.f_lineno])
        frame = frame.f_back
    kept.append(opened)
    for descriptor in descriptors:
        truth[descriptor] = stack


def file():
    opened = open(__file__); note(opened, opened.fileno())


def raw():
    opened = os.open("/dev/null", os.O_RDWR); note(opened, opened)


def sockets():
    pair = socket.socketpair(); note(pair, *(end.fileno() for end in pair))


def accepted(listening):
    client = socket.create_connection(listening.getsockname())
    kept.append(client)
    server = listening.accept()[0]; note(server, server.fileno())


def pipe():
    pair = os.pipe(); note(pair, *pair)


class Pool:
    def __init__(self):
        self.connection = socket.socket(); note(self.connection, self.connection.fileno())


def reused():
    """The latest opener of a descriptor number counts."""
    number = os.open("/dev/null", os.O_RDONLY)
    os.close(number)
    again = os.open("/dev/zero", os.O_RDONLY); note(again, again)
    assert number == again


time.sleep(0.3)  # at startup so many modules are opened that not every stack is taken
file()
raw()
sockets()
listening = socket.create_server(("127.0.0.1", 0)); note(listening, listening.fileno())
accepted(listening)
pipe()
pools = [Pool() for _ in range(2)]
thread = threading.Thread(target=sockets)
thread.start()
thread.join()
reused()
json.dump(truth, sys.stdout)
sys.stdout.flush()
os._exit(0)
