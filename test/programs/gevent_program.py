"""A gevent program: patched sockets, and two hundred greenlets that talk to the program's own server."""
from gevent import monkey

monkey.patch_all()

import os
import sys

import gevent
from gevent.pool import Pool
from gevent.server import StreamServer
from gevent.socket import create_connection

from truth import Truth

truth = Truth()
received = []


def serve(connection, _address):
    connection.sendall(connection.recv(100) * 1000)


def fetch(server, number):
    connection = create_connection(("127.0.0.1", server.server_port))
    connection.sendall(b"%08d" % number)
    size = 0
    while size < 8000:
        size += len(connection.recv(8000))
    gevent.sleep(0)
    keep(size)


def keep(size):
    received.append(bytearray(size * 100))  # known: received


def main():
    server = StreamServer(("127.0.0.1", 0), serve)
    server.start()
    pool = Pool(20)
    for number in range(200):
        pool.spawn(fetch, server, number)
    pool.join()
    server.stop()
    truth.site("received", keep, sum(map(sys.getsizeof, received)))
    truth.report()
    os._exit(0)


main()
